"""The helper process changes how long a census takes and nothing of what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackctl.census import helper, process
from stackctl.census.helper import assisted
from stackctl.census.memo import Memo
from stackctl.census.verify import verify
from stackctl.model.stack import Stack
from stackctl.plants.manifest import load_stack
from stackctl.trees.release import Release
from stackctl.trees.tree import GitTree
from tests.support import commit_files, repository_of, write_files

COUNT = 40


def _stack(folder: Path) -> Stack:
    plants = "".join(f'[[plant]]\nid = "p{n}"\nkind = "statement"\nhost = "m{n}:f"\nafter = "a()"\ncode = "b({n})"\n' for n in range(COUNT))
    manifest = f'number = 101\ntitle = "One"\ndisposition = "permanent"\nreason = "ours"\n{plants}'
    write_files(folder, {"stack.toml": 'name = "s"\n', "entries/101-one/entry.toml": manifest})
    return load_stack(folder)


@pytest.mark.parametrize("python", [None, "/nowhere/python", "/bin/false"])
def test_the_verdicts_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str | None) -> None:
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(helper, "_AFTER", 1)
    monkeypatch.setattr(helper, "_WORTH", 0)
    monkeypatch.setattr(process, "cores", lambda: 2)
    if python:
        monkeypatch.setattr(process.sys, "executable", python)
    stack = _stack(tmp_path / "stack")
    repository = repository_of(tmp_path / "repo", {f"python/m{n}.py": "def f():\n    a()\n    c()\n" for n in range(COUNT)})
    stock = GitTree(repository, "HEAD")
    commit_files(repository.path, {f"python/m{n}.py": f"def f():\n    a()\n    b({n})\n" for n in range(0, COUNT, 2)}, "plant half")
    tree, release = GitTree(repository, "HEAD"), Release("0.5.23")
    alone = verify(stack, tree, release, stock)
    with Memo() as memo, assisted(memo, stack, stack.entries, tree, stock, release) as judge:
        assert verify(stack, tree, release, stock, judge).to_json() == alone.to_json()


def test_the_helper_judges_what_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    stack = _stack(tmp_path / "stack")
    repository = repository_of(tmp_path / "repo", {f"python/m{n}.py": "def f():\n    a()\n" for n in range(COUNT)})
    tree, release = GitTree(repository, "HEAD"), Release("0.5.23")
    started = process.start(helper.__name__, helper._task(stack, stack.entries, tree, None, release))
    assert started is not None and started.wait(60) == 0
    with Memo() as memo:
        verify(stack, tree, release, None, memo.judge)
        assert memo.missed == 0
