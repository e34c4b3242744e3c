"""The stack, its entries and their plants, as a person declared them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Disposition(StrEnum):
    """What a person decided about an entry; never mixed with a verdict, which is measured."""

    CARRY = "carry"
    PERMANENT = "permanent"
    SUBMITTED = "submitted"
    BACKPORT = "backport"
    CANDIDATE = "candidate"
    BLOCKED = "blocked"
    SUPERSEDED = "superseded"
    RETIRED = "retired"

    @property
    def requires(self) -> tuple[str, ...]:
        """The manifest keys that this disposition cannot do without."""
        return _REQUIRED[self]

    @property
    def tombstone(self) -> bool:
        """Whether entries so disposed are only watched for absence."""
        return self in (Disposition.SUPERSEDED, Disposition.RETIRED)


_REQUIRED = {
    Disposition.CARRY: ("reason", "remove_when"),
    Disposition.PERMANENT: ("reason",),
    Disposition.SUBMITTED: ("url",),
    Disposition.BACKPORT: ("commit",),
    Disposition.CANDIDATE: ("reason",),
    Disposition.BLOCKED: ("blocked_by",),
    Disposition.SUPERSEDED: ("superseded_by", "evidence"),
    Disposition.RETIRED: ("reason",),
}


@dataclass(frozen=True)
class Plant:
    """One half of an entry.

    `unit` names the halves it stands or falls with; `adopted_with` the key in the entry's `adopted_by`
    whose symbols, once upstream has them, replace this half by another form. `host` is 
    "package.module:Class.function"; `options` are its kind's own keys.
    """

    id: str
    kind: str
    host: str = ""
    releases: str = ""
    unit: str = ""
    adopted_with: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0

    @property
    def module(self) -> str:
        """The dotted module of the host, "" if the plant has none."""
        return self.host.partition(":")[0]

    @property
    def symbol(self) -> str:
        """The dotted name inside the module, "" for the module itself."""
        return self.host.partition(":")[2]


@dataclass(frozen=True)
class Entry:
    """One port we carry. `folder` is where its manifest and files are.

    `probes` names, by role, the questions in checks/probes that decide whether it does anything here: "active"
    (all must hold), "inert" (none may hold), "due_again" (a port that was put off is due when all hold).
    """

    number: int
    slug: str
    title: str
    folder: Path
    disposition: Disposition
    plants: tuple[Plant, ...] = ()
    upstream: tuple[str, ...] = ()
    default: str = ""
    switch: str = ""
    requires: tuple[int, ...] = ()
    excludes: tuple[int, ...] = ()
    watch: tuple[str, ...] = ()
    notes: str = ""
    decision: Mapping[str, Any] = field(default_factory=dict)
    adopted_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    probes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    digest: str = ""

    @property
    def name(self) -> str:
        """The folder's name, "201-preprocess-executor"."""
        return f"{self.number:03d}-{self.slug}"

    def unit_of(self, plant: Plant) -> str:
        """The unit a plant stands or falls with: its own, else the entry as a whole."""
        return plant.unit or str(self.number)


@dataclass(frozen=True)
class Stack:
    """The ordered entries of one fork. `source` is the folder of the tree that modules are found in.

    `marker_pattern` is the stack's own syntax of merge markers, a regular expression, "" for the usual one.
    """

    name: str
    root: Path
    entries: tuple[Entry, ...]
    upstream: str = ""
    base: str = ""
    source: str = "python"
    marker_pattern: str = ""

    def entry(self, number: int) -> Entry | None:
        """The entry with that number."""
        return next((entry for entry in self.entries if entry.number == number), None)


def digest(value: Any) -> str:
    """A short stable digest of plain data (keys in any order)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
