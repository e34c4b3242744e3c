"""Write a tree out as a folder."""

from __future__ import annotations

from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.trees.tree import Tree


def export(tree: Tree, folder: Path) -> None:
    """Write the regular files of `tree` below `folder`, which must be empty or not there; symlinks are left out."""
    if folder.exists() and any(folder.iterdir()):
        raise StackctlError("the folder is not empty", str(folder), "name another one")
    for path in tree.paths():
        if not tree.is_file(path) or _leaves(path):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(tree.read(path))
        if tree.mode(path) == "100755":
            target.chmod(0o755)


def _leaves(path: str) -> bool:
    """Git refuses such names itself; a tree that was made by hand may hold them."""
    return path.startswith("/") or any(part in ("", ".", "..") or part.lower() == ".git" for part in path.split("/"))
