"""Halves that no entry declares, put back after a merge: the audit's findings as a commit to make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from stackctl.carry.restore import Left, Restored, restore_audit
from stackctl.carry.transaction import Step
from stackctl.census.audit import Audit
from stackctl.census.merges import Merge, merge_of
from stackctl.census.rules.overwritten import assignments
from stackctl.census.run import audit_merge, facts_cache
from stackctl.facts.cache import FactsCache
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree, OverlayTree

_ROUNDS = 8
# What the rules find in the whole tree; what the count of halves finds, restoring has looked at itself.
_RULED = frozenset({Verdict.SHADOWED, Verdict.UNRESOLVED, Verdict.SIGNATURE, Verdict.STALE_STUB})
_NUMBER = re.compile(r"\d+")


def mend_merge(repository: Repository, commit: str, at: str) -> tuple[Step | None, list[Finding]]:
    """What the merge `commit` lost and the tree at `at` still lacks, as a step, and findings on what it cannot place.

    The code is taken from the side that had it. No step if nothing is to be done.
    """
    merge = replace(merge_of(repository, commit), merged=GitTree(repository, at))
    with facts_cache() as cache:
        restored = _harmless(audit_merge(merge, cache, repository), merge, cache)
    left = [Finding(Verdict.UNDECIDED, item.reason, item.path, symbol=item.symbol) for item in restored.left]
    if not restored.changes:
        return None, left
    files = "\n".join(sorted(restored.changes))
    message = f"Put back what a merge lost\n\nTaken from its own sides, in:\n{files}\n\nStack-Merge: {merge.commit}\n"
    return Step(message, restored.changes), left


def _harmless(audit: Audit, merge: Merge, cache: FactsCache) -> Restored:
    """What can be put back so that the audit of the whole tree finds nothing that it did not find before.

    Restoring looks at one file, and counts: a line of ours was once put back below upstream's new assignment of
    the same name, and each was there as often as it should be. Hosts that come to harm are left to a person.
    """
    left: dict[tuple[str, str], str] = {}
    for _ in range(_ROUNDS):
        kept = [item for item in audit.judged if not _is_left(_place(audit, item.key.path, item.key.host), left)]
        restored = restore_audit(replace(audit, judged=kept))
        harm = dict(_harm(audit, merge, cache, restored)) if restored.changes else {}
        if not harm:
            break
        left |= harm
    else:
        restored = Restored()
    restored.left += [Left(path, host, f"not put back: {reason}") for (path, host), reason in left.items()]
    return restored


def _place(audit: Audit, path: str, host: str) -> tuple[str, str]:
    return audit.census.place("merged", path, host)


def _is_left(place: tuple[str, str], left: dict[tuple[str, str], str]) -> bool:
    """Whether a host is left to a person: it, what it is in or what is in it; with no host the whole file."""
    path, host = place
    return any(path == other and (not name or _within(host, name) or _within(name, host)) for other, name in left)


def _within(host: str, name: str) -> bool:
    return host == name or host.startswith(f"{name}.")


def _harm(audit: Audit, merge: Merge, cache: FactsCache, restored: Restored) -> Iterator[tuple[tuple[str, str], str]]:
    """((path, host), why) of what would be wrong in the mended tree and is not now; host "" for a whole file."""
    mended = audit_merge(replace(merge, merged=OverlayTree(merge.merged, restored.changes)), cache)
    was = Counter(map(_known, audit.findings))
    touched = {_place(audit, item.key.path, item.key.host) for item in audit.judged}
    for finding in mended.findings:
        if finding.kind in _RULED and finding.path in restored.changes:
            was[_known(finding)] -= 1
            if was[_known(finding)] < 0:
                host = finding.symbol if (finding.path, finding.symbol) in touched else ""
                yield (finding.path, host), finding.message
    for path in restored.changes:
        yield from _two_meanings(audit, mended, path)


def _known(finding: Finding) -> tuple[str, str, str, str]:
    """What a finding is about, wherever it stands."""
    return str(finding.kind), finding.path, finding.symbol, _NUMBER.sub("N", finding.message)


def _two_meanings(audit: Audit, mended: Audit, path: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Names that a host would bind twice, once as ours and once as upstream has it, though somebody may read between."""
    if not path.endswith(".py") or mended.sides.problem("merged", path):
        return
    before = assignments(audit.sides.facts("merged", path))
    sides = [assignments(audit.sides.facts(side, path)) for side in ("ours", "theirs") if path in audit.sides.tree(side)]
    for place, found in assignments(mended.sides.facts("merged", path)).items():
        host, target, _ = place
        most = max(len(side.get(place, ())) for side in (before, *sides))
        reads = re.compile(rf"(?<![\w.]){re.escape(target)}\b")
        if len(found) > most and not any(reads.search(fact.text.partition(" = ")[2]) for fact in found):
            lines = ", ".join(str(fact.line) for fact in found)
            yield (path, host), f"`{target}` would be bound by ours and by upstream, at lines {lines}: the last one wins"
