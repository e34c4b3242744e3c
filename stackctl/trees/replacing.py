"""Files on disk replaced whole: one at a time by a rename, several of a folder all or none.

A reader of one file sees the old bytes or the new ones. What is to be done to several is written down in a
journal first: a kill before that leaves the old state, one after it a run that `finish_rewrite` completes.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stackctl.model.errors import StackctlError

JOURNAL = ".stackctl-rewrite.json"


@dataclass(frozen=True)
class Held:
    """What stands at a path: a file's bytes and permissions, or a link's target."""

    data: bytes
    mode: int = 0o644
    link: bool = False

    @property
    def digest(self) -> str:
        """Of its bytes and kind: permissions are not compared."""
        return hashlib.sha256(bytes([self.link]) + self.data).hexdigest()


@dataclass(frozen=True)
class _Change:
    """One path to change: the digest of what it had ("": nothing), and what it is to have."""

    path: str
    old: str
    new: Held | None


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file by renaming a finished one over it: a reader sees the old bytes or the new ones.

    The other name is always the same, so that what a kill leaves is taken up by the next run.
    """
    scratch = scratch_of(path)
    scratch.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.chmod(scratch, mode)
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def scratch_of(path: Path) -> Path:
    """The other name under which a file is written before it is renamed."""
    return path.with_name(f".stackctl-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]}.tmp")


def held(path: Path) -> Held | None:
    """What stands at a path, None for nothing (or a folder)."""
    if path.is_symlink():
        return Held(os.fsencode(os.readlink(path)), 0o777, link=True)
    return Held(path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) if path.is_file() else None


def rewrite(root: Path, files: Mapping[str, Held | bytes | None]) -> list[str]:
    """Write, and with None remove, files below `root`, all or none; the paths that changed.

    Bytes keep the permissions that the file has. An error midway takes back what was done.
    """
    with _locked(root):
        _finish(root)
        before = {path: held(root / path) for path in files}
        wanted = {path: _wanted(new, before[path]) for path, new in files.items()}
        changes = [
            _Change(path, old.digest if old else "", wanted[path]) for path, old in before.items() if wanted[path] != old
        ]  # fmt: skip
        if changes:
            replace_file(root / JOURNAL, json.dumps([_row(change) for change in changes]).encode())
            try:
                _do(root, {change.path: change.new for change in changes})
            except Exception:
                _do(root, {change.path: before[change.path] for change in changes})
                (root / JOURNAL).unlink()
                raise
            (root / JOURNAL).unlink()
    return [change.path for change in changes]


def finish_rewrite(root: Path) -> None:
    """Complete what a killed run began; nothing to do costs two looks.

    Raises StackctlError where somebody changed one of its files meanwhile: nothing is written over.
    """
    if (root / JOURNAL).exists() or scratch_of(root / JOURNAL).exists():
        try:
            with _locked(root):
                _finish(root)
        except OSError as error:
            raise StackctlError(
                f"a run was stopped that rewrote several files, and it cannot be finished: {error.strerror}", str(root), "make the folder writable"
            ) from None


def _finish(root: Path) -> None:
    scratch_of(root / JOURNAL).unlink(missing_ok=True)
    if not (root / JOURNAL).exists():
        return
    changes = _read(root)
    now = {change.path: held(root / change.path) for change in changes}
    for change in changes:
        here = now[change.path]
        if (here.digest if here else "") not in (change.old, change.new.digest if change.new else ""):
            raise StackctlError(
                f"a run that was to rewrite {len(changes)} files was stopped, and {change.path} was changed since",
                str(root), f"put that file back as it was before, or remove {JOURNAL} and keep what is there",
            )  # fmt: skip
    _do(root, {change.path: change.new for change in changes})
    (root / JOURNAL).unlink()


def _do(root: Path, files: Mapping[str, Held | None]) -> None:
    """Bring files to a state: first what is written, then what goes, with the folders that are empty then."""
    for path, new in files.items():
        if new is not None and held(root / path) != new:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            _put(root / path, new)
    for path, new in files.items():
        if new is None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                (root / path).unlink()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                scratch_of(root / path).unlink()
            _prune(root, Path(path).parts)


def _put(path: Path, new: Held) -> None:
    if not new.link:
        replace_file(path, new.data, new.mode)
        return
    scratch = scratch_of(path)
    scratch.unlink(missing_ok=True)
    os.symlink(new.data, os.fsencode(scratch))
    os.replace(scratch, path)


def _prune(root: Path, parts: tuple[str, ...]) -> None:
    """Remove the folder below the first one of a path if no file is left anywhere in it."""
    folder = root.joinpath(*parts[:2])
    if len(parts) > 2 and folder.is_dir() and not any(names for _, _, names in os.walk(folder)):
        for empty, _, _ in os.walk(folder, topdown=False):
            os.rmdir(empty)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One rewriter of a folder at a time; the lock is the folder's own, and gone with a killed run."""
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _wanted(new: Held | bytes | None, old: Held | None) -> Held | None:
    return Held(new, old.mode if old and not old.link else 0o644) if isinstance(new, bytes) else new


def _row(change: _Change) -> dict[str, object]:
    new = change.new
    kept = {"data": base64.b64encode(new.data).decode(), "mode": new.mode, "link": new.link} if new else None
    return {"path": change.path, "old": change.old, "new": kept}


def _read(root: Path) -> list[_Change]:
    """The journal. Raises StackctlError for one that is not ours, or that would leave the folder."""
    try:
        rows = json.loads((root / JOURNAL).read_bytes())
        changes = [_Change(str(row["path"]), str(row["old"]), _new(row["new"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, binascii.Error) as error:
        raise StackctlError(f"the journal of a stopped run cannot be read: {error}", str(root / JOURNAL), "remove it") from None
    for change in changes:
        path = Path(change.path)
        outside = not (root / path).parent.resolve().is_relative_to(root.resolve())  # a folder that is a link
        if path.is_absolute() or ".." in path.parts or outside:
            raise StackctlError(f"the journal names {change.path}, which is not below it", str(root / JOURNAL), "remove it")
    return changes


def _new(row: Mapping[str, object] | None) -> Held | None:
    if row is None:
        return None
    return Held(base64.b64decode(str(row["data"]), validate=True), int(str(row["mode"])), bool(row["link"]))
