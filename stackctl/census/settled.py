"""What an audit says, in the light of the stack's own census: the audit knows no declarations, the census does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from stackctl.census.attribution import entry_rows
from stackctl.model.report import EntryRow, Finding, LedgerRow, Report
from stackctl.model.stack import Stack
from stackctl.model.verdict import EntryVerdict, Verdict

ADOPTED = "the census found it adopted: upstream has it in a form of its own"
# What the audit says of our form of a half where another stands in its place.
_MISSED = (Verdict.LOST, Verdict.ALTERED, Verdict.COMMENT_LOST)
Places = frozenset[tuple[str, ...]]


def adopted_places(stack: Stack | None, entries: Iterable[EntryRow], ledger: Iterable[LedgerRow]) -> Places:
    """(entry), (entry, path) or (entry, path, symbol) of what a census found adopted, and nothing else of there."""
    files = {(str(e.number), p.id) for e in (stack.entries if stack else ()) for p in e.plants if p.kind == "file"}
    places: dict[tuple[str, ...], bool] = {(row.number,): row.verdict is EntryVerdict.ADOPTED for row in entries}
    for row in ledger:
        place = (row.entry, row.path) if (row.entry, row.plant) in files else (row.entry, row.path, row.symbol)
        places[place] = places.get(place, True) and row.verdict is Verdict.ADOPTED
    return frozenset(place for place, adopted in places.items() if adopted)


def is_adopted(item: Finding | LedgerRow, places: Places) -> bool:
    """Whether an audit misses our form of a half that the census has proved on stock upstream to be adopted."""
    kind = item.kind if isinstance(item, Finding) else item.verdict
    reaches = ((item.entry,), (item.entry, item.path), (item.entry, item.path, item.symbol))
    return kind in _MISSED and any(place in places for place in reaches)


def without(report: Report, places: Places, meant: Callable[[Finding | LedgerRow], bool] = lambda item: False) -> Report:
    """An audit without what is adopted, and without what was meant; its rows of entries are made anew."""
    findings = tuple(f for f in report.findings if not is_adopted(f, places) and not meant(f))
    ledger = tuple(
        replace(row, verdict=Verdict.ADOPTED, evidence=ADOPTED) if is_adopted(row, places) else row
        for row in report.ledger
        if not meant(row)
    )
    titles = {row.number: row.title for row in report.entries}
    return replace(report, entries=entry_rows(ledger, titles), findings=findings, ledger=ledger)


def declared_names(report: Report, stack: Stack | None) -> Report:
    """An audit that calls the stack's entries by their numbers: the subject of a commit may call entry 43 "043"."""
    numbers = {str(entry.number) for entry in stack.entries} if stack else set()

    def named(name: str) -> str:
        short = name.lstrip("0") if name.isdecimal() else name
        return short if short in numbers else name

    return replace(
        report,
        entries=tuple(replace(row, number=named(row.number)) for row in report.entries),
        ledger=tuple(replace(row, entry=named(row.entry)) for row in report.ledger),
        findings=tuple(replace(finding, entry=named(finding.entry)) for finding in report.findings),
    )
