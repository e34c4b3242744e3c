"""Conflict markers anywhere, docstrings included, and comments left by a merge for later."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from stackctl.census.markers import DEFAULT
from stackctl.census.rules.context import Context
from stackctl.facts.text import is_binary, text_lines
from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict

_OPENING = re.compile(r"^(<{7}|>{7}|\|{7})(?: .*)?$")
_MIDDLE = "======="
_LEFTOVER = re.compile(DEFAULT)


def markers(context: Context) -> Iterator[Finding]:
    """Markers in merged that its parents do not have, conflict markers one by one, leftovers by batch."""
    for path, blobs in context.sides.differing.items():
        if blobs[3] and blobs[3] not in (blobs[1], blobs[2]):
            yield from _conflict(context, path)
        if blobs[3] and blobs[3] != blobs[2]:
            yield from _leftover(context, path)


def _lines(context: Context, side: str, path: str) -> list[str]:
    if path not in context.sides.tree(side):
        return []
    data = context.sides.read(side, path)
    return [] if is_binary(data) else text_lines(data)


def _conflict(context: Context, path: str) -> Iterator[Finding]:
    lines = _lines(context, "merged", path)
    found = [number for number, line in enumerate(lines, 1) if _OPENING.match(line)]
    if not found:
        return
    known = {line for side in ("ours", "theirs") for line in _lines(context, side, path) if _OPENING.match(line)}
    new = [number for number in found if lines[number - 1] not in known]
    if new:
        middle = sum(line == _MIDDLE for line in lines)
        yield Finding(
            Verdict.MARKER, f"unresolved conflict markers at lines {', '.join(map(str, new))}", path, new[0],
            evidence=f"{len(new)} markers, {middle} separators; neither parent has them",
        )  # fmt: skip


def _leftover(context: Context, path: str) -> Iterator[Finding]:
    batches: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(_lines(context, "merged", path), 1):
        if found := _LEFTOVER.search(line):
            batches[found["batch"] or ""].append(number)
    for batch, numbers in batches.items():
        yield Finding(
            Verdict.MARKER, f"{len(numbers)} merge markers left for later{f' (batch {batch})' if batch else ''}",
            path, numbers[0], level=Level.WARNING, action="review",
        )  # fmt: skip
