"""An audit in the light of the census."""

from __future__ import annotations

from pathlib import Path

from stackctl.census.settled import adopted_places, declared_names, without
from stackctl.model.report import EntryRow, Finding, LedgerRow, Report
from stackctl.model.stack import Disposition, Entry, Stack
from stackctl.model.verdict import EntryVerdict, Verdict


def test_what_the_census_found_adopted_is_not_lost_to_the_audit():
    """Upstream's form of a half need not look like ours; entry 205 in 0.5.23 was eleven false errors."""
    entries = [EntryRow("205", "t", EntryVerdict.ADOPTED), EntryRow("201", "t", EntryVerdict.HALF)]
    ledger = [LedgerRow(kind, "a.py", symbol, 1, "201", symbol) for kind, symbol in (
        (Verdict.ADOPTED, "f"), (Verdict.ADOPTED, "g"), (Verdict.LOST, "g"), (Verdict.LOST, "h"),
    )]  # fmt: skip
    rows = [LedgerRow(Verdict.LOST, "a.py", symbol, 1, entry) for entry, symbol in (("205", "x"), ("201", "f"), ("201", "g"), ("201", "h"), ("", "f"))]
    findings = [Finding(kind, "m", row.path, 1, row.symbol, row.entry) for kind in (Verdict.LOST, Verdict.UNRESOLVED) for row in rows]
    settled = without(Report("audit", (EntryRow("205", "t", EntryVerdict.ABSENT),), tuple(rows), tuple(findings)), adopted_places(None, entries, ledger))
    assert [(f.entry, f.symbol) for f in settled.findings if f.kind is Verdict.LOST] == [("201", "g"), ("201", "h"), ("", "f")]
    assert len([f for f in settled.findings if f.kind is Verdict.UNRESOLVED]) == len(rows)
    assert [row.verdict for row in settled.ledger] == [Verdict.ADOPTED, Verdict.ADOPTED, Verdict.LOST, Verdict.LOST, Verdict.LOST]
    assert [(row.number, row.title, row.verdict) for row in settled.entries] == [("201", "", "half"), ("205", "t", "adopted")]


def test_an_entry_is_called_by_its_number():
    """A commit "[043] ..." brought entry 43: the gate told of both."""
    stack = Stack("s", Path(), (Entry(43, "e", "t", Path(), Disposition.CARRY),))
    findings = tuple(Finding(Verdict.LOST, "m", "a.py", entry=name) for name in ("043", "044", "fix", "43", ""))
    named = declared_names(Report("audit", (EntryRow("043", "t", EntryVerdict.HALF),), (LedgerRow(Verdict.LOST, "a.py", entry="043"),), findings), stack)
    assert [finding.entry for finding in named.findings] == ["43", "044", "fix", "43", ""]
    assert named.entries[0].number == named.ledger[0].entry == "43"
