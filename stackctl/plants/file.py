"""A whole new file of ours."""

from __future__ import annotations

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.view import View, entry_file


class File(Kind):
    """A file that is not upstream's, kept byte for byte.

    Where stock upstream has a file of that path too, ours is not put over it: that is for a person to
    decide, unless the entry's `adopted_by` says which symbols of upstream's replace ours.
    """

    name = "file"
    summary = "a new file of our own"
    host = "none"
    options = {
        "path": Option(str, "where it goes, from the tree's root", required=True),
        "source": Option(str, "the file in the entry's folder; default files/<path>"),
    }
    examples = (
        Example({"path": "pkg/new.py"}, "", "X = 1\n", files={"files/pkg/new.py": "X = 1\n"}, host="", says="a file that is missing"),
        Example({"path": "pkg/mod.py/new.py"}, "x = 1\n", files={"files/pkg/mod.py/new.py": "X = 1\n"}, host="",
                says="a file of upstream's where a folder is needed"),
    )

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        path = plant.options["path"]
        parts = path.split("/")
        bad = path.startswith("/") or "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts)
        if bad or any(part.lower() == ".git" for part in parts):
            return [f"path {path!r} leaves the tree's root or is not a plain relative path"]
        return []

    def files(self, plant: Plant) -> list[str]:
        return [plant.options.get("source", f"files/{plant.options['path']}")]

    def path(self, plant: Plant, view: View) -> str:
        return plant.options["path"]

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = plant.options["path"]
        ours = entry_file(entry, plant, self.files(plant)[0])
        if not view.exists(path):
            return Judgement(Verdict.LOST, "the file is not in this tree", path)
        if view.read(path) == ours:
            return Judgement(Verdict.INTACT, path=path, line=1)
        if view.stock and view.stock.exists(path) and view.stock.read(path) == view.read(path):
            return Judgement(
                Verdict.UNDECIDED, "upstream has a file of its own at this path", path, 1,
                evidence=f"stock upstream {view.stock.release} has it; name what replaces ours in the entry's adopted_by",
            )  # fmt: skip
        return Judgement(Verdict.ALTERED, "the file differs from the entry's own", path, _first_difference(view.read(path), ours))

    def leftover(self, plant: Plant, entry: Entry, view: View) -> bool:
        path = plant.options["path"]
        return view.exists(path) and view.read(path) == entry_file(entry, plant, self.files(plant)[0])

    def uproot(self, plant: Plant, entry: Entry, view: View) -> None:
        path, stock = plant.options["path"], view.stock
        view.write(path, stock.read(path) if stock and stock.exists(path) else None)

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        found = self.judge(plant, entry, view)
        if found.verdict is Verdict.UNDECIDED:
            raise Unplantable(Verdict.UNDECIDED, found.message)
        view.write(plant.options["path"], entry_file(entry, plant, self.files(plant)[0]))


def _first_difference(left: bytes, right: bytes) -> int:
    """The first line (from 1) at which two files differ."""
    for number, (one, other) in enumerate(zip(left.split(b"\n"), right.split(b"\n"), strict=False), 1):
        if one != other:
            return number
    return min(left.count(b"\n"), right.count(b"\n")) + 1
