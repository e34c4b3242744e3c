"""One entry as `stackctl show` has it: what was decided, and each half, with its verdict where a tree was judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackctl.reports.board import Board, Card, board_of, halves, legend, matrix_lines
from stackctl.reports.text import printable

if TYPE_CHECKING:
    from stackctl.model.report import LedgerRow, Report
    from stackctl.model.stack import Entry, Plant, Stack
    from stackctl.reports.matrix import Matrix

_TONES = {"error": "bad", "warning": "warn", "note": "good"}
_NO_ROW = {"kind": "", "entry": "", "plant": "", "path": "", "line": 0, "symbol": "", "evidence": "", "action": "none"}
_OWN_TONES = {"adopted": "info", "not-due": "calm"}


@dataclass(frozen=True)
class Half:
    """One half: where it is declared to be, or found; `verdict` and `tone` are empty where no tree was judged."""

    id: str
    kind: str
    place: str
    releases: str = ""
    verdict: str = ""
    tone: str = ""
    evidence: str = ""
    row: Mapping[str, Any] | None = None

    @property
    def says(self) -> str:
        """Its place, and the releases it is for."""
        return f"{self.place}{f' [{self.releases}]' if self.releases else ''}"


@dataclass(frozen=True)
class Shown:
    """One entry. `facts` are what its manifest says, by key, in reading order."""

    board: Board
    entry: Entry
    facts: Mapping[str, tuple[str, ...]]
    halves: tuple[Half, ...]

    @property
    def card(self) -> Card:
        """The entry's card."""
        return self.board.cards[0]

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """A row for each half in the words of every other command's; `kind` is "" where no tree was judged."""
        return [half.row or {**_NO_ROW, "entry": str(self.card.number), "plant": half.id} for half in self.halves]

    @property
    def notes(self) -> list[str]:
        """The lines of its notes."""
        return self.entry.notes.strip().splitlines()

    def to_json(self) -> dict[str, Any]:
        """The entry in the shape of every other command: its manifest is in the summary."""
        entry = self.entry
        plants = [
            {"id": p.id, "kind": p.kind, "host": p.host, "releases": p.releases, "unit": p.unit, **p.options} for p in entry.plants
        ]
        declared = {
            "decision": dict(entry.decision), "upstream": list(entry.upstream), "requires": list(entry.requires),
            "excludes": list(entry.excludes), "watch": list(entry.watch), "probes": {k: list(v) for k, v in entry.probes.items()},
            "notes": entry.notes, "digest": entry.digest,
        }  # fmt: skip
        return {
            "schema": 1, "command": "show", "entries": [self.card.to_json()], "ledger": self.ledger,
            "summary": {**self.board.summary, **declared, "plants": plants}, "findings": [],
        }  # fmt: skip


def shown_of(stack: Stack, entry: Entry, report: Report | None = None, matrix: Matrix | None = None) -> Shown:
    """One entry, with the verdicts of a census of it if there was one."""
    rows = {row.plant: row for row in report.ledger if row.entry == str(entry.number)} if report else {}
    parts = tuple(_half(plant, rows.get(plant.id)) for plant in entry.plants)
    return Shown(board_of(stack, [entry], report, matrix), entry, _facts(entry), parts)


def _half(plant: Plant, row: LedgerRow | None) -> Half:
    place = plant.host or str(plant.options.get("path") or plant.options.get("patch") or "the whole tree")
    if row is None:
        return Half(plant.id, plant.kind, place, plant.releases)
    verdict = str(row.verdict)
    found = f"{row.path}:{row.line} {row.symbol}".rstrip() if row.line else f"{row.path} {row.symbol}".strip()
    tone = _OWN_TONES.get(verdict) or _TONES[row.verdict.level]
    return Half(plant.id, plant.kind, found or place, plant.releases, verdict, tone, row.evidence, row.to_json())


def _facts(entry: Entry) -> dict[str, tuple[str, ...]]:
    decision = {key: (str(value),) for key, value in entry.decision.items()}
    facts = {
        "disposition": (str(entry.disposition),), **decision, "default": (entry.default,), "switch": (entry.switch,),
        "upstream": entry.upstream, "requires": tuple(map(str, entry.requires)), "excludes": tuple(map(str, entry.excludes)),
        "watch": entry.watch, "probes": tuple(f"{role}: {', '.join(names)}" for role, names in entry.probes.items()),
    }  # fmt: skip
    return {key: values for key, values in facts.items() if any(values)}


def render_shown(shown: Shown) -> str:
    """The entry as plain text."""
    return "\n".join(_lines(shown))


def _lines(shown: Shown) -> Iterator[str]:
    card = shown.card
    yield printable(f"{card.number} {card.title}") + (f": {card.verdict}" if card.verdict else "")
    for key, values in shown.facts.items():
        yield from (printable(f"  {key}: {value}") for value in values)
    if card.note:
        yield printable(f"  note: {card.note}")
    yield from ("", *(printable(f"  {line}").rstrip() for line in shown.notes)) if shown.notes else ()
    yield ""
    yield from _half_lines(shown.halves)
    if shown.board.matrix:
        yield from ("", *matrix_lines(shown.board.matrix), legend(shown.board.matrix.rows))


def _half_lines(parts: Sequence[Half]) -> Iterator[str]:
    judged = max((len(part.verdict) for part in parts), default=0)
    for part in parts:
        verdict = f"{part.verdict:<{judged}} " if judged else ""
        yield printable(f"  {verdict}{part.id:<24} {part.kind:<10} {part.says}")
        if part.tone in ("bad", "warn") and part.evidence:
            yield printable(f"    {part.evidence}")
    yield f"  {halves(len(parts))}"
