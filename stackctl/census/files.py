"""Whole files: added, deleted or moved by a side, and there or not in merged."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.delta import Key
from stackctl.census.moves import Moves, closest_file
from stackctl.census.sides import Sides
from stackctl.census.survival import Judged
from stackctl.model.verdict import Verdict


def judge_files(sides: Sides, moves: dict[str, Moves]) -> Iterator[Judged]:
    """One verdict per file that stands or is missing against what the two sides did."""
    for path, (base, ours, theirs, merged) in sides.differing.items():
        if bool(merged) == bool(base) == bool(ours) == bool(theirs):
            continue
        found = _present(base, ours, theirs) if merged else _absent(sides, moves, path, base, ours, theirs)
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
        return "ours", 1, Verdict.UNOWNED, "upstream deleted the file that ours changed; merged keeps it"
    return None


def _absent(
    sides: Sides, moves: dict[str, Moves], path: str, base: str, ours: str, theirs: str
) -> _Found | None:
    """A file that merged lacks although a side has it."""
    if base and not (ours and theirs) and (not ours or ours == base):
        return None
    if moves["merged"].gone(path) or _stands_elsewhere(sides, path, "ours" if ours else "theirs"):
        return None
    if base and not theirs:
        return "ours", 1, Verdict.HOST_GONE, "upstream deleted the file"
    if ours and ours != base:
        return "ours", 1, Verdict.LOST, "ours has the file, merged lacks it"
    return "theirs", 1, Verdict.UPSTREAM_LOST, "theirs has the file, merged lacks it"


def _stands_elsewhere(sides: Sides, path: str, side: str) -> bool:
    """Whether merged holds the file under a name of its own."""
    own = [p for p in sides.merged.paths() if p not in sides.base and p not in sides.tree(side)]
    return bool(own) and bool(closest_file(sides, side, path, "merged", own))

