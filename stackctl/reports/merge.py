"""The log of one merge: for each half the decision with its evidence, counts that add up, and what is left."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stackctl.census.lint import Lint, lint_merge
from stackctl.census.markers import Census
from stackctl.census.memo import Memo
from stackctl.census.merges import merge_of
from stackctl.census.run import audit_all
from stackctl.census.settled import ADOPTED, Places, adopted_places, declared_names, is_adopted
from stackctl.census.verify import verify
from stackctl.model.errors import StackctlError
from stackctl.model.report import Finding, LedgerRow, Report
from stackctl.model.stack import Entry, Stack
from stackctl.model.verdict import Level, Verdict
from stackctl.reports.merge_markers import marker_findings, marker_rows, merge_markers
from stackctl.reports.tips import Tip, carried_at, tip_of
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import GitTree

COMMAND = "report merge"
_SHORT = 12
_FINE = frozenset({Verdict.INTACT, Verdict.PLANTED, Verdict.RECONCILED, Verdict.MOVED})


@dataclass(frozen=True)
class Decision:
    """What became of one declared half: verdicts on ours, on the merge and now, and the word for it."""

    entry: str
    plant: str
    word: str
    ours: str
    merged: str
    now: str
    path: str
    symbol: str
    evidence: str
    line: int = 0


@dataclass(frozen=True)
class Judged:
    """The censuses and audits of one merge. `after` is the tip that it was repaired to: itself, if it was not."""

    stack: Stack
    merge: Tip
    after: Tip
    ours: Mapping[tuple[str, str], LedgerRow]
    merged: Report
    now: Report
    audits: tuple[Report, ...]
    lint: Lint | None
    replanted: Mapping[int, str]
    own_paths: frozenset[str] = frozenset()
    markers: Census | None = None

    @property
    def adopted(self) -> Places:
        """Where the census found nothing but what upstream has adopted."""
        return adopted_places(self.stack, self.now.entries, self.now.ledger)


def judge_merge(
    stack: Stack,
    repository: Repository,
    commit: str,
    after: str | None = None,
    *,
    audit: bool = True,
    lint: bool = True,
    pattern: str | None = None,
) -> Judged:
    """Judge a merge by its parents, and by what it was repaired to."""
    merge, four = tip_of(repository, commit), merge_of(repository, commit)
    tip = tip_of(repository, after or commit)
    if merge.commit not in repository.merge_bases(merge.commit, tip.commit):
        raise StackctlError(
            f"{after} does not stand on the merge {commit}",
            str(repository.path),
            "name the branch that holds the merge and its repairs",
        )
    sides = [four] if tip.commit == merge.commit else [four, replace(four, merged=GitTree(repository, tip.commit))]
    audited = [audit_all([each], repository=repository, pattern=pattern) for each in sides if audit]
    with Memo() as memo:
        before = _census(stack, repository, repository.parents(commit)[0], memo)
        merged = _census(stack, repository, merge.commit, memo)
        assert merged is not None
        now = merged if tip.commit == merge.commit else _census(stack, repository, tip.commit, memo)
    linted = lint_merge(four.ours, four.theirs, GitTree(repository, tip.commit)) if lint else None
    ours = {(row.entry, row.plant): row for row in before.ledger} if before else {}
    return Judged(
        stack,
        merge,
        tip,
        ours,
        merged,
        now or merged,
        tuple(declared_names(report, stack) for report in audited),
        linted,
        _replanted(repository, merge, tip, stack),
        _own_paths(repository, merge, tip),
        merge_markers(stack, repository, merge.commit, tip.commit),
    )


def _census(stack: Stack, repository: Repository, commit: str, memo: Memo) -> Report:
    tree = GitTree(repository, commit)
    release = release_of(tree)
    return verify(stack, tree, release, stock_tree(repository, release), memo.judge)


def _replanted(repository: Repository, merge: Tip, tip: Tip, stack: Stack) -> dict[int, str]:
    """The commit that planted each entry since the merge."""
    before, now = (carried_at(repository, each.commit, stack.name) for each in (merge, tip))
    return {
        number: found.commit
        for number, found in now.items()
        if number not in before or before[number].commit != found.commit
    }


def _own_paths(repository: Repository, merge: Tip, tip: Tip) -> frozenset[str]:
    """The files that nothing but commits of the stack changed between a merge and its repair."""
    own: set[str] = set()
    foreign: set[str] = set()
    for commit in repository.text("rev-list", f"{merge.commit}..{tip.commit}").split():
        trailer = repository.text(
            "log", "-1", "--no-show-signature", "--format=%(trailers:key=Stack-Entry,valueonly)", commit
        )
        names = repository.run(
            "diff-tree", "-r", "-z", "-m", "--no-commit-id", "--name-only", "--no-renames", "--root", commit
        )
        (own if trailer else foreign).update(os.fsdecode(name) for name in names.split(b"\0") if name)
    return frozenset(own - foreign)


def decisions(judged: Judged) -> list[Decision]:
    """One decision for every declared half: no half is left out, and none is told twice."""
    merged = {(row.entry, row.plant): row for row in judged.merged.ledger}
    adapted = {
        (row.path, row.symbol)
        for audit in judged.audits[:1]
        for row in audit.ledger
        if row.verdict is Verdict.RECONCILED
    }
    return [_decision(judged, row, merged[row.entry, row.plant], adapted) for row in judged.now.ledger]


def _decision(judged: Judged, now: LedgerRow, merged: LedgerRow, adapted: set[tuple[str, str]]) -> Decision:
    ours, entry = judged.ours.get((now.entry, now.plant)), judged.stack.entry(int(now.entry))
    assert entry is not None
    word = _word(entry, ours, merged, now, judged.replanted)
    if word == "kept" and (now.path, now.symbol) in adapted:
        word = "adapted"
    evidence = _evidence(entry, word, merged, now, judged)
    return Decision(
        now.entry,
        now.plant,
        word,
        str(ours.verdict) if ours else "",
        str(merged.verdict),
        str(now.verdict),
        now.path,
        now.symbol,
        evidence,
        now.line,
    )


def _word(entry: Entry, ours: LedgerRow | None, merged: LedgerRow, now: LedgerRow, replanted: Mapping[int, str]) -> str:
    if now.verdict is Verdict.NOT_JUDGED:
        return "not judged"
    if now.verdict is Verdict.NOT_DUE:
        return "not due"
    was_bad = ours is not None and ours.verdict.level is Level.ERROR
    if now.verdict.level is Level.ERROR:
        return "missing before the merge" if was_bad else "needs you"
    if merged.verdict.level is Level.ERROR:
        return "planted since" if was_bad else "re-planted" if entry.number in replanted else "repaired"
    if entry.disposition.tombstone:
        return "superseded"
    if now.verdict is Verdict.ADOPTED:
        return "adopted by upstream"
    if was_bad:
        return "landed with the merge"
    return "kept" if now.verdict in _FINE else str(now.verdict)


def _evidence(entry: Entry, word: str, merged: LedgerRow, now: LedgerRow, judged: Judged) -> str:
    if word == "re-planted":
        return (
            f"{merged.verdict} at the merge ({merged.evidence}); put back by {judged.replanted[entry.number][:_SHORT]}"
        )
    if word == "planted since":
        by = judged.replanted.get(entry.number, "")
        return f"neither ours nor the merge had it; planted by {by[:_SHORT] or 'no commit of this stack'}"
    if word == "repaired":
        by = "by commits of other entries" if merged.path in judged.own_paths else "by no commit of this stack's"
        return f"{merged.verdict} at the merge ({merged.evidence}); put right {by}"
    return _superseded(entry) if word == "superseded" else now.evidence


def _superseded(entry: Entry) -> str:
    why = entry.decision.get("evidence") or entry.decision.get("reason", "")
    return f"{entry.decision.get('superseded_by', 'retired')}: {why}"


def merge_report(judged: Judged) -> Report:
    """The log as the one report that every view renders."""
    rows = decisions(judged)
    ledger = tuple(
        LedgerRow(
            found.verdict,
            found.path,
            found.symbol,
            found.line,
            found.entry,
            found.plant,
            f"{row.word}: {row.evidence}".rstrip(": "),
        )
        for found, row in zip(judged.now.ledger, rows, strict=True)
    )
    markers = marker_findings(judged.markers) if judged.markers else []
    known = {(finding.path, finding.line) for finding in markers}
    audited = [
        each for each in _audited(judged) if each.kind is not Verdict.MARKER or (each.path, each.line) not in known
    ]
    settled = [(finding, why) for finding in audited if (why := _settled(judged, finding))]
    left = [finding for finding in audited if not _settled(judged, finding)]
    findings = (*judged.now.findings, *left, *markers, *(judged.lint.findings() if judged.lint else ()))
    return Report(
        COMMAND,
        judged.now.entries,
        ledger,
        findings,
        {**_summary(judged, rows, findings), "settled": [_told(*each) for each in settled]},
    )


def _settled(judged: Judged, finding: Finding) -> str:
    """Why a finding of the audit asks for nothing more: the stack decided on it, or its commits made it so."""
    entry = judged.stack.entry(int(finding.entry)) if finding.entry.isdecimal() else None
    if finding.kind is Verdict.LOST and entry is not None and entry.disposition.tombstone:
        return f"superseded: {_superseded(entry)}"
    if is_adopted(finding, judged.adopted):
        return ADOPTED
    if finding.kind in (Verdict.UNOWNED, Verdict.UPSTREAM_LOST) and finding.path in judged.own_paths:
        at_merge = {(each.kind, each.path, each.symbol, each.message) for each in judged.audits[0].findings}
        if (finding.kind, finding.path, finding.symbol, finding.message) not in at_merge:
            return "the stack's own: since the merge only its commits changed this file"
    return ""


def _told(finding: Finding, why: str) -> dict[str, str]:
    return {
        "kind": str(finding.kind),
        "path": finding.path,
        "symbol": finding.symbol,
        "entry": finding.entry,
        "message": finding.message,
        "why": why,
    }


def _audited(judged: Judged) -> list[Finding]:
    """What the audit finds of error and warning level and the census has not said of the same place."""
    said = {(finding.path, finding.symbol, finding.kind) for finding in judged.now.findings}
    found = judged.audits[-1].findings if judged.audits else ()
    return [
        each for each in found if each.severity is not Level.NOTE and (each.path, each.symbol, each.kind) not in said
    ]


def _summary(judged: Judged, rows: Sequence[Decision], findings: Sequence[Finding]) -> dict[str, Any]:
    counts = Counter(row.word for row in rows)
    audits = [
        {key: audit.summary[key] for key in ("halves", "verdicts", "errors", "warnings")} for audit in judged.audits
    ]
    lint = (
        {
            "touched": len(judged.lint.touched),
            "counts": list(judged.lint.counts),
            "added": len(judged.lint.added),
            "problem": judged.lint.problem,
        }
        if judged.lint
        else None
    )
    return {
        **judged.now.summary,
        "merge": asdict(judged.merge),
        "after": asdict(judged.after),
        "halves": len(rows),
        "decisions": dict(counts.most_common()),
        "rows": [asdict(row) for row in rows],
        "damage": {
            "merge": sum(_broken(judged, row) for row in judged.merged.ledger),
            "now": sum(_broken(judged, row) for row in judged.now.ledger),
        },
        "audits": audits,
        "lint": lint,
        "markers": list(marker_rows(judged.markers)) if judged.markers else [],
        "batches": judged.markers.batches() if judged.markers else [],
        "left": dict(Counter(str(finding.severity) for finding in findings)),
    }


def _broken(judged: Judged, row: LedgerRow) -> bool:
    """Whether a half that was right on ours is not right here."""
    ours = judged.ours.get((row.entry, row.plant))
    return row.verdict.level is Level.ERROR and (ours is None or ours.verdict.level is not Level.ERROR)
