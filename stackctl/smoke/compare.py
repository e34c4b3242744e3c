"""Two runs' results beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.smoke.results import read

Key = tuple[str, str, str, str]  # scenario, case, metric, arm


def compare_folders(left: Path, right: Path, everything: bool = False) -> str:
    """A table of every figure that both have. Raises StackctlError where they have nothing in common.

    A figure differs when the ranges of its runs have no value in common; others are left out unless
    `everything` is wanted.
    """
    sides = (read(left), read(right))
    figures = [_figures(side) for side in sides]
    common = sorted(figures[0].keys() & figures[1].keys())
    if not common:
        raise StackctlError("the two runs have no figure in common", f"{left} and {right}")
    rows = [_row(key, figures[0][key], figures[1][key]) for key in common]
    shown = [row for row in rows if everything or row[-1]]
    lines = [*_heads(left, right, *sides), *_table([("scenario", "case", "metric", "arm", "left", "right", "right/left", ""), *shown])]
    lines.append(f"{sum(bool(row[-1]) for row in rows)} of {len(rows)} figures differ by more than the runs' own spread")
    only = figures[0].keys() ^ figures[1].keys()
    if only:
        lines.append(f"{len(only)} figures are in one of the two only")
    return "\n".join(lines)


def _figures(results: list[dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    return {(result["scenario"], row["case"], row["metric"], row["arm"]): row for result in results for row in result["figures"]}


def _heads(left: Path, right: Path, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> Iterator[str]:
    """What was run, and in what the two surroundings differ: figures of other machines are not comparable."""
    for word, folder, results in (("left ", left, ours), ("right", right, theirs)):
        first = results[0]
        verdicts = ", ".join(f"{result['scenario']} {result['verdict']}" for result in results)
        yield f"{word} {folder}: {first['subject']['release']} {first['subject']['tree']}, {first['started']}: {verdicts}"
    for part in ("engine", "versions", "hardware"):
        if ours[0][part] != theirs[0][part]:
            yield f"differs in {part}: {_difference(ours[0][part], theirs[0][part])}"


def _difference(left: Any, right: Any) -> str:
    if not isinstance(left, dict):
        return f"{left} and {right}"
    keys = [key for key in sorted(left.keys() | right.keys()) if left.get(key) != right.get(key)]
    return ", ".join(f"{key} {left.get(key)} and {right.get(key)}" for key in keys)


def _row(key: Key, left: dict[str, Any], right: dict[str, Any]) -> tuple[str, ...]:
    ratio = f"{right['median'] / left['median']:.2f}" if left["median"] else ""
    apart = left["high"] < right["low"] or right["high"] < left["low"]
    return (*key, _range(left), _range(right), ratio, "differs" if apart else "")


def _range(row: dict[str, Any]) -> str:
    return f"{row['median']:g} [{row['low']:g} to {row['high']:g}]"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
