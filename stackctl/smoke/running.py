"""Run a scenario: boot its servers, alternate its arms, repeat what others disturbed, write the run's folder."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.smoke import noise, processes
from stackctl.smoke.judging import RunResult
from stackctl.smoke.scenario import Arm, Case, Scenario
from stackctl.smoke.servers import Fleet, Server, Spec, server_environment


@dataclass(frozen=True)
class Wish:
    """What the person at the keyboard changes: fewer arms or cases, another count, other settings."""

    arms: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    runs: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    patience_s: float = 0.0


@dataclass(frozen=True)
class Turn:
    """One run to be made."""

    arm: Arm
    case: Case
    index: int


def turns(scenario: Scenario, wish: Wish, again: Collection[tuple[str, str]] = ()) -> list[Turn]:
    """All runs in order: arms alternate, and every second round goes backwards, so that no arm is always the first.

    `again` names (case, arm): only those, numbered on behind the first ones.
    """
    found: list[Turn] = []
    for case in scenario.cases:
        if wish.cases and case.name not in wish.cases:
            continue
        arms = [arm for arm in scenario.arms if (not case.arms or arm.name in case.arms) and (not wish.arms or arm.name in wish.arms)]
        arms = [arm for arm in arms if not again or (case.name, arm.name) in again]
        count = wish.runs or case.runs or scenario.runs
        for index in range(count):
            number = index + 1 + (count if again else 0)
            found += [Turn(arm, case, number) for arm in (arms if index % 2 == 0 else arms[::-1])]
    if not found:
        raise StackctlError("no run is left", scenario.name, "there are the arms " + ", ".join(arm.name for arm in scenario.arms))
    return found


def spec_of(scenario: Scenario, turn: Turn) -> Spec:
    """The server that a run needs."""
    environment = {**scenario.environment, **turn.case.environment, **turn.arm.environment}
    flags = (*scenario.flags, *turn.case.flags, *turn.arm.flags)
    return Spec(turn.arm.tree == "planted", flags, tuple(sorted(environment.items())))


def run_all(scenario: Scenario, fleet: Fleet, folder: Path, wish: Wish, again: Collection[tuple[str, str]] = ()) -> Iterator[RunResult]:
    """Every run of a scenario, disturbed ones again at the end while repeats are left; all servers boot first."""
    waiting = turns(scenario, wish, again)
    for turn in waiting:
        fleet.get(spec_of(scenario, turn), turn.arm.name)
    for _ in range(scenario.repeats + 1):
        disturbed: list[Turn] = []
        for turn in waiting:
            result = run_one(scenario, turn, fleet, folder, wish)
            yield result
            if not result.quiet:
                disturbed.append(turn)
        waiting = disturbed


def run_one(scenario: Scenario, turn: Turn, fleet: Fleet, folder: Path, wish: Wish) -> RunResult:
    """One load against one server."""
    server = fleet.get(spec_of(scenario, turn), turn.arm.name)
    name = f"{turn.case.name}-{turn.arm.name}-{turn.index}"
    while (samples := folder / "samples" / f"{name}.jsonl").exists():
        name += "r"
    wait_for_quiet(scenario.foreign_cpu, wish.patience_s, fleet)
    fleet.progress(f"{scenario.name}: {turn.case.name}, {turn.arm.name}, run {turn.index}")
    before, server_before = noise.moment(fleet.sessions()), _session_cpu(server)
    outcome = drive(scenario, turn, server, fleet, wish, name)
    after = noise.moment(fleet.sessions())
    foreign, spent = noise.foreign_cpu(before, after), round(_session_cpu(server) - server_before, 2)
    if requests := outcome["metrics"].get("requests"):
        outcome["metrics"]["cpu_per_request_ms"] = round(1000 * spent / requests, 2)
    samples.parent.mkdir(parents=True, exist_ok=True)
    samples.write_text("".join(json.dumps(row) + "\n" for row in outcome["samples"]), encoding="utf-8")
    return RunResult(
        turn.arm.name, turn.case.name, turn.index, outcome["metrics"], tuple(outcome["problems"]), outcome["answers"],
        outcome["skipped"], round(foreign, 3), foreign <= scenario.foreign_cpu, spent,
        round(after.at - before.at, 2), samples.relative_to(folder).as_posix(),
    )  # fmt: skip


def wait_for_quiet(limit: float, patience_s: float, fleet: Fleet) -> None:
    """Until others used less than `limit` of a core for two seconds, or patience is at its end."""
    deadline = time.monotonic() + patience_s
    told = False
    while time.monotonic() < deadline:
        before = noise.moment(fleet.sessions())
        time.sleep(2)
        if noise.foreign_cpu(before, noise.moment(fleet.sessions())) <= limit:
            return
        if not told:
            fleet.progress("waiting for a quiet machine")
            told = True


def drive(scenario: Scenario, turn: Turn, server: Server, fleet: Fleet, wish: Wish, name: str) -> dict[str, Any]:
    """What the load's own process says, in a session of its own; a problem where it says nothing."""
    plan = {
        "load": scenario.load, "base": server.base, "model": str(fleet.host.model), "run": name,
        "trace": str(server.trace),
        "settings": {**scenario.settings, **turn.case.settings, **wish.settings}, "pids": [server.process.pid],
    }  # fmt: skip
    environment = dict(server_environment(fleet.host, fleet.folder, planted=False))
    command = [str(fleet.host.python), "-W", "ignore", "-m", "stackctl_bed.drive"]
    with open(fleet.folder / "loads.log", "ab") as log:
        process = processes.start(command, cwd=fleet.folder, env=environment, log=log, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            out, _ = process.communicate(json.dumps(plan).encode(), timeout=scenario.timeout_s)
        except subprocess.TimeoutExpired:
            out = b""
            problem = f"the load did not end within {scenario.timeout_s:g} s"
        else:
            problem = f"the load's process ended with {process.returncode}: see loads.log"
        finally:
            processes.end(process, 0.0)
    try:
        answer: dict[str, Any] = json.loads(out)
        return answer
    except ValueError:
        return {"metrics": {}, "answers": {}, "problems": [problem], "skipped": {}, "samples": []}


def _session_cpu(server: Server) -> float:
    return sum(stat.cpu_s for stat in processes.stats() if stat.session == server.process.pid)


def now_utc() -> str:
    """For a record."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
