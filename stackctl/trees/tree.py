"""One interface to a tree of files: a Git ref, a folder, or a tree with unsaved changes on top."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stackctl.model.errors import StackctlError

if TYPE_CHECKING:
    from stackctl.trees.git import FileEntry, Repository


class Tree(Protocol):
    """A tree of files. Paths are POSIX, relative to the root; symlinks are never followed."""

    label: str

    def paths(self) -> Iterable[str]:
        """Every path, symlinks included."""

    def __contains__(self, path: str) -> bool:
        """Whether there is a file (or symlink) at `path`."""

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file at `path`: not a symlink, not a submodule."""

    def mode(self, path: str) -> str:
        """The Git mode of the file at `path`."""

    def blob(self, path: str) -> str:
        """The Git blob id (SHA-1, hex) of the file at `path`."""

    def read(self, path: str) -> bytes:
        """The bytes of the file at `path`; of a symlink, its target. Raises KeyError if there is none."""


class GitTree:
    """The tree of one commit, read without a checkout."""

    def __init__(self, repository: Repository, ref: str) -> None:
        self.repository = repository
        self.commit = repository.resolve(ref)
        self.label = ref

    @cached_property
    def _files(self) -> dict[str, FileEntry]:
        return self.repository.files(self.commit)

    def paths(self) -> Iterable[str]:
        return self._files.keys()

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def is_file(self, path: str) -> bool:
        entry = self._files.get(path)
        return entry is not None and entry.mode.startswith("100")

    def mode(self, path: str) -> str:
        return self._files[path].mode

    def blob(self, path: str) -> str:
        return self._files[path].blob

    def read(self, path: str) -> bytes:
        return self.repository.blob(self._files[path].blob)


def read_all(tree: Tree, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of many files of a tree, in the order asked for."""
    if not isinstance(tree, GitTree):
        yield from ((path, tree.read(path)) for path in paths)
        return
    wanted = list(paths)
    for path, (_, data) in zip(wanted, tree.repository.blobs(map(tree.blob, wanted)), strict=True):
        yield path, data


class FolderTree:
    """A folder on disk. `.git` is left out; a symlink is an entry of its own and never followed."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise StackctlError("no such folder", str(root))
        self.root = root
        self.label = str(root)
        self._blobs: dict[str, str] = {}

    @cached_property
    def _modes(self) -> dict[str, str]:
        return dict(sorted(_walk(str(self.root), "")))

    def paths(self) -> Iterable[str]:
        return self._modes.keys()

    def __contains__(self, path: str) -> bool:
        return path in self._modes

    def is_file(self, path: str) -> bool:
        return self._modes.get(path, "").startswith("100")

    def mode(self, path: str) -> str:
        return self._modes[path]

    def blob(self, path: str) -> str:
        if path not in self._blobs:
            self._blobs[path] = blob_id(self.read(path))
        return self._blobs[path]

    def read(self, path: str) -> bytes:
        if self._modes[path] == "120000":
            return os.fsencode(os.readlink(self.root / path))
        try:
            return (self.root / path).read_bytes()
        except OSError as error:
            raise StackctlError(f"cannot read: {error.strerror}", str(self.root / path)) from None


class OverlayTree:
    """A tree with changes on top that are not written anywhere yet; None removes a file."""

    def __init__(self, base: Tree, changes: Mapping[str, bytes | None]) -> None:
        self.base = base
        self.changes = changes
        self.label = base.label

    def paths(self) -> Iterable[str]:
        kept = [path for path in self.base.paths() if path not in self.changes]
        return kept + [path for path, data in self.changes.items() if data is not None]

    def __contains__(self, path: str) -> bool:
        return self.changes[path] is not None if path in self.changes else path in self.base

    def is_file(self, path: str) -> bool:
        return path in self if path in self.changes else self.base.is_file(path)

    def mode(self, path: str) -> str:
        return self.base.mode(path) if path in self.base else "100644"

    def blob(self, path: str) -> str:
        return blob_id(self.read(path)) if path in self.changes else self.base.blob(path)

    def read(self, path: str) -> bytes:
        if path not in self.changes:
            return self.base.read(path)
        data = self.changes[path]
        if data is None:
            raise KeyError(path)
        return data


def blob_id(data: bytes) -> str:
    """Git's SHA-1 name of a blob with these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _walk(root: str, prefix: str) -> Iterator[tuple[str, str]]:
    """(path, mode) of every file and symlink below `root/prefix`."""
    try:
        entries = list(os.scandir(os.path.join(root, prefix)))
    except OSError as error:
        raise StackctlError(f"cannot list: {error.strerror}", os.path.join(root, prefix)) from None
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if entry.is_symlink():
            yield path, "120000"
        elif entry.is_dir():
            if entry.name != ".git":
                yield from _walk(root, f"{path}/")
        elif entry.is_file():
            yield path, "100755" if entry.stat().st_mode & stat.S_IXUSR else "100644"
