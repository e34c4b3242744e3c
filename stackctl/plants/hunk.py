"""A unified diff, for what is not Python."""

from __future__ import annotations

import io
import os
import re
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
    from unidiff import PatchedFile, PatchSet

_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
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
        Example({"patch": "new.patch"}, "", "one\ntwo\n", files={"patches/new.patch": _NEW}, host="", says="a new file"),
        Example({"patch": "edit.patch"}, "", '{\n  "ours": 1,\n  "theirs": 2\n}\n', host="",
                files={"patches/edit.patch": _EDIT, "data.json": '{\n  "theirs": 2\n}\n'}),
        Example({"patch": "edit.patch"}, "", files={"patches/edit.patch": _EDIT, "data.json": "{}\n"}, host="",
                verdict=Verdict.HOST_GONE, says="the text that it changes is gone"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        name = plant.options["patch"]
        if "/" in name or "\\" in name or name in ("", ".", ".."):
            return [f"patch {name!r} is not a file name in patches/"]
        try:
            patch = _patch(_folder(entry) / name)
        except StackctlError as error:
            return [error.message]
        return [f"{name} {problem}" for file in patch for problem in _problems(file)] or ([] if len(patch) else [f"{name} holds no hunk"])

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


def _problems(file: PatchedFile) -> Iterator[str]:
    """Why one patched file could not be planted, or could never be missed."""
    path = _target(file)
    if _unsafe(path):
        yield f"changes {path!r}, which leaves the tree's root"
    if file.is_rename or file.is_binary_file:
        yield f"{'renames' if file.is_rename else 'holds a binary'} {path!r}: only changes of text can be planted"
    elif not len(file) and not file.is_added_file:
        yield f"holds no hunk of {path!r}"
    elif not file.is_added_file and not file.is_removed_file and not all(each.before and each.after for each in _changes(file)):
        yield f"has a hunk of {path!r} without lines of context, which matches nothing: make it with git diff -U3"


def _folder(entry: Entry) -> Path:
    """The stack's patches folder, beside entries/."""
    return entry.folder.parent.parent / "patches"


def _patch(path: Path) -> PatchSet:
    from unidiff import PatchSet, UnidiffParseError

    try:
        # latin-1 keeps every byte as it is, whatever the file's own encoding.
        return PatchSet(io.StringIO(path.read_bytes().decode("latin-1"), newline="\n"))
    except (OSError, ValueError) as error:
        raise StackctlError(f"{path.name}: {getattr(error, 'strerror', error)}", str(path)) from None
    except UnidiffParseError as error:
        raise StackctlError(f"{path.name} is not a unified diff: {error}", str(path)) from None


def _target(file: object) -> str:
    """The path that a patched file has afterwards (before, if the patch removes it)."""
    name = unquoted(file.source_file if file.is_removed_file else file.target_file)  # type: ignore[attr-defined]
    return name.split("/", 1)[1] if name.startswith(("a/", "b/")) else name


def unquoted(name: str) -> str:
    """A name as Git writes it: in quotes, with C's escapes, if it holds more than plain characters."""
    data = name.encode("latin-1")
    if name.startswith('"') and name.endswith('"'):
        data = re.sub(rb"\\([0-7]{3}|.)", lambda found: _escaped(found[1]), data[1:-1])
    return os.fsdecode(data)


def _escaped(code: bytes) -> bytes:
    return bytes([int(code, 8) & 255]) if code.isdigit() else _ESCAPES.get(code, code)


def _unsafe(path: str) -> bool:
    parts = path.split("/")
    return path.startswith("/") or "\\" in path or "\0" in path or any(p in ("", ".", "..") or p.lower() == ".git" for p in parts)


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
