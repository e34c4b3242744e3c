"""The markers that a merge left: each with the decision that consumed it, still waiting, or gone without a word."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.markers import LEDGER, Census, Marker, count, find_markers, leftovers, load_consumed, pattern_of
from stackctl.model.report import Finding
from stackctl.model.stack import Stack
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import GitTree


def merge_markers(stack: Stack, repository: Repository, merge: str, tip: str) -> Census:
    """The markers at the tip against those of the merge, and the decisions on record in the stack."""
    before, now = (_found(stack, repository, commit) for commit in (merge, tip))
    return count(now, before, load_consumed(stack.root / LEDGER), merge[:12])


def _found(stack: Stack, repository: Repository, commit: str) -> list[Marker]:
    tree = GitTree(repository, commit)
    return find_markers(tree, stock_tree(repository, release_of(tree)), pattern_of(stack))


def marker_findings(census: Census) -> list[Finding]:
    """What is wrong with them, and each that waits for its decision."""
    told = {(finding.path, finding.line) for finding in census.findings}
    return [*census.findings, *(each for each in leftovers(census.now) if (each.path, each.line) not in told)]


def marker_rows(census: Census) -> Iterator[dict[str, str]]:
    """One row for each marker of the merge, and for each that came since."""
    decisions = {decision.key: decision.decision for decision in census.consumed}
    decided, vanished = census.gone
    for marker in decided:
        yield _row(marker, "consumed", decisions[marker.key])
    for marker in vanished:
        yield _row(marker, "gone", "no decision is on record")
    for marker in census.now:
        yield _row(marker, "waits", "")


def _row(marker: Marker, word: str, decision: str) -> dict[str, str]:
    return {
        "id": marker.id,
        "batch": marker.batch,
        "entries": ", ".join(marker.entries),
        "path": marker.path,
        "text": marker.text,
        "word": word,
        "decision": decision,
    }
