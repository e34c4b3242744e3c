"""A unified diff, for what is not Python."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.view import View

if TYPE_CHECKING:
    from unidiff import PatchSet

_NEW = """--- /dev/null
+++ b/NOTICE.txt
@@ -0,0 +1,2 @@
+one
+two
"""
_EDIT = """--- a/data.json
+++ b/data.json
@@ -1,3 +1,4 @@
 {
+  "ours": 1,
   "theirs": 2
 }
"""


@dataclass(frozen=True)
class _Change:
    """One hunk as bytes: its lines before and after, and where the patch says it stands."""

    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    line: int


class Hunk(Kind):
    """Every hunk of one patch file, found by its own text: exactly once, wherever it moved to.

    A hunk whose text before stands at no place, or at two, is never placed.
    """

    name = "hunk"
    summary = "a text patch, for what is not Python"
    host = "none"
    options = {"patch": Option(str, "the patch's file name in the stack's patches/ folder", required=True)}
    examples = (
        Example({"patch": "new.patch"}, "", files={"patches/new.patch": _NEW}, host="", says="a new file"),
        Example({"patch": "edit.patch"}, "", files={"patches/edit.patch": _EDIT, "data.json": '{\n  "theirs": 2\n}\n'}, host=""),
    )

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        name = plant.options["patch"]
        if "/" in name or "\\" in name or name in ("", ".", ".."):
            return [f"patch {name!r} is not a file name in patches/"]
        try:
            patch = _patch(_folder(entry) / name)
        except StackctlError as error:
            return [error.message]
        bad = [path for file in patch if _unsafe(path := _target(file))]
        return [f"{name} changes {path!r}, which leaves the tree's root" for path in bad] or (
            [] if len(patch) else [f"{name} holds no hunk"]
        )

    def path(self, plant: Plant, view: View) -> str:
        return ""

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        patch = _patch(_folder(entry) / plant.options["patch"])
        for file in patch:
            path = _target(file)
            if file.is_removed_file:
                if view.exists(path):
                    return Judgement(Verdict.RESURRECTED, "the patch removes this file and it is here", path, 1)
                continue
            if not view.exists(path):
                verdict = Verdict.LOST if file.is_added_file else Verdict.HOST_GONE
                return Judgement(verdict, "the file is not in this tree", path)
            judged = _judge_file(view.read(path), list(_changes(file)), path, new=file.is_added_file)
            if judged.verdict is not Verdict.INTACT:
                return judged
        return Judgement(Verdict.INTACT, path=_target(patch[0]), line=1)

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        for file in _patch(_folder(entry) / plant.options["patch"]):
            path = _target(file)
            if file.is_removed_file:
                if view.exists(path):
                    view.write(path, None)
            elif file.is_added_file:
                view.write(path, b"".join(line for change in _changes(file) for line in change.after))
            else:
                view.write(path, _applied(view, path, list(_changes(file))))


def _folder(entry: Entry) -> Path:
    """The stack's patches folder, beside entries/."""
    return entry.folder.parent.parent / "patches"


def _patch(path: Path) -> PatchSet:
    from unidiff import PatchSet, UnidiffParseError

    try:
        # latin-1 keeps every byte as it is, whatever the file's own encoding.
        return PatchSet(io.StringIO(path.read_bytes().decode("latin-1"), newline="\n"))
    except OSError as error:
        raise StackctlError(f"{path.name}: {error.strerror}", str(path)) from None
    except UnidiffParseError as error:
        raise StackctlError(f"{path.name} is not a unified diff: {error}", str(path)) from None


def _target(file: object) -> str:
    """The path that a patched file has afterwards (before, if the patch removes it)."""
    name = file.source_file if file.is_removed_file else file.target_file  # type: ignore[attr-defined]
    return name.split("/", 1)[1] if name.startswith(("a/", "b/")) else name


def _unsafe(path: str) -> bool:
    parts = path.split("/")
    return path.startswith("/") or "\\" in path or any(p in ("", ".", "..") or p.lower() == ".git" for p in parts)


def _changes(file: object) -> Iterator[_Change]:
    for hunk in file:  # type: ignore[attr-defined]
        before: list[bytes] = []
        after: list[bytes] = []
        sides: tuple[list[bytes], ...] = ()
        for line in hunk:
            if line.line_type == "\\":  # "no newline at end of file" speaks of the line just read
                for side in sides:
                    side[-1] = side[-1].rstrip(b"\n")
                continue
            sides = {"-": (before,), "+": (after,)}.get(line.line_type, (before, after))
            for side in sides:
                side.append(line.value.encode("latin-1"))
        yield _Change(tuple(before), tuple(after), hunk.source_start)


def _judge_file(data: bytes, changes: list[_Change], path: str, *, new: bool) -> Judgement:
    lines = _lines(data)
    if new:
        wanted = [line for change in changes for line in change.after]
        same = lines == wanted
        return Judgement(Verdict.INTACT if same else Verdict.ALTERED, "the file differs from the patch's", path, 1)
    for change in changes:
        if len(_places(lines, change.after)) == 1:
            continue
        places = _places(lines, change.before)
        verdict = Verdict.LOST if len(places) == 1 else Verdict.HOST_GONE if not places else Verdict.AMBIGUOUS
        line = places[0] + 1 if places else min(change.line, len(lines))
        return Judgement(verdict, f"a hunk's text before stands at {len(places)} places", path, line)
    return Judgement(Verdict.INTACT, path=path, line=1)


def _lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _places(lines: list[bytes], block: tuple[bytes, ...]) -> list[int]:
    """Every index at which `block` stands in `lines`."""
    size = len(block)
    return [i for i in range(len(lines) - size + 1) if lines[i] == block[0] and tuple(lines[i : i + size]) == block] if block else []


def _applied(view: View, path: str, changes: list[_Change]) -> bytes:
    if not view.exists(path):
        raise Unplantable(Verdict.HOST_GONE, f"{path} is not in this tree")
    lines = _lines(view.read(path))
    for change in changes:
        if len(_places(lines, change.after)) == 1:
            continue
        places = _places(lines, change.before)
        if len(places) != 1:
            verdict = Verdict.AMBIGUOUS if places else Verdict.HOST_GONE
            raise Unplantable(verdict, f"a hunk's text before stands at {len(places)} places in {path}, once expected", change.line)
        lines[places[0] : places[0] + len(change.before)] = change.after
    return b"".join(lines)
