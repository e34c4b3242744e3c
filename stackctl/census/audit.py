"""The audit: what became of every half of two changes in their merge, with no declarations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from stackctl.census.attribution import Attribution
from stackctl.census.delta import Census
from stackctl.census.files import judge_files
from stackctl.census.grouping import group
from stackctl.census.imports import import_followed
from stackctl.census.moves import Moves, find_moves, forget_kept, merge_moves, relocated
from stackctl.census.placement import misplaced
from stackctl.census.rules import run_rules
from stackctl.census.rules.context import Context
from stackctl.census.sides import Sides, is_python
from stackctl.census.survival import Judged, Survival
from stackctl.census.warming import warmed
from stackctl.model.report import Finding, LedgerRow, Report
from stackctl.model.verdict import Level, Verdict


@dataclass
class Audit:
    """Everything one audit found out; `report` is what the command shows."""

    sides: Sides
    attribution: Attribution = field(default_factory=Attribution)
    census: Census = field(default_factory=Census)
    judged: list[Judged] = field(default_factory=list)
    moves: dict[str, Moves] = field(default_factory=dict)
    by_text: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)

    def run(self) -> Audit:
        """Judge every half, then look at the merged tree with every rule."""
        with warmed(self.sides):
            self.judge()
            self._report()
        return self

    def judge(self) -> None:
        """What became of every half, without the rules."""
        self._follow_moves()
        self._count()
        self._survive()

    def _follow_moves(self) -> None:
        theirs, ours = find_moves(self.sides, "theirs", "ours"), find_moves(self.sides, "ours", "theirs")
        for moves in (theirs, ours):
            forget_kept(self.sides, moves)
        merged = merge_moves(theirs, ours)
        merged.files.update(relocated(self.sides))
        self.moves = {"base": Moves(), "ours": ours, "theirs": theirs, "merged": merged}

    def _count(self) -> None:
        moved = set(self.moves["merged"].files) | {path for path, _ in self.moves["merged"].hosts}
        followed = set(self.moves["merged"].files.values()) | {path for path, _ in self.moves["merged"].hosts.values()}
        for path in self.sides.differing:
            if path in moved or path in followed or not self.sides.only_theirs(path):
                self._count_file(path)

    def _count_file(self, path: str) -> None:
        as_text = is_python(path) and any(self.sides.problem(side, path) for side in ("base", "ours", "theirs", "merged"))
        if as_text:
            self.by_text.append(path)
        for side in ("base", "ours", "theirs", "merged"):
            self.census.add(side, path, self.sides.facts(side, path, as_text), self.moves[side])

    def _survive(self) -> None:
        survival = Survival(self.census, partial(import_followed, self.sides))
        self.judged = survival.judge()
        self.judged += list(misplaced(self.census, survival.counts))
        self.judged += judge_files(self.sides, self.moves)

    def _report(self) -> None:
        grouped = group(self.sides, self.census, self.judged, self._entry_of)
        self.findings = [*grouped.findings, *run_rules(Context(self.sides, self.moves, self._unsettled()))]
        self.ledger = grouped.ledger

    def _unsettled(self) -> frozenset[tuple[str, int]]:
        """Where in ours the halves stand that merged has not just as ours has them."""
        items = [item for item in self.judged if item.side == "ours" and item.verdict is not Verdict.INTACT]
        return frozenset((item.key.path, fact.line) for item in items for fact in self.census.of(item.key, "ours"))

    def _entry_of(self, item: Judged) -> str:
        return self.attribution.entry_of(item, self.census.of(item.key, "ours"))

    def report(self, command: str = "audit") -> Report:
        """The audit as the one shape that every view renders."""
        return Report(command, self.attribution.rows(self.ledger), tuple(self.ledger), tuple(self.findings), self.summary())

    def summary(self) -> dict[str, object]:
        """Counts, and the facts the run stood on."""
        verdicts = Counter(str(row.verdict) for row in self.ledger)
        levels = Counter(str(finding.severity) for finding in self.findings)
        return {
            "sides": {side: self.sides.tree(side).label for side in ("base", "ours", "theirs", "merged")},
            "halves": len(self.ledger),
            "verdicts": dict(sorted(verdicts.items())),
            "errors": levels[Level.ERROR],
            "warnings": levels[Level.WARNING],
            "files_differing": len(self.sides.differing),
            "judged_by_text": self.by_text,
            "moves": [{"from": old, "to": new} for old, new in self.moves["merged"].describe()],
        }
