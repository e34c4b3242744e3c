"""A run in a few lines for a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stackctl.model.verdict import Exit
from stackctl.smoke.judging import FAILED, NOT_JUDGED, PASSED

_MARKS = {"passed": "ok", "failed": "NO", "not-judged": "??", "reported": "--"}


def summary(done: Sequence[dict[str, Any]], folder: Path) -> str:
    """Verdicts, claims and problems of every scenario."""
    lines: list[str] = []
    for result in done:
        lines.append(f"{result['scenario']}: {result['verdict']} ({result['seconds']:.0f} s)")
        lines += [f"  {_MARKS[claim['verdict']]} {_claim(claim)}" for claim in result["claims"]]
        lines += [f"  problem: {problem}" for problem in result["problems"]]
        lines += [f"  not judged: {name}: {why}" for name, why in result["skipped"].items()]
    lines.append(f"smoke: {_verdict(done)}, results in {folder}")
    return "\n".join(lines)


def exit_code(done: Sequence[dict[str, Any]]) -> int:
    """As everywhere: a failure outweighs what was not judged."""
    return {PASSED: Exit.CLEAN, FAILED: Exit.FINDINGS, NOT_JUDGED: Exit.NOT_JUDGED}[_verdict(done)]


def _verdict(done: Sequence[dict[str, Any]]) -> str:
    verdicts = {result["verdict"] for result in done}
    return next((verdict for verdict in (FAILED, NOT_JUDGED) if verdict in verdicts), PASSED)


def _claim(claim: dict[str, Any]) -> str:
    value = f": {claim['value']:g}" if claim["value"] is not None else ""
    other = f" against {claim['other']:g}" if claim["other"] is not None else ""
    ratio = f", {claim['ratio']:.3g} times" if claim["ratio"] is not None else ""
    why = f" ({claim['why']})" if claim["why"] else ""
    return f"{claim['case']}: {claim['text']}{value}{other}{ratio}{why}"
