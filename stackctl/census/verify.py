"""The census: a verdict on every declared plant of one tree. Reads only; nothing of the tree is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stackctl.model.probe import EntryState, State
from stackctl.model.report import EntryRow, Finding, LedgerRow, Report
from stackctl.model.stack import Disposition, Entry, Plant, Stack
from stackctl.model.verdict import EntryVerdict, Level, Verdict
from stackctl.plants.judging import is_bad, judge_plant
from stackctl.plants.kind import Judgement
from stackctl.plants.view import View
from stackctl.trees.release import Release
from stackctl.trees.tree import Tree

Judged = Sequence[tuple[Plant, Judgement]]
Judge = Callable[[Entry, Plant, View], Judgement]


def verify(
    stack: Stack, tree: Tree, release: Release, stock: Tree | None = None, judge: Judge = judge_plant,
    entries: Iterable[Entry] | None = None,
) -> Report:  # fmt: skip
    """Judge every plant of the stack in `tree`; `stock` is upstream's own tree of that release."""
    view = View(tree, stack, release, View(stock, stack, release) if stock else None)
    chosen = list(stack.entries if entries is None else entries)
    found = {(entry.number, plant.id): judge(entry, plant, view) for entry, plant in by_file(chosen)}
    judged = [(entry, [(plant, found[entry.number, plant.id]) for plant in entry.plants]) for entry in chosen]
    return report("verify", stack, judged, summary={"tree": tree.label, "release": str(release), "stock": stock.label if stock else None})


def woken(report: Report, states: Mapping[int, EntryState]) -> Report:
    """The report in the light of an environment's answers: a whole entry that does nothing there is inert.

    Only whole entries: one with a lost half stays half, whatever waits for what.
    """
    rows = tuple(_woken(row, states[int(row.number)]) if int(row.number) in states else row for row in report.entries)
    unsure = tuple(
        Finding(Verdict.NOT_JUDGED, "whether this entry is active cannot be told", entry=row.number, evidence=states[int(row.number)].why)
        for row in rows
        if row.verdict is EntryVerdict.NOT_JUDGED and int(row.number) in states
    )
    summary = {**report.summary, "entries": dict(sorted(Counter(str(row.verdict) for row in rows).items()))}
    return replace(report, entries=rows, findings=(*report.findings, *unsure), summary=summary)


def _woken(row: EntryRow, state: EntryState) -> EntryRow:
    if state.state is State.ACTIVE:
        return row
    note = "; ".join(filter(None, (row.note, f"{state.state}: {state.why}")))
    if row.verdict is not EntryVerdict.WHOLE or state.state is State.DUE_AGAIN:
        return replace(row, note=note)
    verdict = EntryVerdict.NOT_JUDGED if state.state is State.NOT_JUDGED else EntryVerdict.INERT
    return replace(row, verdict=verdict, note=note)


def by_file(entries: Iterable[Entry]) -> list[tuple[Entry, Plant]]:
    """Every plant with its entry, those of one file together: each file is then parsed once, and let go again."""
    pairs = [(entry, plant) for entry in entries for plant in entry.plants]
    return sorted(pairs, key=lambda pair: pair[1].module or pair[1].options.get("path", ""))


def report(command: str, stack: Stack, judged: Sequence[tuple[Entry, Judged]], summary: dict) -> Report:
    """The report on judged entries, whatever judged them."""
    ledger = tuple(_row(entry, plant, found) for entry, plants in judged for plant, found in plants)
    findings = tuple(finding for entry, plants in judged for finding in _findings(entry, plants))
    entries = tuple(_entry_row(entry, plants) for entry, plants in judged)
    counts = Counter(str(row.verdict) for row in ledger)
    summary = {"stack": stack.name, **summary, "plants": dict(sorted(counts.items())),
               "entries": dict(sorted(Counter(str(row.verdict) for row in entries).items()))}  # fmt: skip
    return Report(command, entries, ledger, findings, summary)


def entry_verdict(entry: Entry, judged: Judged) -> EntryVerdict:
    """An entry's verdict from those on its plants."""
    due = [found for _, found in judged if found.verdict is not Verdict.NOT_DUE]
    if entry.disposition is Disposition.BLOCKED:
        return EntryVerdict.INERT
    if not due:
        return EntryVerdict.NOT_DUE
    if any(found.verdict is Verdict.NOT_JUDGED for found in due):
        return EntryVerdict.NOT_JUDGED
    if all(found.verdict is Verdict.ADOPTED for found in due):
        return EntryVerdict.ADOPTED
    if not any(is_bad(found) for found in due):
        return EntryVerdict.WHOLE
    kept = [found for plant, found in judged if plant.kind != "tombstone" and found.verdict is not Verdict.NOT_DUE]
    return EntryVerdict.ABSENT if kept and all(found.verdict is Verdict.LOST for found in kept) else EntryVerdict.HALF


def _entry_row(entry: Entry, judged: Judged) -> EntryRow:
    missing = tuple(plant.id for plant, found in judged if is_bad(found))
    adopted = sum(found.verdict is Verdict.ADOPTED for _, found in judged)
    due = sum(found.verdict is not Verdict.NOT_DUE for _, found in judged)
    note = f"{adopted} of {due} halves are upstream's own" if 0 < adopted < due else ""
    return EntryRow(str(entry.number), entry.title, entry_verdict(entry, judged), str(entry.disposition), missing, note)


def _row(entry: Entry, plant: Plant, found: Judgement) -> LedgerRow:
    return LedgerRow(
        found.verdict, found.path, found.symbol or plant.symbol, found.line, str(entry.number), plant.id,
        found.evidence or found.message,
    )  # fmt: skip


def _findings(entry: Entry, judged: Judged) -> list[Finding]:
    bad = [(plant, found) for plant, found in judged if found.verdict.level != "note" and not found.with_plant]
    left_out = Counter(found.with_plant for _, found in judged)
    findings = [
        Finding(
            found.verdict, found.message + _left_out(left_out[plant.id]), found.path, found.line, found.symbol or plant.symbol,
            str(entry.number), plant.id, found.evidence, level=Level.ERROR if is_bad(found) else None,
        )
        for plant, found in bad
    ]  # fmt: skip
    adopted = [plant.id for plant, found in judged if found.verdict is Verdict.ADOPTED]
    lost = [plant.id for plant, found in judged if is_bad(found)]
    if adopted and lost:
        first = next(found for _, found in judged if is_bad(found))
        message = f"upstream has {len(adopted)} of this entry's halves; of the others these are not right: {', '.join(lost)}"
        findings.append(
            Finding(Verdict.ADOPTED_IN_PART, message, first.path, first.line, first.symbol, str(entry.number), evidence=f"adopted: {', '.join(adopted)}")
        )
    return findings


def _left_out(count: int) -> str:
    return f"; {count} other {'half is' if count == 1 else 'halves are'} left out with it" if count else ""
