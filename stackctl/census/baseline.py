"""The baseline: findings that somebody knows of, each with a reason and a day on which it counts again.

    [[known]]
    kind = "lost"
    path = "python/sglang/srt/server_args.py"
    symbol = "ServerArgs"        # left out: the module itself
    reason = "upstream takes it in 0.5.24, sgl-project/sglang#40102"
    expires = 2026-12-31

A `fingerprint` (of the SARIF run) stands in for kind, path and symbol where several findings share these.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stackctl.census.tables import Table, read_table
from stackctl.model.fingerprint import fingerprint
from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict
from stackctl.plants.manifest import ManifestError, Problem

_KEYS: dict[str, type] = {
    "fingerprint": str, "kind": str, "path": str, "symbol": str, "reason": str, "expires": datetime.date,
}  # fmt: skip
# What was not judged is not known, and a line of the baseline excuses no other line.
_NEVER = (Verdict.NOT_JUDGED, Verdict.STALE_BASELINE)


@dataclass(frozen=True)
class Known:
    """One line of the baseline: it matches by fingerprint, else by kind, path and symbol together."""

    reason: str
    expires: datetime.date
    line: int
    fingerprint: str = ""
    kind: str = ""
    path: str = ""
    symbol: str = ""

    def matches(self, finding: Finding) -> bool:
        """Whether this line is about that finding."""
        if finding.kind in _NEVER:
            return False
        if self.fingerprint:
            return fingerprint(finding) == self.fingerprint
        return (self.kind, self.path, self.symbol) == (finding.kind, finding.path, finding.symbol)

    def __str__(self) -> str:
        return self.fingerprint or f"{self.kind} {self.path} {self.symbol}".strip()


def load_baseline(path: Path) -> list[Known]:
    """The lines of a baseline. Raises ManifestError with every problem there is."""
    table, text = read_table(path)
    problems = list(table.check({"known": list}))
    lines = list(table.tables("known", text))
    problems += [problem for line in lines for problem in _problems(line)]
    if problems:
        raise ManifestError(problems)
    return [_known(line) for line in lines]


def _problems(line: Table) -> Iterator[Problem]:
    yield from line.check(_KEYS, ("reason", "expires"))
    if not line.values.get("fingerprint") and not (line.values.get("kind") and line.values.get("path")):
        yield line.problem("name the finding: a fingerprint, or kind and path (and symbol)")
    kind = line.values.get("kind")
    if kind is not None and (kind not in set(Verdict) or kind in _NEVER):
        yield line.problem(f"{kind!r} is not a verdict that can be excused")


def _known(line: Table) -> Known:
    names = {key: line.text(key) for key in ("fingerprint", "kind", "path", "symbol")}
    names["fingerprint"] = names["fingerprint"].partition(":")[0]
    return Known(line.text("reason"), line.values["expires"], line.line, **names)


def excuse(findings: Sequence[Finding], baseline: Iterable[Known], path: str, today: datetime.date) -> list[Finding]:
    """The findings with those that are known made notes, then what is wrong with the baseline itself.

    `path` is the baseline's own. Where something was not judged no line is called unused: what it is about may
    be in the part that was not.
    """
    lines = list(baseline)
    told = [_excused(finding, lines, today) for finding in findings]
    whole = not any(finding.kind is Verdict.NOT_JUDGED for finding in findings)
    for line in lines:
        used = any(line.matches(finding) for finding in findings)
        if line.expires < today:
            message = f"the line on {line} has expired"
            said = f"{line.expires}: {line.reason}"
            told.append(Finding(Verdict.STALE_BASELINE, message, path, line.line, evidence=said, level=Level.ERROR))
        elif not used and whole:
            message = f"the line on {line} is not used: nothing like it was found"
            told.append(Finding(Verdict.STALE_BASELINE, message, path, line.line, evidence=line.reason))
    return told


def _excused(finding: Finding, lines: list[Known], today: datetime.date) -> Finding:
    line = next((line for line in lines if line.expires >= today and line.matches(finding)), None)
    if line is None:
        return finding
    said = f"known until {line.expires}: {line.reason}"
    return replace(finding, level=Level.NOTE, evidence=f"{finding.evidence}; {said}" if finding.evidence else said, action="none")
