"""A second process beside a long run. All that the two share is a store of what is found out.

What the second has found the first one finds there; what it has not, for whatever reason, the first finds out itself.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from stackctl.trees.git import Repository
from stackctl.trees.tree import FolderTree, GitTree, Tree


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def named(tree: Tree | None) -> list[str] | None:
    """A tree as words that `tree_of` makes it from again; None for one that has no name."""
    if isinstance(tree, GitTree):
        return [str(tree.repository.path), tree.commit]
    return [str(tree.root.absolute())] if isinstance(tree, FolderTree) else None


def tree_of(words: list[str]) -> Tree:
    """The tree that `named` put into words."""
    return GitTree(Repository(Path(words[0])), words[1]) if len(words) > 1 else FolderTree(Path(words[0]))


def start(module: str, task: list[Any]) -> subprocess.Popen[bytes] | None:
    """`python -m module` at work on a task, None if it cannot be started.

    -P: the current folder may be the tree under audit, none of which is ever imported.
    """
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:  # type: ignore[union-attr]
            pipe.write(json.dumps(task).encode())
        return process
    return None


def stop(process: subprocess.Popen[bytes] | None) -> None:
    """End it, whatever it is at: what it has stored is whole."""
    if process is not None:
        process.kill()
        process.wait()


def task() -> list[Any]:
    """In the second process: what it was started for."""
    gc.set_threshold(1_000_000, 50, 100)  # trees of syntax hold no cycles
    return json.load(sys.stdin)
