"""Small merges for tests: four sides written as texts, audited in memory."""

from __future__ import annotations

from textwrap import dedent

from stackctl.census.audit import Audit
from stackctl.census.sides import Sides
from stackctl.facts.cache import FactsCache
from stackctl.model.report import Finding
from stackctl.model.verdict import Level
from stackctl.trees.tree import blob_id

Files = dict[str, str]


class MemoryTree:
    """A tree that is a dictionary."""

    def __init__(self, label: str, files: dict[str, str | bytes]) -> None:
        self.label = label
        self._files = {path: data if isinstance(data, bytes) else dedent(data).encode() for path, data in files.items()}

    def paths(self):
        return self._files.keys()

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def is_file(self, path: str) -> bool:
        return path in self._files

    def mode(self, path: str) -> str:
        return "100644"

    def blob(self, path: str) -> str:
        return blob_id(self._files[path])

    def read(self, path: str) -> bytes:
        return self._files[path]


def trees(base, ours, theirs, merged) -> list[MemoryTree]:
    """Four trees; a side that is a text is the one file m.py."""
    sides = {"base": base, "ours": ours, "theirs": theirs, "merged": merged}
    return [MemoryTree(name, {"m.py": files} if isinstance(files, (str, bytes)) else files) for name, files in sides.items()]


def audit(base, ours, theirs, merged) -> Audit:
    """The audit of four sides."""
    return Audit(Sides(*trees(base, ours, theirs, merged), FactsCache(None))).run()


def errors(found: Audit) -> list[Finding]:
    """Its findings of error level."""
    return [finding for finding in found.findings if finding.severity is Level.ERROR]


def said(found: Audit) -> set[tuple[str, str]]:
    """(verdict, symbol) of every finding of error or warning level."""
    return {(str(f.kind), f.symbol) for f in found.findings if f.severity is not Level.NOTE}


def said_in(found: Audit) -> set[tuple[str, str, str]]:
    """(verdict, path, symbol) of every finding of error or warning level."""
    return {(str(f.kind), f.path, f.symbol) for f in found.findings if f.severity is not Level.NOTE}
