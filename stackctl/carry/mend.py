"""Halves that no entry declares, put back after a merge: the audit's findings as a commit to make."""

from __future__ import annotations

from dataclasses import replace

from stackctl.carry.restore import restore_audit
from stackctl.carry.transaction import Step
from stackctl.census.merges import merge_of
from stackctl.census.run import audit_merge, facts_cache
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree


def mend_merge(repository: Repository, commit: str, at: str) -> tuple[Step | None, list[Finding]]:
    """What the merge `commit` lost and the tree at `at` still lacks, as a step, and findings on what it cannot place.

    The code is taken from the side that had it. No step if nothing is to be done.
    """
    merge = replace(merge_of(repository, commit), merged=GitTree(repository, at))
    with facts_cache() as cache:
        restored = restore_audit(audit_merge(merge, cache, repository))
    left = [Finding(Verdict.UNDECIDED, item.reason, item.path, symbol=item.symbol) for item in restored.left]
    if not restored.changes:
        return None, left
    files = "\n".join(sorted(restored.changes))
    message = f"Put back what a merge lost\n\nTaken from its own sides, in:\n{files}\n\nStack-Merge: {merge.commit}\n"
    return Step(message, restored.changes), left
