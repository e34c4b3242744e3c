"""The units that wait for a person, as rows to show: what is proposed and why, and the three texts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from stackctl.carry.carrying import Carrier
from stackctl.carry.deciding import Unit
from stackctl.carry.merge3 import DROPPED, Half
from stackctl.carry.proposing import PLANT, UNDECIDED, Proposal


@dataclass(frozen=True)
class Texts:
    """One half of a unit in the three texts: the base's lines and ours; upstream's is the unit's."""

    line: int
    host: str
    base: str
    ours: str


@dataclass(frozen=True)
class Question:
    """One unit. `theirs`: upstream's code for it now, "" where nothing like it is known; `proposal`: plant, drop,
    undecided (nothing to agree to, similar code shown), or "" where there is nothing to show either."""

    unit: int
    path: str
    entries: tuple[int, ...]
    proposal: str
    proven: bool
    evidence: str
    proposed: str
    theirs: str
    halves: tuple[Texts, ...]

    @property
    def words(self) -> str:
        """What the proposal comes to, in a word or two."""
        if not self.proposal:
            return "no proposal"
        if self.proposal == UNDECIDED:
            return "undecided"
        return "plant as proposed" if self.proposal == PLANT else "leave out, proven" if self.proven else "leave out"


def questions(carrier: Carrier) -> list[Question]:
    """Every unit that still waits."""
    waiting = {}
    for entry in carrier.entries:
        if entry.number in carrier.fork.changes:
            for half in carrier.halves(entry.number):
                unit = carrier.decisions.unit_of(half)
                if unit and not half.settled and half.state != DROPPED:
                    waiting.setdefault(unit, set()).add(entry.number)
    return [_question(carrier, unit, sorted(waiting[unit])) for unit in carrier.decisions.units if unit in waiting]


def _question(carrier: Carrier, unit: Unit, entries: Sequence[int]) -> Question:
    decisions = carrier.decisions
    halves = [half for half in decisions.asked if (half.path, half.unit) == unit]
    proposal = decisions.proposals.get(unit)
    shown = proposal or Proposal(unit[1], "", "; ".join(dict.fromkeys(half.evidence for half in halves)), "")
    planted = shown.kind == PLANT
    return Question(
        decisions.units[unit], unit[0], tuple(entries), shown.kind, shown.proven, shown.evidence,
        shown.text if planted else "", "" if planted else shown.text, tuple(_texts(carrier, unit[0], halves)),
    )  # fmt: skip


def _texts(carrier: Carrier, path: str, halves: Sequence[Half]) -> Iterator[Texts]:
    base, ours = carrier.sides(path)
    for half in halves:
        yield Texts(half.rows[0] + 1, half.host, "".join(base[slice(*half.base_rows)]), "".join(ours[slice(*half.rows)]))


def to_json(asked: Sequence[Question]) -> list[dict[str, object]]:
    """Questions as JSON objects."""
    return [asdict(each) for each in asked]


def render_questions(asked: Sequence[Question], shown: Sequence[str] = (), *, fenced: bool = False) -> str:
    """A line or two for each unit; of those in `shown` ("3", "all") the three texts and the proposal as well."""
    if not asked:
        return ""
    parts = [f"{len(asked)} units wait for a person; agree with --accept N, leave out with --drop N, read with --show N:"]
    for each in asked:
        numbers = ", ".join(map(str, each.entries))
        parts.append(f"  unit {each.unit}: {each.words}: {each.path} (entry {numbers})\n    {each.evidence}")
        if str(each.unit) in shown or "all" in shown:
            parts += [_block(title, body, fenced) for title, body in _bodies(each)]
    return "\n".join(parts)


def _bodies(each: Question) -> Iterator[tuple[str, str]]:
    for half in each.halves:
        where = f"line {half.line} of ours{f', {half.host}' if half.host else ''}"
        yield f"base, {where}", half.base
        yield f"ours, {where}", half.ours
    yield "upstream now", each.theirs
    yield "proposed, as a change of upstream's text", each.proposed


def _block(title: str, body: str, fenced: bool) -> str:
    if not body.strip():
        return f"    --- {title}: nothing"
    text = body.rstrip("\n")
    if not fenced:
        return f"    --- {title}\n" + "\n".join(f"    | {line}" for line in text.split("\n"))
    ticks = "`" * max(3, 1 + max((len(run) for run in _ticks(text)), default=0))
    return f"\n{title}:\n\n{ticks}\n{text}\n{ticks}\n"


def _ticks(text: str) -> list[str]:
    """The runs of backticks in a text: a fence must be longer."""
    runs, run = [], ""
    for char in text:
        if char == "`":
            run += char
        elif run:
            runs.append(run)
            run = ""
    return [*runs, run] if run else runs
