"""A worktree of its own for a commit, written without any hook or filter of the repository."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.trees.export import export
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree


@contextlib.contextmanager
def scratch_worktree(repository: Repository, ref: str) -> Iterator[Path]:
    """The files of `ref` as a Git worktree in a temporary folder, gone at the end; symlinks are left out."""
    tree = GitTree(repository, ref)
    with tempfile.TemporaryDirectory(prefix="stackctl-attribute-", ignore_cleanup_errors=True) as name:
        folder, files = Path(name).resolve() / "tree", Path(name) / "files"
        repository.run("worktree", "add", "--quiet", "--no-checkout", "--detach", str(folder), tree.commit)
        try:
            files.mkdir()
            export(tree, files)  # Git's own checkout would run the repository's filters
            for child in files.iterdir():
                os.rename(child, folder / child.name)
            Repository(folder).run("read-tree", "HEAD")
            yield folder
        finally:
            with contextlib.suppress(StackctlError):
                repository.run("worktree", "remove", "--force", "--force", str(folder))
