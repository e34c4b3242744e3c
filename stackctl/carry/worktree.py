"""The files of a branch that is checked out: what may not be overwritten, and how they are brought to a new tip."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.trees.git import FileEntry, Repository
from stackctl.trees.replacing import replace_file, scratch_of

Files = dict[str, FileEntry]


def refuse_changes(folder: Path, branch: str, *, checkout: bool) -> None:
    """Refuse a worktree with changes, and any worktree unless --checkout was given."""
    if changed := Repository(folder).changed_files():
        names = ", ".join(map(_printable, changed[:3])) + (" ..." if len(changed) > 3 else "")
        raise StackctlError(
            f"branch {branch} is checked out with changes: {names}", str(folder), "commit them, or write to another branch: --branch NAME"
        )
    if not checkout:
        raise StackctlError(
            f"branch {branch} is checked out", str(folder), "say --checkout to change the files there too, or --branch NAME"
        )


def refuse_untracked(folder: Path, branch: str, old: str, new: str) -> None:
    """Refuse to write over a file that Git does not know, or through a folder that is a symlink."""
    worktree = Repository(folder)
    before, after = _files(worktree, old), _files(worktree, new)
    for path in _changed(before, after):
        target = worktree.path / path
        taken = path not in before and os.path.lexists(target) and not _holds(worktree, target, after.get(path))
        if name := path if taken else _blocked(worktree.path, path):
            raise StackctlError(
                f"branch {branch} would write {_printable(path)}, and {_printable(name)} is in the way, which Git does not know",
                str(folder), "move it away, or write to another branch: --branch NAME",
            )  # fmt: skip


def write_files(worktree: Repository, old: str, new: str, *, sure: bool) -> None:
    """Write what differs between two commits into a worktree and its index, without any filter.

    `sure`: every file is known to be as `old` has it. Else, after a kill, a file that is neither side's was
    changed by somebody meanwhile and is left to them.
    """
    before, after = _files(worktree, old), _files(worktree, new)
    lines = []
    for path in _changed(before, after):
        target, entry = worktree.path / path, after.get(path)
        if _blocked(worktree.path, path) is None and (sure or _is_ours(worktree, target, before.get(path), entry)):
            _write(worktree, target, entry)
        mode, blob = (entry.mode, entry.blob) if entry else ("0", worktree.nothing)
        lines.append(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0")
    if lines:
        _write_index(worktree, b"".join(lines))


def _files(worktree: Repository, commit: str) -> Files:
    return {} if commit == worktree.nothing else worktree.files(commit)


def _changed(before: Files, after: Files) -> Iterator[str]:
    return (path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path))


def _blocked(root: Path, path: str) -> str | None:
    """The first folder of `path` that is no folder on disk."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        folder = root.joinpath(*parts[:depth])
        if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
            return "/".join(parts[:depth])
    return None


def _holds(worktree: Repository, target: Path, entry: FileEntry | None) -> bool:
    """Whether a regular file has an entry's bytes, line ends aside (core.autocrlf); None: no file at all."""
    if entry is None or not os.path.lexists(target):
        return entry is None and not os.path.lexists(target)
    if target.is_symlink() or not target.is_file():
        return False
    return target.read_bytes().replace(b"\r\n", b"\n") == worktree.blob(entry.blob).replace(b"\r\n", b"\n")


def _is_ours(worktree: Repository, target: Path, before: FileEntry | None, after: FileEntry | None) -> bool:
    return any(_holds(worktree, target, side) for side in (before, after))


def _write(worktree: Repository, target: Path, entry: FileEntry | None) -> None:
    scratch_of(target).unlink(missing_ok=True)
    if entry is None:
        target.unlink(missing_ok=True)
    elif entry.mode.startswith("100"):
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, worktree.blob(entry.blob), 0o755 if entry.mode == "100755" else 0o644)


def _write_index(worktree: Repository, lines: bytes) -> None:
    """Change a worktree's index by way of a copy of it.

    Git's own `index.lock`, left behind by a killed Git, says nothing of whose it is. Ours is a second
    name of the copy, so the next run knows it and takes it away.
    """
    index = Path(worktree.text("rev-parse", "--path-format=absolute", "--git-path", "index"))
    copy, lock = index.with_name("stackctl-index"), index.with_name("index.lock")
    if copy.exists() and lock.exists() and copy.samefile(lock):
        lock.unlink()
    for stale in (copy, copy.with_name("stackctl-index.lock")):
        stale.unlink(missing_ok=True)
    if index.exists():
        shutil.copyfile(index, copy)
    worktree.update_index(lines, copy)
    try:
        os.link(copy, lock)
    except FileExistsError:
        raise StackctlError(
            "another Git command is at work on the index", str(lock), "wait until it has ended, or remove the file if there is none; then run again"
        ) from None
    os.replace(lock, index)
    copy.unlink()


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
