"""Run the audit over one merge or many, and put the results into one report."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stackctl.census.attribution import Attribution
from stackctl.census.audit import Audit
from stackctl.census.merges import Merge
from stackctl.census.sides import Sides
from stackctl.facts.cache import FactsCache
from stackctl.model.report import Report
from stackctl.trees.git import Repository

_SHORT = 12


@contextlib.contextmanager
def facts_cache() -> Iterator[FactsCache]:
    """The user's cache of facts, written back at the end."""
    cache = FactsCache.default()
    try:
        yield cache
    finally:
        cache.close()


def audit_merge(merge: Merge, cache: FactsCache, repository: Repository | None = None, pattern: str | None = None) -> Audit:
    """Audit one merge; with a repository its halves are attributed to the commits that brought them."""
    sides = Sides(merge.base, merge.ours, merge.theirs, merge.merged, cache)
    attribution = Attribution.of(repository, merge, cache, pattern)
    return Audit(sides, attribution).run()


def audit_all(
    merges: Sequence[Merge], swap: bool = False, repository: Repository | None = None, pattern: str | None = None
) -> Report:
    """One report on all merges; with several, each finding's evidence starts with its merge."""
    with facts_cache() as cache:
        reports = []
        for merge in merges:
            turned = replace(merge, ours=merge.theirs, theirs=merge.ours) if swap else merge
            report = audit_merge(turned, cache, repository, pattern).report()
            reports.append(_named(report, merge) if len(merges) > 1 else _based(report, merge))
    return reports[0] if len(reports) == 1 else _joined(reports)


def _based(report: Report, merge: Merge) -> Report:
    """Say which bases the judgement stood on."""
    return replace(report, summary={**report.summary, "merge": merge.commit, "bases": list(merge.bases)})


def _named(report: Report, merge: Merge) -> Report:
    mark = f"merge {merge.commit[:_SHORT]}"
    findings = tuple(replace(f, evidence=f"{mark}: {f.evidence}".rstrip(": ")) for f in report.findings)
    ledger = tuple(replace(row, evidence=f"{mark}: {row.evidence}".rstrip(": ")) for row in report.ledger)
    return replace(_based(report, merge), findings=findings, ledger=ledger)


def _joined(reports: Sequence[Report]) -> Report:
    """Several audits as one report; the summary keeps each one's own."""
    findings = tuple(finding for report in reports for finding in report.findings)
    ledger = tuple(row for report in reports for row in report.ledger)
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update({name: report.summary[name] for name in ("halves", "errors", "warnings")})
    summary = {"merges": [report.summary for report in reports], **totals}
    return Report("audit", (), ledger, findings, summary)
