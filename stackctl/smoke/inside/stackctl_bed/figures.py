"""Numbers from samples: percentiles, and how often arrival order was broken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence


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
