"""One `stackctl smoke run`: scenarios one after the other on shared servers, and a folder that tells of all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackctl.smoke import judging, plots, results
from stackctl.smoke.results import Subject
from stackctl.smoke.running import Wish, now_utc, run_all
from stackctl.smoke.scenario import Scenario
from stackctl.smoke.servers import Fleet, Host, Progress, Server


@dataclass(frozen=True)
class Job:
    """Which scenarios, on what, into which folder."""

    scenarios: Sequence[Scenario]
    host: Host
    subject: Subject
    folder: Path
    wish: Wish
    progress: Progress


def run_job(job: Job) -> list[dict[str, Any]]:
    """The results, in order; each is in its scenario's folder as soon as it is there."""
    facts = {"versions": results.versions(job.host.python), "hardware": results.hardware()}
    found: list[dict[str, Any]] = []
    job.folder.mkdir(parents=True, exist_ok=True)
    with Fleet(job.host, job.folder / "servers", job.progress) as fleet:
        for scenario in job.scenarios:
            found.append(_run_scenario(job, scenario, fleet, facts))
    if fleet.dirty and found:  # the servers end with the last scenario: it is the one to say so
        found[-1] |= {"verdict": judging.FAILED, "problems": [*found[-1]["problems"], *fleet.dirty]}
        results.write(job.folder / job.scenarios[-1].name, found[-1])
    return found


def _run_scenario(job: Job, scenario: Scenario, fleet: Fleet, facts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    folder = job.folder / scenario.name
    started, clock = now_utc(), time.monotonic()
    runs: list[judging.RunResult] = []
    servers: dict[str, Server] = {}
    problems: list[str] = []
    if job.host.engine in scenario.engines:
        again: set[tuple[str, str]] = set()
        for _ in range(2):
            for run in run_all(scenario, fleet, folder, job.wish, again):
                runs.append(run)
                servers |= {server.name: server for server in fleet.servers.values()}
                job.progress(f"    {_brief(run)}")
            if not (again := judging.too_spread(_asked(judging.judge(scenario, runs), job))):
                break
    judged = _asked(judging.judge(scenario, runs), job) if runs else []
    problems += judging.problems_of(scenario, runs)
    problems += judging.same_answers(scenario, runs) if scenario.same_answers else []
    problems += fleet.dirty
    fleet.dirty.clear()
    verdict = judging.overall(problems, judged, bool(runs))
    drawn = plots.draw(scenario, runs, folder) if runs else []
    result = results.record(
        scenario, job.subject, job.host, runs, judged, problems, verdict, list(servers.values()), started,
        time.monotonic() - clock, drawn, facts,
    )  # fmt: skip
    results.write(folder, result)
    return result


def _asked(judged: list[judging.Judged], job: Job) -> list[judging.Judged]:
    """What speaks of the arms and cases that were asked for."""
    found = [one for one in judged if not job.wish.arms or {one.arm, one.against} - {None} <= set(job.wish.arms)]
    return [one for one in found if not job.wish.cases or one.case in job.wish.cases]


def _brief(run: judging.RunResult) -> str:
    shown = [f"{name} {value:g}" for name, value in run.metrics.items() if name.endswith(("p99_ms", "p50_ms", "done", "overtaken"))]
    disturbed = "" if run.quiet else f" DISTURBED by {run.foreign_cpu:.2f} cores of others"
    trouble = f" {len(run.problems)} problems: {run.problems[0]}" if run.problems else ""
    return ", ".join(shown[:8]) + disturbed + trouble
