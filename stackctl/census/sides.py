"""The four sides of a merge, and the facts of any file on any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from stackctl.facts.cache import FactsCache
from stackctl.facts.search import read_many
from stackctl.facts.statements import Fact
from stackctl.facts.text import is_binary, read_text_facts
from stackctl.trees.source import Source, SourceError
from stackctl.trees.tree import Tree

SIDES = ("base", "ours", "theirs", "merged")
_SUFFIXES = (".py", ".pyi", ".pyx")
# A lock file or a data dump of megabytes tells nothing line by line.
_LARGEST_TEXT = 2_000_000


def is_python(path: str) -> bool:
    """Whether `path` is read as Python (Cython falls back to text wherever it is not)."""
    return path.endswith(_SUFFIXES)


@dataclass
class Sides:
    """Base, ours, theirs and merged, each a tree; facts are read once per blob."""

    base: Tree
    ours: Tree
    theirs: Tree
    merged: Tree
    cache: FactsCache
    backwards: bool = False  # the order of all files; what is found is the same
    _bytes: dict[str, bytes] = field(default_factory=dict)
    _lines: dict[str, Counter[bytes]] = field(default_factory=dict)

    def tree(self, side: str) -> Tree:
        """The tree of one side by its name."""
        return getattr(self, side)

    def blob(self, side: str, path: str) -> str:
        """The blob id of `path` on one side; empty where there is no file."""
        tree = self.tree(side)
        return tree.blob(path) if path in tree else ""

    def blobs(self, path: str) -> tuple[str, str, str, str]:
        """The blob ids of `path` on the four sides."""
        return tuple(self.blob(side, path) for side in SIDES)  # type: ignore[return-value]

    @cached_property
    def paths(self) -> list[str]:
        """Every path of any side, in order."""
        return sorted(set().union(*(self.tree(side).paths() for side in SIDES)), reverse=self.backwards)

    @cached_property
    def differing(self) -> dict[str, tuple[str, str, str, str]]:
        """The paths whose blob is not the same on all four sides, with the four blob ids."""
        found = {}
        for path in self.paths:
            blobs = self.blobs(path)
            if len(set(blobs)) > 1:
                found[path] = blobs
        return found

    def only_theirs(self, path: str) -> bool:
        """Whether upstream alone changed a file, and merged took it as it is."""
        base, ours, theirs, merged = self.differing[path]
        return ours == base and merged == theirs

    def read(self, side: str, path: str) -> bytes:
        """The bytes of `path` on one side."""
        tree = self.tree(side)
        held = self._bytes.get(tree.blob(path)) if self._bytes else None
        return tree.read(path) if held is None else held

    def lines(self, side: str, path: str) -> Counter[bytes]:
        """The lines of a file that are not blank, without indentation, counted."""
        blob = self.blob(side, path)
        if blob not in self._lines:
            data = self._bytes.pop(blob, None) or self.read(side, path)
            self._lines[blob] = Counter(line.strip() for line in data.splitlines() if line.strip())
        return self._lines[blob]

    def prefetch(self, side: str, paths: Iterable[str]) -> None:
        """Read many files with one Git process, for those who will ask for them next."""
        tree = self.tree(side)
        wanted = [p for p in paths if p in tree and tree.is_file(p) and tree.blob(p) not in self._bytes]
        for path, data in read_many(tree, wanted):
            self._bytes[tree.blob(path)] = data

    def facts(self, side: str, path: str, as_text: bool = False) -> list[Fact]:
        """The facts of one file; of none if it is not there. Text lines where `ast` cannot read it."""
        if path not in (tree := self.tree(side)):
            return []
        if is_python(path) and not as_text and tree.is_file(path):
            facts, problem = self.cache.statements(tree.blob(path), lambda: tree.read(path))
            if problem is None:
                return facts
        data = tree.read(path)
        if is_binary(data) or len(data) > _LARGEST_TEXT:
            return [Fact("", "line", f"bytes {tree.blob(path)}", (), 1, 1)]
        return read_text_facts(data, is_python(path))

    def problem(self, side: str, path: str) -> tuple[str, int] | None:
        """Why the file cannot be parsed on one side (reason, line), or None."""
        tree = self.tree(side)
        if not is_python(path) or path not in tree or not tree.is_file(path):
            return None
        return self.cache.statements(tree.blob(path), lambda: tree.read(path))[1]

    def source(self, side: str, path: str) -> Source | None:
        """The decoded file, or None where there is none or it cannot be decoded."""
        try:
            return Source.decode(self.read(side, path)) if path in self.tree(side) else None
        except SourceError:
            return None
