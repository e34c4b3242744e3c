"""Audit what a series came to: base, the fork as it was, upstream's new release, and the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stackctl.carry.accepting import carriers
from stackctl.carry.apply import Run
from stackctl.carry.carrying import Carrier
from stackctl.carry.merge3 import Half
from stackctl.carry.questions import Question, questions
from stackctl.model.report import Finding
from stackctl.model.stack import Stack
from stackctl.model.verdict import Verdict
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree, OverlayTree

# What the ledger of the carry says itself, half by half.
_TOLD = frozenset(
    {
        Verdict.LOST,
        Verdict.ALTERED,
        Verdict.HOST_GONE,
        Verdict.RESURRECTED,
        Verdict.ADOPTED_IN_PART,
        Verdict.COMMENT_LOST,
    }
)


def audit_series(stack: Stack, repository: Repository, onto: str, run: Run) -> list[Finding]:
    """The audit's findings on the result of a run, less those on halves that the ledger names anyway."""
    found: list[Finding] = []
    for carrier in carriers_of(stack, repository, onto, run):
        found += unaccounted(carrier, run)
        if carrier.fork.changes and carrier.base.commit != carrier.theirs.commit:
            found += _audited(carrier, repository, run)
    return found


def unaccounted(carrier: Carrier, run: Run) -> list[Finding]:
    """Files that a fresh run did not make as the series was composed: a half of some entry is not there.

    Every half is judged one by one; this is the sum, which no single judgement can get past.
    """
    mine = {entry.number for entry in carrier.entries}
    others = {path for outcome in run.outcomes if outcome.entry.number not in mine for path in outcome.changes}
    if run.start != carrier.theirs.commit:
        return []
    made = {path: data for outcome in run.outcomes for path, data in outcome.changes.items()}
    wanted = {path: state.data if state else None for path, state in carrier.after(carrier.last).files.items()}
    stock = {path: carrier.theirs.read(path) if path in carrier.theirs else None for path in wanted.keys() | made.keys()}
    return [
        Finding(Verdict.LOST, "the file is not as the series was composed: an entry's half is missing", path, 1,
                evidence="the sum of all entries, compared byte for byte", action="re-port")
        for path in sorted((wanted.keys() | made.keys()) - others)
        if made.get(path, stock[path]) != wanted.get(path, stock[path])
    ]  # fmt: skip


def waiting(stack: Stack, repository: Repository, onto: str, run: Run) -> list[Question]:
    """The units of a run's series that wait for a person."""
    found = []
    for carrier in carriers_of(stack, repository, onto, run):
        if carrier.fork.changes:
            found += questions(carrier)
            carrier.kept.save()
    return found


def carriers_of(stack: Stack, repository: Repository, onto: str, run: Run) -> list[Carrier]:
    """What carries the series of a run's entries."""
    present = {outcome.entry.number for outcome in run.outcomes}
    chosen = replace(stack, entries=tuple(entry for entry in stack.entries if entry.number in present))
    return carriers(chosen, repository, onto, run.release)


def _audited(carrier: Carrier, repository: Repository, run: Run) -> list[Finding]:
    from stackctl.census.audit import Audit
    from stackctl.census.run import facts_cache
    from stackctl.census.sides import Sides

    ours = OverlayTree(
        carrier.base, {path: state.data if state else None for path, state in carrier.fork.after(carrier.last).items()}
    )
    changes = {path: data for outcome in run.outcomes for path, data in outcome.changes.items()}
    merged = OverlayTree(GitTree(repository, run.start), changes)
    with facts_cache() as cache:
        report = Audit(Sides(carrier.base, ours, carrier.theirs, merged, cache)).run().report()
    told = _told(half for half in carrier.after(carrier.last).halves if half.state != "carried")
    return [
        finding for finding in report.findings if not (finding.kind in _TOLD and (finding.path, finding.symbol) in told)
    ]


def _told(halves: Iterable[Half]) -> set[tuple[str, str]]:
    """(path, symbol) of everything that the ledger has a word on, the definitions around it included."""
    found = set()
    for half in halves:
        parts = half.host.split(".") if half.host else []
        found |= {(half.path, ".".join(parts[:depth])) for depth in range(len(parts) + 1)}
    return found
