"""How much of the machine others used while we measured."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from stackctl.smoke.processes import TICKS, stats


@dataclass(frozen=True)
class Moment:
    """The clock, the machine's busy CPU seconds, and ours: this process, its dead children, the given sessions."""

    at: float
    busy_s: float
    own_s: float


def moment(sessions: Collection[int]) -> Moment:
    """Now. A session's processes must live from one moment to the next, or be children that we waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = time.process_time() + ended.ru_utime + ended.ru_stime
    own += sum(stat.cpu_s for stat in stats() if stat.session in sessions and stat.pid != os.getpid())
    return Moment(time.monotonic(), _busy_s(), own)


def foreign_cpu(before: Moment, after: Moment) -> float:
    """Cores that others kept busy between two moments, the time a hypervisor took included; never below 0."""
    seconds = after.at - before.at
    foreign = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return max(0.0, foreign / seconds) if seconds > 0 else 0.0


def _busy_s() -> float:
    """Of all cores: user, nice, system, irq, softirq and steal; guests are in user already."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq + steal) / TICKS
