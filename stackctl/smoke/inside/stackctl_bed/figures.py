"""Numbers from samples: percentiles, how often arrival order was broken, what a server held."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def percentile(values: Iterable[float], share: float) -> float | None:
    """By nearest rank: a value that was measured, None where there is none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def milliseconds(values: Sequence[float], name: str) -> dict[str, float]:
    """p50, p99 and max of seconds, as `name_p50_ms` and so on; nothing for no values."""
    if not values:
        return {}
    found = {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99), "max": max(values)}
    return {f"{name}_{key}_ms": round(value * 1000, 3) for key, value in found.items() if value is not None}


def overtaken(entries: Sequence[str], dispatched: Sequence[str]) -> int:
    """How many requests were dispatched after one that had entered later; only those seen at both ends count."""
    places: Mapping[str, int] = {rid: place for place, rid in enumerate(entries)}
    latest, count = -1, 0
    for rid in dispatched:
        if rid in places:
            count += places[rid] < latest
            latest = max(latest, places[rid])
    return count


def held(states: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What a server's states say: growth from the middle third to the last, as the first still fills caches and pools.

    In MiB, threads, descriptors; with entry 207 the least and most of what it keeps after the first third.
    """
    if not states:
        return {}
    third = max(1, len(states) // 3)
    middle, last = states[third : 2 * third], states[-third:]
    metrics = {}
    for name, unit in (("resident_kb", 1024), ("threads", 1), ("descriptors", 1)):
        pair = [statistics.median(state[name] for state in part) / unit for part in (middle, last) if part]
        metrics[f"{name.removesuffix('_kb')}_growth"] = round(pair[-1] - pair[0], 2)
    kept = [state["pieces_kb"] / 1024 for state in states[third:] if state["pieces_kb"] is not None]
    if kept:
        metrics |= {"pieces_least_mib": round(min(kept), 2), "pieces_most_mib": round(max(kept), 2)}
    return metrics
