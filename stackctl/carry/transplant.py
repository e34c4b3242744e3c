"""Carry one side's edit of a text over to another version of the text, token by token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

_TOKEN = re.compile(r"\w+|[^\S\r\n]+|\r?\n|[^\w\s]")
_LIMIT = 6000


def transplant(base: str, edited: str, target: str, wanted: set[int]) -> Iterator[str]:
    """`target` with one edit of base -> edited made in it; only edits on the `wanted` lines of `edited`.

    An edit fits where the tokens it replaces stand in target as they stood in base, with a token
    next to it that matches too. Each fitting edit is offered alone, then all of them together.
    """
    old, new, now = _TOKEN.findall(base), _TOKEN.findall(edited), _TOKEN.findall(target)
    if max(len(old), len(new), len(now)) > _LIMIT:
        return
    edits = _edits(old, new, wanted)
    places = _matches(old, now)
    fitting = [(span, new[j1:j2]) for i1, i2, j1, j2 in edits if (span := _fit(places, i1, i2)) is not None]
    for span, tokens in fitting:
        yield "".join([*now[: span[0]], *tokens, *now[span[1] :]])
    if len(fitting) > 1:
        for (start, end), tokens in sorted(fitting, reverse=True):
            now[start:end] = tokens
        yield "".join(now)


def _edits(old: list[str], new: list[str], wanted: set[int]) -> list[tuple[int, int, int, int]]:
    """The edits whose new tokens lie on wanted lines; a pure deletion counts by the line it leaves."""
    lines, line = [], 0
    for token in new:
        lines.append(line)
        line += token.endswith("\n")
    lines.append(line)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        (i1, i2, j1, j2)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal" and wanted & set(lines[j1 : max(j2, j1 + 1)])
    ]


def _matches(old: list[str], now: list[str]) -> dict[int, int]:
    """Index in old to index in now, for the tokens that both have in order."""
    found = {}
    for start, there, size in SequenceMatcher(None, old, now, autojunk=False).get_matching_blocks():
        found.update({start + offset: there + offset for offset in range(size)})
    return found


def _fit(places: dict[int, int], first: int, last: int) -> tuple[int, int] | None:
    """The span of the target that stands for old[first:last], if it is whole and anchored."""
    if first < last:
        spots = [places.get(index) for index in range(first, last)]
        if None in spots or spots != list(range(spots[0], spots[0] + len(spots))):
            return None
        return spots[0], spots[-1] + 1
    before, after = places.get(first - 1), places.get(first)
    if before is not None:
        return before + 1, before + 1
    return (after, after) if after is not None else None
