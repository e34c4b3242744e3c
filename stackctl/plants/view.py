"""What a plant sees: one tree, parsed on demand, with unsaved changes on top, beside stock upstream."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Plant, Stack
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.module import Host, Module, holds
from stackctl.trees.source import Source, SourceError

if TYPE_CHECKING:
    from stackctl.trees.release import Release
    from stackctl.trees.tree import Tree

_ROOM = 1_000_000  # characters of parsed source that are held; a parsed one takes thirty times that in bytes


class View:
    """One tree under the eyes of plants. `stock` is upstream's own tree of the same release, if known.

    `seen` records what was read (path to blob id, None for a file that is not there), which is what a
    verdict depends on, and so what it can be kept under.
    """

    def __init__(self, tree: Tree, stack: Stack, release: Release, stock: View | None = None) -> None:
        self.tree = tree
        self.stack = stack
        self.release = release
        self.stock = stock
        self.judged: dict[tuple[int, str], Any] = {}  # of a stock view, whose tree never changes
        self.scanned: dict[Any, list[str]] = {}  # what tombstones found in the tree, changes aside
        self.changes: dict[str, bytes | None] = {}
        self.modes: dict[str, str] = {}  # Git modes that are not saved yet
        self.seen: dict[str, str | None] = {}
        self._read: tuple[str, bytes] = ("", b"")  # the file read last: all plants of one file follow each other
        self._edited: dict[str, Module] = {}
        # By blob id, shared with stock: most of a fork's files are upstream's own.
        self._parsed: _Parsed = stock._parsed if stock else _Parsed()

    def exists(self, path: str) -> bool:
        """Whether a regular file is there, unsaved changes counted."""
        if path in self.changes:
            self.seen["*"] = None  # what is not saved yet has no blob to keep a verdict under
            return self.changes[path] is not None
        self.seen[path] = found = self.blob(path)
        return found is not None

    def blob(self, path: str) -> str | None:
        """The blob id of a regular file as the tree has it, None if there is none."""
        return self.tree.blob(path) if self.tree.is_file(path) else None

    @property
    def whole(self) -> str | None:
        """What a verdict on every file of the tree can be kept under: its commit. None for any other tree."""
        return None if self.changes else getattr(self.tree, "commit", None)

    def read(self, path: str) -> bytes:
        """The bytes of a file that exists."""
        changed = self.changes.get(path)
        if changed is not None:
            return changed
        if self._read[0] != path:
            self._read = (path, self.tree.read(path))
        return self._read[1]

    def lacks(self, path: str, words: frozenset[str]) -> bool:
        """Whether a file cannot hold code with these words: told by its bytes, which is cheaper than parsing it."""
        if not words or not self.exists(path):
            return False
        try:
            text = Source.decode(self.read(path)).text
        except SourceError:
            return False
        # Python normalises names: in letters beyond ASCII one can be spelt otherwise.
        return not holds(text if text.isascii() else unicodedata.normalize("NFKC", text), words)

    def write(self, path: str, data: bytes | None) -> None:
        """Keep a changed file; None removes it. Refuses to write through a symlink."""
        if path in self.tree and not self.tree.is_file(path):
            raise Unplantable(Verdict.HOST_GONE, f"{path} is a symlink or a submodule; it is never written through")
        if path not in self.tree and any(other.startswith(f"{path}/") for other in self.tree.paths()):
            raise Unplantable(Verdict.HOST_GONE, f"{path} is a folder here")
        for folder in _parents(path):
            if folder in self.tree:
                raise Unplantable(Verdict.HOST_GONE, f"{folder} is a file or a symlink here, so {path} cannot be made")
        self.changes[path] = data
        self._edited.pop(path, None)

    def mode(self, path: str) -> str:
        """The Git mode of a file, unsaved changes counted; "" if there is none."""
        return self.modes.get(path) or (self.tree.mode(path) if path in self.tree else "")

    def path_of(self, module: str) -> str:
        """The path of a dotted module: its file, or its package's __init__ where that exists."""
        stem = "/".join([*filter(None, [self.stack.source]), *module.split(".")])
        package = f"{stem}/__init__.py"
        return package if not self.exists(f"{stem}.py") and self.exists(package) else f"{stem}.py"

    def module(self, path: str) -> Module:
        """The parsed module at `path`. Raises Unplantable if it is not there or does not parse."""
        if not self.exists(path):
            raise Unplantable(Verdict.HOST_GONE, f"{path} is not in this tree")
        if path in self.changes:
            if path not in self._edited:
                self._edited[path] = self._parse(path)
            return self._edited[path]
        blob = self.tree.blob(path)
        return self._parsed.get(blob) or self._parsed.keep(blob, self._parse(path))

    def _parse(self, path: str) -> Module:
        try:
            return Module(Source.decode(self.read(path)))
        except SourceError as error:
            raise Unplantable(Verdict.UNPARSABLE, f"{path} {error.reason}", error.line) from None

    def edit(self, path: str, text: str) -> None:
        """Keep a module's new text. A text that no longer parses is our bug and is never kept."""
        old = self.module(path).source
        try:
            new = Module(Source(text, old.encoding, old.bom))
        except SourceError as error:
            raise AssertionError(f"the planted text of {path} {error.reason} (line {error.line})") from None
        try:
            self.write(path, new.source.encode())
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            raise Unplantable(Verdict.UNDECIDED, f"{path} is in {old.encoding}, which has no {letter!r}") from None
        self._edited[path] = new

    def snapshot(self) -> dict[str, bytes | None]:
        """What is changed so far, to come back to with `restore`."""
        return dict(self.changes)

    def restore(self, changes: dict[str, bytes | None]) -> None:
        """Take back everything since `snapshot`."""
        self.changes = dict(changes)
        self._edited = {}


class _Parsed:
    """Parsed modules by blob id, those used last."""

    def __init__(self) -> None:
        self._modules: dict[str, Module] = {}
        self._size = 0

    def get(self, blob: str) -> Module | None:
        """A module that is still held."""
        module = self._modules.pop(blob, None)
        if module is not None:
            self._modules[blob] = module  # the youngest again
        return module

    def keep(self, blob: str, module: Module) -> Module:
        """Hold a module and let the oldest go; never all but it, for one plant reads a file on both sides."""
        self._modules[blob] = module
        self._size += len(module.source.text)
        while self._size > _ROOM and len(self._modules) > 8:
            self._size -= len(self._modules.pop(next(iter(self._modules))).source.text)
        return module


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def host_of(module: Module, plant: Plant, path: str) -> Host:
    """The host of a plant. Raises Unplantable with the line of the nearest host that is still there."""
    host = module.host(plant.symbol)
    if host is None:
        raise Unplantable(Verdict.HOST_GONE, f"{plant.symbol} is not defined in {path}", module.line_of(plant.symbol))
    return host


def entry_file(entry: Entry, plant: Plant, name: str) -> bytes:
    """The bytes of one of an entry's own files. Raises StackctlError if it is gone since loading."""
    try:
        return (entry.folder / name).read_bytes()
    except OSError as error:
        raise StackctlError(f"plant {plant.id}: {error.strerror}", str(entry.folder / name)) from None
