"""Which finding a person should read first, where only some of them are shown."""

from __future__ import annotations

from collections.abc import Iterable

from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict

_LEVELS = (Level.ERROR, Level.WARNING, Level.NOTE)
# What keeps the server from starting comes before what makes it do something else.
_FIRST = (
    Verdict.MARKER, Verdict.UNPARSABLE, Verdict.UNRESOLVED, Verdict.SIGNATURE, Verdict.LOST, Verdict.RESURRECTED,
    Verdict.UNDECLARED, Verdict.HOST_GONE, Verdict.MISPLACED, Verdict.DUPLICATED, Verdict.ALTERED, Verdict.UPSTREAM_LOST,
)  # fmt: skip


def is_red(finding: Finding) -> bool:
    """Whether a finding alone makes a run fail."""
    return finding.severity is Level.ERROR or finding.kind is Verdict.NOT_JUDGED


def by_importance(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, then what could not be judged, then the rest; declared halves before what was only found."""
    return sorted(findings, key=_weight)


def _weight(finding: Finding) -> tuple[int, bool, int, bool, str, int]:
    rank = _FIRST.index(finding.kind) if finding.kind in _FIRST else len(_FIRST)
    level = _LEVELS.index(finding.severity)
    declared = bool(finding.plant) and " " not in finding.plant  # an id; the audit names a half by its text
    return level, finding.kind is not Verdict.NOT_JUDGED, rank, not declared, finding.path, finding.line
