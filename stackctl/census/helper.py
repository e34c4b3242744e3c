"""A second process for a long census: it judges from the other end and meets the first one in the middle."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from stackctl.census import process
from stackctl.census.memo import Memo
from stackctl.census.verify import Judge, by_file
from stackctl.model.stack import Entry, Plant, Stack
from stackctl.plants.kind import Judgement
from stackctl.plants.stacks import open_stack
from stackctl.plants.view import View
from stackctl.trees.release import Release
from stackctl.trees.tree import Tree

_AFTER = 20  # verdicts that were not known: a census of which little is to be judged needs no help
_WORTH = 200  # plants still to come


@contextlib.contextmanager
def assisted(memo: Memo, stack: Stack, entries: Sequence[Entry], tree: Tree, stock: Tree | None, release: Release) -> Iterator[Judge]:
    """A judge as `memo`'s own, with a helper beside it once it is clear that much is to be judged."""
    left = sum(len(entry.plants) for entry in entries)
    helper: subprocess.Popen[bytes] | None = None
    able = process.named(tree) is not None and process.cores() > 1

    def judge(entry: Entry, plant: Plant, view: View) -> Judgement:
        nonlocal left, helper
        if able and memo.missed >= _AFTER and helper is None and left > _WORTH:
            helper = process.start(__name__, _task(stack, entries, tree, stock, release))
        left -= 1
        return memo.judge(entry, plant, view)

    try:
        yield judge
    finally:
        process.stop(helper)


def _task(stack: Stack, entries: Sequence[Entry], tree: Tree, stock: Tree | None, release: Release) -> list[object]:
    return [str(stack.root.absolute()), [e.number for e in entries], process.named(tree), process.named(stock), vars(release)]


def main() -> None:
    """Judge what the task on stdin names, last file first."""
    root, numbers, tree, stock, release = process.task()
    stack, found = open_stack(Path(root)), Release(**release)
    view = View(process.tree_of(tree), stack, found, View(process.tree_of(stock), stack, found) if stock else None)
    with Memo() as memo:
        for entry, plant in reversed(by_file([entry for entry in stack.entries if entry.number in numbers])):
            memo.judge(entry, plant, view)


if __name__ == "__main__":
    main()
