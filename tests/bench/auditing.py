"""Running the audit in this process, and comparing two of its reports."""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import resource
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from stackctl.census.sides import Sides
from stackctl.facts.cache import FactsCache
from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Level
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree, Tree


def run_audit(sides: Iterable[Tree]) -> Report:
    """Audit four trees (base, ours, theirs, merged) in this process, its facts shared with earlier audits."""
    audit = importlib.import_module("stackctl.census.audit")
    return audit.Audit(Sides(*sides, cache=shared_cache())).run().report()


@functools.cache
def shared_cache() -> FactsCache:
    """The facts of every file read in this process; kept in the file STACKCTL_BENCH_FACTS if that is set."""
    path = os.environ.get("STACKCTL_BENCH_FACTS")
    cache = FactsCache(Path(path) if path else None)
    atexit.register(cache.close)
    return cache


def trees_of(repository: Repository, refs: Iterable[str]) -> list[GitTree]:
    """One tree a ref."""
    return [GitTree(repository, ref) for ref in refs]


class OneFile:
    """A tree cut down to the file at `path`, if it has one: what an audit of a single file needs."""

    def __init__(self, tree: Tree, path: str) -> None:
        self._tree = tree
        self._path = path
        self.label = tree.label

    def paths(self) -> list[str]:
        """The one path, or none."""
        return [self._path] if self._path in self._tree else []

    def __contains__(self, path: str) -> bool:
        return path == self._path and path in self._tree

    def is_file(self, path: str) -> bool:
        """Whether it is a regular file."""
        return path in self and self._tree.is_file(path)

    def mode(self, path: str) -> str:
        """The Git mode of the file."""
        return self._tree.mode(path)

    def blob(self, path: str) -> str:
        """The Git blob id of the file."""
        return self._tree.blob(path)

    def read(self, path: str) -> bytes:
        """The bytes of the file."""
        if path not in self:
            raise KeyError(path)
        return self._tree.read(path)


def troubles(report: Report) -> list[Finding]:
    """The findings a person has to look at: errors and warnings."""
    return [finding for finding in report.findings if finding.severity is not Level.NOTE]


def fingerprint(finding: Finding) -> tuple[str, str, str, str]:
    """What stays the same in a finding when only lines shift: its message counts halves, it names no lines."""
    return str(finding.kind), finding.path, finding.symbol, finding.message


def news(before: Report, after: Report) -> list[Finding]:
    """The errors and warnings of `after` that `before` has not."""
    known = Counter(fingerprint(finding) for finding in troubles(before))
    found = []
    for finding in troubles(after):
        key = fingerprint(finding)
        if known[key]:
            known[key] -= 1
        else:
            found.append(finding)
    return found


def show(finding: Finding) -> str:
    """One finding on one line."""
    place = f"{finding.path}:{finding.line} {finding.symbol or '(module)'}"
    evidence = f" [{finding.evidence}]" if finding.evidence else ""
    return f"{finding.severity:7} {finding.kind:14} {place}: {finding.message}{evidence}"


def peak_megabytes() -> float:
    """This process's greatest resident set so far, in MB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Clock:
    """Seconds since it was made, wall and CPU."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self._wall:.2f} s wall, {time.process_time() - self._cpu:.2f} s CPU"


def open_repository(path: str) -> Repository:
    """The repository at `path`."""
    return Repository(Path(path))
