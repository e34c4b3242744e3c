"""The helper process changes how long an audit takes and nothing of what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackctl.census import process, warming
from stackctl.census.audit import Audit
from stackctl.census.sides import Sides
from stackctl.facts.cache import FactsCache
from stackctl.trees.tree import GitTree, OverlayTree, Tree
from tests.support import commit_files, repository_of

COUNT = 30


@pytest.fixture
def trees(tmp_path: Path) -> list[Tree]:
    """Base, ours, theirs and a merge that lost every third half of ours."""
    repository = repository_of(tmp_path / "repo", {f"p/m{n}.py": "import os\n\n\ndef f():\n    a()\n" for n in range(COUNT)})
    commits = [repository.resolve("HEAD")]
    ours = {f"p/m{n}.py": f"import os\n\n\ndef f():\n    a()\n    b({n})\n" for n in range(COUNT)}
    theirs = {f"p/m{n}.py": "import os\nimport sys\n\n\ndef f():\n    a()\n" for n in range(COUNT)}
    merged = {path: text.replace("os\n", "os\nimport sys\n", 1) for path, text in ours.items()}
    for files in (ours, theirs, merged | {path: theirs[path] for path in list(theirs)[::3]}):
        commits.append(commit_files(repository.path, files, "side"))
    return [GitTree(repository, commit) for commit in commits]


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("python", [None, "/nowhere/python", "/bin/false"])
def test_the_findings_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trees: list[Tree], python: str | None, in_memory: bool
) -> None:
    monkeypatch.setattr(warming, "_AFTER", 1)
    monkeypatch.setattr(process, "cores", lambda: 2)
    if python:
        monkeypatch.setattr(process.sys, "executable", python)
    alone = Audit(Sides(*trees, cache=FactsCache(None))).run().report()
    if in_memory:
        trees = [*trees[:3], OverlayTree(trees[3], {"p/m1.py": trees[3].read("p/m1.py")})]
    helped = Audit(Sides(*trees, cache=FactsCache(tmp_path / "facts.sqlite"))).run().report()
    assert sum("lost" in str(row.verdict) for row in helped.ledger) == COUNT // 3
    assert helped.to_json() == alone.to_json()


def test_the_helper_reads_all_that_the_audit_needs(tmp_path: Path, trees: list[Tree]) -> None:
    path = tmp_path / "facts.sqlite"
    started = process.start(warming.__name__, [str(path), list(map(process.named, trees))])
    assert started is not None and started.wait(60) == 0
    cache, read = FactsCache(path), []
    cache.after(1, lambda: read.append(True))
    Audit(Sides(*trees, cache=cache, backwards=True)).run()
    assert read == []


def test_the_order_of_files_changes_no_finding(trees: list[Tree]) -> None:
    found = [Audit(Sides(*trees, cache=FactsCache(None), backwards=backwards)).run() for backwards in (False, True)]
    assert len(set(found[0].ledger)) == len(found[0].ledger) > 0
    assert set(found[0].findings) == set(found[1].findings) and set(found[0].ledger) == set(found[1].ledger)
