"""Assignments that a merge put one after the other: the second overwrites the first unread."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_TARGET = re.compile(r"^((?:self\.)?[A-Za-z_]\w*)(?:: [^=]+)? = ")

Place = tuple[str, str, tuple[str, ...]]


def overwritten(context: Context) -> Iterator[Finding]:
    """Two assignments of one name in one place, each from another side, with nothing between that reads it."""
    for path in context.own:
        if context.sides.problem("merged", path) or path not in context.sides.ours or path not in context.sides.theirs:
            continue
        facts = context.sides.facts("merged", path)
        twice = {place: found for place, found in assignments(facts).items() if len(found) > 1}
        if not twice:
            continue
        sides = [assignments(context.sides.facts(side, path)) for side in ("ours", "theirs")]
        for place, found in twice.items():
            if all(len(side.get(place, ())) < len(found) for side in sides) and _from_both(place, found, sides):
                for first, second in zip(found, found[1:], strict=False):
                    if not _read_between(facts, place, first, second):
                        yield _finding(path, place, first, second)


def assignments(facts: list[Fact]) -> dict[Place, list[Fact]]:
    """(host, target, branch) to the plain assignments of the target there."""
    found: dict[Place, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.kind == "statement" and fact.host and (target := _TARGET.match(fact.text)):
            found[fact.host, target[1], fact.under].append(fact)
    return found


def _from_both(place: Place, found: list[Fact], sides: list[dict[Place, list[Fact]]]) -> bool:
    """Whether both sides brought one: each has an assignment there, and none has them all."""
    texts = {fact.text for fact in found}
    return all(side.get(place) and {fact.text for fact in side[place]} <= texts for side in sides)


def _read_between(facts: list[Fact], place: Place, first: Fact, second: Fact) -> bool:
    host, target, _ = place
    name = re.compile(rf"(?<![\w.]){re.escape(target)}\b")
    if name.search(second.text.partition(" = ")[2]):
        return True
    return any(
        fact.host.startswith(host) and first.end < fact.line < second.line and name.search(fact.text) for fact in facts
    )


def _finding(path: str, place: Place, first: Fact, second: Fact) -> Finding:
    host, target, _ = place
    return Finding(
        Verdict.SHADOWED, f"`{target}` is assigned at line {first.line} and again at line {second.line}, unread between",
        path, first.line, host, evidence="each assignment is of another side",
    )  # fmt: skip
