"""Runs that nobody made, for what only reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stackctl.smoke import results
from stackctl.smoke.judging import RunResult, judge, overall, problems_of
from stackctl.smoke.scenario import Arm, Case, Claim, Scenario
from stackctl.smoke.servers import Host


def run(arm: str, index: int = 1, *, case: str = "all", quiet: bool = True, problems: tuple[str, ...] = (), answers=None, **metrics: float) -> RunResult:
    """One run."""
    return RunResult(arm, case, index, metrics, problems, answers or {}, {}, 0.0 if quiet else 0.9, quiet, 1.0, 10.0, f"samples/{arm}-{index}.jsonl")


def scenario(*claims: Claim, arms: tuple[Arm, ...] = (Arm("on"), Arm("off")), **fields: Any) -> Scenario:
    """A scenario of two arms."""
    return Scenario("made-up", "Made up", "mixed", arms, (Case("all"),), claims, **fields)


def record(what: Scenario, runs: list[RunResult], problems: tuple[str, ...] = (), verdict: str | None = None) -> dict[str, Any]:
    """The whole result of such runs."""
    judged = judge(what, runs)
    found = [*problems, *problems_of(what, runs)]
    facts = {"versions": {"python": "3.11.7", "sglang": "0.5.23"}, "hardware": results.hardware()}
    return results.record(
        what, results.Subject("0.5.23", "x", None), Host(Path("p"), Path("m"), None), runs, judged, found,
        verdict or overall(found, judged, bool(runs)), [], "2026-12-01T00:00:00Z", 1.0, [], facts,
    )  # fmt: skip
