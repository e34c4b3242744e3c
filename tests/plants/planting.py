"""One plant on a tree in memory: what the tests of every kind share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl.model.stack import Disposition, Entry, Plant, Stack
from stackctl.plants.kind import Example, Judgement
from stackctl.plants.registry import kinds
from stackctl.plants.view import View
from stackctl.trees.release import Release
from stackctl.trees.tree import blob_id
from tests.support import write_files

MODULE = "pkg/mod.py"


@dataclass
class MemoryTree:
    """A tree in memory; `links` are symlinks."""

    files: dict[str, bytes]
    links: frozenset[str] = field(default_factory=frozenset)
    label: str = "memory"

    def paths(self):
        return [*self.files, *self.links]

    def __contains__(self, path):
        return path in self.files or path in self.links

    def is_file(self, path):
        return path in self.files

    def mode(self, path):
        return "120000" if path in self.links else "100644"

    def blob(self, path):
        return blob_id(self.read(path))

    def read(self, path):
        return self.files[path]


@dataclass
class Bed:
    """A plant, the view it is planted on, and the entry it belongs to."""

    plant: Plant
    entry: Entry
    view: View

    @property
    def kind(self):
        return kinds()[self.plant.kind]

    def judge(self) -> Judgement:
        return self.kind.judge(self.plant, self.entry, self.view)

    def do_plant(self) -> None:
        self.kind.plant(self.plant, self.entry, self.view)

    def read(self, path: str = MODULE) -> bytes:
        return self.view.read(path)


def bed(
    folder: Path, kind: str, options: Mapping[str, Any], files: Mapping[str, str | bytes] | str | bytes, host: str = "pkg.mod:",
    stock: Mapping[str, str | bytes] | str | bytes | None = None, links: frozenset[str] = frozenset(),
) -> Bed:  # fmt: skip
    """A plant of `kind` on `files` (a text: that of pkg/mod.py); "files/..." and "patches/..." go into the stack."""
    files = files if isinstance(files, Mapping) else {MODULE: files}
    entry_folder = folder / "entries" / "001-test"
    entry_folder.mkdir(parents=True, exist_ok=True)
    write_files(entry_folder, {name: data for name, data in files.items() if name.startswith("files/")})
    write_files(folder, {name: data for name, data in files.items() if name.startswith("patches/")})
    plant = Plant("p", kind, host, options=options)
    entry = Entry(1, "test", "Test", entry_folder, Disposition.PERMANENT, (plant,))
    stack = Stack("test", folder, (entry,), source="")
    upstream = View(_tree(stock), stack, Release("1.0")) if stock is not None else None
    return Bed(plant, entry, View(_tree(files, links), stack, Release("1.0"), upstream))


def of_example(folder: Path, kind: str, example: Example) -> Bed:
    """The bed that an example describes."""
    files = dict(example.files)
    if example.before or not files:
        files[MODULE] = example.before
    return bed(folder, kind, example.options, files, example.host)


def _tree(files: Mapping[str, str | bytes] | str | bytes, links: frozenset[str] = frozenset()) -> MemoryTree:
    files = files if isinstance(files, Mapping) else {MODULE: files}
    own = {name: data.encode() if isinstance(data, str) else data for name, data in files.items() if not name.startswith(("files/", "patches/"))}
    return MemoryTree(own, links)
