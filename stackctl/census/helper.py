"""A second process for a long census: it judges from the other end and meets the first one in the middle.

All that the two share is the store of verdicts. What the helper has judged the first process finds there;
what it has not, for whatever reason, the first process judges itself.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stackctl.census.memo import Memo
from stackctl.census.verify import Judge, by_file
from stackctl.model.stack import Entry, Plant, Stack
from stackctl.plants.kind import Judgement
from stackctl.plants.stacks import open_stack
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import Release
from stackctl.trees.tree import FolderTree, GitTree, Tree

_AFTER = 20  # verdicts that were not known: a census of which little is to be judged needs no help
_WORTH = 200  # plants still to come


@contextlib.contextmanager
def assisted(memo: Memo, stack: Stack, entries: Sequence[Entry], tree: Tree, stock: Tree | None, release: Release) -> Iterator[Judge]:
    """A judge as `memo`'s own, with a helper beside it once it is clear that much is to be judged."""
    left = sum(len(entry.plants) for entry in entries)
    process: subprocess.Popen[bytes] | None = None

    def judge(entry: Entry, plant: Plant, view: View) -> Judgement:
        nonlocal left, process
        if memo.missed >= _AFTER and process is None and left > _WORTH and _cores() > 1:
            process = _start([str(stack.root.absolute()), [e.number for e in entries], _named(tree), _named(stock), vars(release)])
        left -= 1
        return memo.judge(entry, plant, view)

    try:
        yield judge
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _named(tree: Tree | None) -> list[str] | None:
    """A tree as words that `_tree` makes it from again; None for one that has no name."""
    if isinstance(tree, GitTree):
        return [str(tree.repository.path), tree.commit]
    return [str(tree.root.absolute())] if isinstance(tree, FolderTree) else None


def _tree(words: list[str]) -> Tree:
    return GitTree(Repository(Path(words[0])), words[1]) if len(words) > 1 else FolderTree(Path(words[0]))


def _start(task: list[Any]) -> subprocess.Popen[bytes] | None:
    """The helper at work. -P: the current folder may be the tree under audit, none of which is ever imported."""
    if task[2] is None:
        return None
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "stackctl.census.helper"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:  # type: ignore[union-attr]
            pipe.write(json.dumps(task).encode())
        return process
    return None


def main() -> None:
    """Judge what the task on stdin names, last file first."""
    gc.set_threshold(1_000_000, 50, 100)
    root, numbers, tree, stock, release = json.load(sys.stdin)
    stack, found = open_stack(Path(root)), Release(**release)
    view = View(_tree(tree), stack, found, View(_tree(stock), stack, found) if stock else None)
    with Memo() as memo:
        for entry, plant in reversed(by_file([entry for entry in stack.entries if entry.number in numbers])):
            memo.judge(entry, plant, view)


if __name__ == "__main__":
    main()
