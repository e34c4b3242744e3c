"""The closed set of verdicts on one half, the level of each, and the exit code they add up to."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Level(StrEnum):
    """How much a finding matters: only `error` turns a run red."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Verdict(StrEnum):
    """What became of one half. `stackctl explain WORD` has a page on each."""

    PLANTED = "planted"
    INTACT = "intact"
    RECONCILED = "reconciled"
    MOVED = "moved"
    ADOPTED = "adopted"
    ADOPTED_IN_PART = "adopted-in-part"
    LOST = "lost"
    DUPLICATED = "duplicated"
    MISPLACED = "misplaced"
    ALTERED = "altered"
    RESURRECTED = "resurrected"
    UPSTREAM_LOST = "upstream-lost"
    UNOWNED = "unowned"
    UNRESOLVED = "unresolved"
    SIGNATURE = "signature"
    STALE_STUB = "stale-stub"
    STALE_NAME = "stale-name"
    SHADOWED = "shadowed"
    HOST_GONE = "host-gone"
    DEFAULT_CHANGED = "default-changed"
    SIBLING = "sibling"
    MARKER = "marker"
    COMMENT_LOST = "comment-lost"
    UNPARSABLE = "unparsable"
    AMBIGUOUS = "ambiguous"
    UNDECIDED = "undecided"
    UNDECLARED = "undeclared"
    RULE = "rule"
    STALE_BASELINE = "stale-baseline"
    NOT_DUE = "not-due"
    NOT_JUDGED = "not-judged"

    @property
    def level(self) -> Level:
        """The level this verdict has unless a finding says otherwise (a leftover marker is a warning)."""
        if self in _ERRORS:
            return Level.ERROR
        return Level.WARNING if self in _WARNINGS else Level.NOTE

    @property
    def action(self) -> str:
        """The next action for a half with this verdict."""
        return _ACTIONS.get(self, "none")


_ERRORS = frozenset(
    {
        Verdict.LOST,
        Verdict.DUPLICATED,
        Verdict.MISPLACED,
        Verdict.ALTERED,
        Verdict.RESURRECTED,
        Verdict.UPSTREAM_LOST,
        Verdict.UNRESOLVED,
        Verdict.SIGNATURE,
        Verdict.STALE_STUB,
        Verdict.SHADOWED,
        Verdict.HOST_GONE,
        Verdict.ADOPTED_IN_PART,
        Verdict.MARKER,
        Verdict.UNDECIDED,
        Verdict.UNDECLARED,
        Verdict.RULE,
        Verdict.UNPARSABLE,
    }
)
_WARNINGS = frozenset(
    {
        Verdict.UNOWNED,
        Verdict.STALE_NAME,
        Verdict.DEFAULT_CHANGED,
        Verdict.SIBLING,
        Verdict.COMMENT_LOST,
        Verdict.AMBIGUOUS,
        Verdict.STALE_BASELINE,
        Verdict.NOT_JUDGED,
    }
)
_ACTIONS = {
    Verdict.LOST: "replant",
    Verdict.DUPLICATED: "replant",
    Verdict.MISPLACED: "replant",
    Verdict.ALTERED: "replant",
    Verdict.RESURRECTED: "replant",
    Verdict.ADOPTED_IN_PART: "replant",
    Verdict.HOST_GONE: "re-anchor",
    Verdict.AMBIGUOUS: "re-anchor",
    Verdict.UPSTREAM_LOST: "replant",
    Verdict.UNRESOLVED: "re-port",
    Verdict.SIGNATURE: "re-port",
    Verdict.STALE_STUB: "re-port",
    Verdict.STALE_NAME: "re-port",
    Verdict.SHADOWED: "review",
    Verdict.UNOWNED: "review",
    Verdict.DEFAULT_CHANGED: "review",
    Verdict.SIBLING: "review",
    Verdict.MARKER: "review",
    Verdict.COMMENT_LOST: "review",
    Verdict.UNPARSABLE: "review",
    Verdict.UNDECIDED: "review",
    Verdict.UNDECLARED: "review",
    Verdict.RULE: "review",
    Verdict.STALE_BASELINE: "review",
    Verdict.NOT_JUDGED: "review",
}


class EntryVerdict(StrEnum):
    """What became of one entry as a whole."""

    WHOLE = "whole"
    HALF = "half"
    ABSENT = "absent"
    ADOPTED = "adopted"
    INERT = "inert"
    NOT_DUE = "not-due"
    NOT_JUDGED = "not-judged"


class Exit(IntEnum):
    """Exit codes of every command."""

    CLEAN = 0
    FINDINGS = 1
    NOT_JUDGED = 2
    BUG = 3
