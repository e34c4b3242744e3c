"""What a command found, in the one shape that every view renders (DESIGN section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stackctl.model.verdict import EntryVerdict, Exit, Level, Verdict

SCHEMA = 1


@dataclass(frozen=True)
class Finding:
    """One thing a person should know: what, where, how it is known, what to do.

    `path` is relative to the tree's root, `line` counts from 1 (0: the whole file), `symbol` is the
    dotted name inside the module and empty at module level.
    """

    kind: Verdict
    message: str
    path: str = ""
    line: int = 0
    symbol: str = ""
    entry: str = ""
    plant: str = ""
    evidence: str = ""
    action: str = ""
    level: Level | None = None

    @property
    def severity(self) -> Level:
        """The level given, else that of the verdict."""
        return self.level or self.kind.level

    def to_json(self) -> dict[str, Any]:
        """The finding as the JSON object of DESIGN section 9."""
        return {
            "kind": str(self.kind),
            "level": str(self.severity),
            "entry": self.entry,
            "plant": self.plant,
            "path": self.path,
            "line": self.line,
            "symbol": self.symbol,
            "message": self.message,
            "evidence": self.evidence,
            "action": self.action or self.kind.action,
        }


@dataclass(frozen=True)
class LedgerRow:
    """The record of one half, troubled or not."""

    verdict: Verdict
    path: str
    symbol: str = ""
    line: int = 0
    entry: str = ""
    plant: str = ""
    evidence: str = ""
    action: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object; `kind` is the verdict word, as in a finding."""
        return {
            "kind": str(self.verdict),
            "entry": self.entry,
            "plant": self.plant,
            "path": self.path,
            "line": self.line,
            "symbol": self.symbol,
            "evidence": self.evidence,
            "action": self.action or self.verdict.action,
        }


@dataclass(frozen=True)
class EntryRow:
    """One entry's verdict and the names of the halves that are missing."""

    number: str
    title: str
    verdict: EntryVerdict
    disposition: str = ""
    missing: tuple[str, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object."""
        return {
            "entry": self.number,
            "title": self.title,
            "kind": str(self.verdict),
            "disposition": self.disposition,
            "missing": list(self.missing),
            "note": self.note,
        }


@dataclass(frozen=True)
class Report:
    """Everything one command says. `summary` holds counts and the facts the run stood on."""

    command: str
    entries: tuple[EntryRow, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def exit(self) -> Exit:
        """Errors first: a run with a lost half is 1 even if something else was not judged."""
        if any(finding.severity is Level.ERROR for finding in self.findings):
            return Exit.FINDINGS
        judged = [finding.kind for finding in self.findings] + [row.verdict for row in self.ledger]
        return Exit.NOT_JUDGED if Verdict.NOT_JUDGED in judged else Exit.CLEAN

    def to_json(self) -> dict[str, Any]:
        """The one JSON object of DESIGN section 9."""
        return {
            "schema": SCHEMA,
            "command": self.command,
            "entries": [row.to_json() for row in self.entries],
            "ledger": [row.to_json() for row in self.ledger],
            "summary": self.summary,
            "findings": [finding.to_json() for finding in self.findings],
        }
