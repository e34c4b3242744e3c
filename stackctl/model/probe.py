"""Questions to an environment, their answers, and what these make of an entry. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Told(StrEnum):
    """What an environment said. `not-judged` is never taken for `absent`: a broken environment says nothing."""

    PRESENT = "present"
    ABSENT = "absent"
    NOT_JUDGED = "not-judged"


class State(StrEnum):
    """What the answers make of an entry."""

    ACTIVE = "active"
    INERT = "inert"
    DUE_AGAIN = "due-again"
    PUT_OFF = "put-off"
    NOT_JUDGED = "not-judged"


@dataclass(frozen=True)
class Probe:
    """One question. `options` are its kind's own keys; `distribution` is whose release may change the answer."""

    name: str
    kind: str
    title: str
    distribution: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What was told on one probe; `found` is the value met (a version, a path), `evidence` where it was read."""

    probe: str
    told: Told
    found: str = ""
    evidence: str = ""

    def to_json(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        return {"probe": self.probe, "told": str(self.told), "found": self.found, "evidence": self.evidence}


@dataclass(frozen=True)
class EntryState:
    """What the answers make of one entry: why, and which probes must change for it to wake (or to be due)."""

    entry: int
    state: State
    why: str
    wakes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The state as a JSON object."""
        return {"entry": self.entry, "state": str(self.state), "why": self.why, "wakes": list(self.wakes)}
