"""What a load is given, and what it gives back."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl_bed import client, figures


@dataclass(frozen=True)
class Target:
    """One server to load: where it is, its model folder, the trace of its stand-in, this run's name and settings."""

    base: str
    model: str
    trace: str
    run: str
    settings: dict[str, Any]
    pids: tuple[int, ...] = ()

    def of(self, name: str, default: Any) -> Any:
        """A setting, or what the load takes when the scenario says nothing."""
        return self.settings.get(name, default)


@dataclass
class Outcome:
    """Figures to compare between arms, answers that must be the same in all, and what is wrong in itself."""

    metrics: dict[str, float] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)

    def hold(self, claim: bool, problem: str) -> None:
        """What must be so; a sentence that is not, once."""
        if not claim and problem not in self.problems:
            self.problems.append(problem)


async def ask(session: Any, route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One of the probe's routes. Raises RuntimeError where the probe does not answer."""
    reply = await client.call(session, f"/smoke/{route}", body or {})
    if not reply.ok:
        raise RuntimeError(f"the probe's route {route} failed: {reply.error}")
    answered: dict[str, Any] = reply.body
    return answered


def traced(target: Target, since: int) -> list[dict[str, Any]]:
    """What the stand-in noted behind byte `since` of its trace, whole lines only."""
    with open(target.trace, "rb") as trace:
        trace.seek(since)
        lines = trace.read().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]


def trace_size(target: Target) -> int:
    """Bytes in the trace now."""
    return Path(target.trace).stat().st_size


@dataclass(frozen=True)
class Order:
    """How many requests were seen at both ends, how many were overtaken, and every sighting for the record."""

    both: int
    overtaken: int
    sightings: list[dict[str, Any]]


async def order(target: Target, session: Any, since: int, wanted: set[str]) -> Order:
    """Entry at the handler against arrival at the scheduler; waits until the trace holds all `wanted`."""
    mine = f"{target.run}-"
    end = time.monotonic() + 3
    while True:
        notes = [note for note in traced(target, since) if str(note.get("rid", "")).startswith(mine)]
        if wanted <= {note["rid"] for note in notes} or time.monotonic() > end:
            break
        await asyncio.sleep(0.1)
    entries = [(rid, at) for rid, at in (await ask(session, "entries"))["entries"] if rid.startswith(mine)]
    entered, dispatched = [rid for rid, _ in entries], [note["rid"] for note in notes]
    sightings = [{"kind": "entry", "rid": rid, "at": at} for rid, at in entries]
    sightings += [{"kind": "dispatch", "rid": note["rid"], "at": note["at"], "tokens": note["tokens"]} for note in notes]
    return Order(len(set(entered) & set(dispatched)), figures.overtaken(entered, dispatched), sightings)
