"""From a merge in Git to its four sides, criss-cross histories included."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.trees.git import Repository
from stackctl.trees.tree import FolderTree, GitTree, OverlayTree, Tree


@dataclass(frozen=True)
class Merge:
    """One merge to judge. `bases` are the merge bases it stood on, more than one after a criss-cross."""

    base: Tree
    ours: Tree
    theirs: Tree
    merged: Tree
    bases: tuple[str, ...] = ()
    commit: str = ""


def side(name: str, repository: Repository | None) -> Tree:
    """A folder if there is one by that name (or no repository), else the tree of a Git ref."""
    if repository is None or Path(name).is_dir():
        return FolderTree(Path(name))
    return GitTree(repository, name)


def merge_of(repository: Repository, commit: str) -> Merge:
    """The four sides of a merge commit. Raises StackctlError for one that has not two parents."""
    parents = repository.parents(commit)
    if len(parents) != 2:
        raise StackctlError(
            f"{commit} has {len(parents)} parents, not two", str(repository.path),
            "name the four sides: --base A --ours B --theirs C --merged D",
        )  # fmt: skip
    bases = repository.merge_bases(*parents)
    if not bases:
        raise StackctlError(f"the parents of {commit} have no common ancestor", str(repository.path))
    ours, theirs = (GitTree(repository, parent) for parent in parents)
    base = virtual_base(repository, bases)
    return Merge(base, ours, theirs, GitTree(repository, commit), tuple(bases), repository.resolve(commit))


def merges_since(repository: Repository, since: str, until: str = "HEAD") -> list[str]:
    """The ids of the two-parent merges on the first-parent line after `since`, oldest first."""
    span = f"{repository.resolve(since)}..{repository.resolve(until)}"
    words = ["rev-list", "--first-parent", "--min-parents=2", "--max-parents=2", "--reverse", span]
    return repository.text(*words).split()


def virtual_base(repository: Repository, bases: Sequence[str]) -> Tree:
    """The one base that several merge bases amount to, made as `git merge` makes it: by merging them.

    Where they conflict both texts stand: a half that is in either of them is nobody's new half.
    """
    tree: Tree = GitTree(repository, bases[0])
    for other in bases[1:]:
        older = repository.merge_bases(bases[0], other)
        ancestor = virtual_base(repository, older) if older else None
        tree = _merged(repository, ancestor, tree, GitTree(repository, other))
    return tree


def _merged(repository: Repository, base: Tree | None, ours: Tree, theirs: Tree) -> Tree:
    changes: dict[str, bytes | None] = {}
    for path in sorted({*ours.paths(), *theirs.paths()}):
        old, one, two = (_blob(tree, path) for tree in (base, ours, theirs))
        if one == two or two == old:
            continue
        if one == old:
            changes[path] = theirs.read(path) if two else None
        elif one and two:
            texts = [tree.read(path) if tree is not None and path in tree else b"" for tree in (ours, base, theirs)]
            changes[path] = _union(*texts)
        else:
            changes[path] = (ours if one else theirs).read(path)
    return OverlayTree(ours, changes)


def _blob(tree: Tree | None, path: str) -> str:
    return tree.blob(path) if tree is not None and path in tree else ""


def _union(ours: bytes, base: bytes, theirs: bytes) -> bytes:
    """Both texts merged line by line; where they conflict, ours and then theirs."""
    with tempfile.TemporaryDirectory(prefix="stackctl-") as folder:
        names = []
        for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
            path = Path(folder, name)
            path.write_bytes(data)
            names.append(str(path))
        # A binary file makes git merge-file fail (255): ours then stands for both.
        done = subprocess.run(["git", "merge-file", "--union", "-p", *names], capture_output=True, check=False)
        return done.stdout if done.returncode < 128 else ours
