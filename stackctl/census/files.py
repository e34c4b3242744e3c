"""Whole files: added, deleted or moved by a side, and there or not in merged."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.delta import Key
from stackctl.census.moves import Moves
from stackctl.census.sides import Sides
from stackctl.census.survival import Judged
from stackctl.model.verdict import Verdict


def judge_files(sides: Sides, moves: dict[str, Moves]) -> Iterator[Judged]:
    """One verdict per file that stands or is missing against what the two sides did."""
    for path, (base, ours, theirs, merged) in sides.differing.items():
        if bool(merged) == bool(base) == bool(ours) == bool(theirs):
            continue
        found = _present(base, ours, theirs) if merged else _absent(moves, path, base, ours, theirs)
        if found is not None:
            side, sign, verdict, evidence = found
            yield Judged(Key(path, "", "file", path), side, sign, verdict, evidence)


_Found = tuple[str, int, Verdict, str]


def _present(base: str, ours: str, theirs: str) -> _Found | None:
    """A file that merged has although a side deleted it."""
    if base and not ours and theirs:
        return "ours", -1, Verdict.RESURRECTED, "ours deleted the file, merged has it again"
    if base and ours and not theirs:
        if ours == base:
            return "theirs", -1, Verdict.UPSTREAM_LOST, "upstream deleted the file, merged has it again"
        return "theirs", -1, Verdict.UPSTREAM_LOST, "upstream deleted the file that ours changed; merged keeps it"
    return None


def _absent(moves: dict[str, Moves], path: str, base: str, ours: str, theirs: str) -> _Found | None:
    """A file that merged lacks although a side has it."""
    if base and not (ours and theirs) and (not ours or ours == base):
        return None
    if moves["merged"].gone(path):
        return None
    if base and not theirs:
        return "ours", 1, Verdict.HOST_GONE, "upstream deleted the file"
    if ours and ours != base:
        return "ours", 1, Verdict.LOST, "ours has the file, merged lacks it"
    return "theirs", 1, Verdict.UPSTREAM_LOST, "theirs has the file, merged lacks it"

