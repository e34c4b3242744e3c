"""The record of a scenario's run: result.json, as result.schema.json describes it, and how it is read again."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from stackctl import __version__
from stackctl.model.errors import StackctlError
from stackctl.smoke.judging import FAILED, NOT_JUDGED, Judged, RunResult, summarize
from stackctl.smoke.scenario import Scenario
from stackctl.smoke.servers import Host, Server

RESULT = "result.json"
PACKAGES = ("sglang", "transformers", "tokenizers", "torch", "fastapi", "uvicorn", "uvloop", "pyzmq", "aiohttp", "openai-harmony")


@dataclass(frozen=True)
class Subject:
    """What was tested: the release, the tree as it was named, and its commit where it has one."""

    release: str
    tree: str
    commit: str | None


def versions(python: Path) -> dict[str, str]:
    """Of the interpreter and of what decides the result; asked of the environment, importing nothing of it."""
    code = (
        "import importlib.metadata as m, json, sys\n"
        "found = {'python': sys.version.split()[0]}\n"
        f"for name in {PACKAGES!r}:\n"
        "    try: found[name] = m.version(name)\n"
        "    except m.PackageNotFoundError: pass\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise StackctlError(f"this Python does not run: {done.stderr.strip()[-300:]}", str(python))
    found: dict[str, str] = json.loads(done.stdout)
    return found


def hardware() -> dict[str, Any]:
    """The machine."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), platform.machine())
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "memory_mb": pages * size // 2**20, "kernel": platform.release(), "gpus": gpus()}


def gpus() -> list[str]:
    """The NVIDIA GPUs of this machine, as their driver names them; empty where there is no driver."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def require_engine(engine: str) -> None:
    """Raises StackctlError for the GPU engine on a machine without a GPU: nothing is run, nothing is judged."""
    if engine == "gpu" and not gpus():
        raise StackctlError("this machine has no NVIDIA GPU with a driver: nothing was run", hint="--engine frontend needs none")


def record(
    scenario: Scenario, subject: Subject, host: Host, runs: Sequence[RunResult], judged: Sequence[Judged], problems: Sequence[str],
    verdict: str, servers: Sequence[Server], started: str, seconds: float, plots: Sequence[str], facts: dict[str, dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Everything that there is to say of a run, as JSON gives it back."""
    figures = summarize(runs)
    failed = [f"{one.case}: {one.text}" + (f" ({one.why})" if one.why else "") for one in judged if one.verdict == FAILED]
    open_ones = [f"{one.case}: {one.text}: {one.why}" for one in judged if one.verdict == NOT_JUDGED]
    skipped = {f"{run.case}, {run.arm}: {name}": why for run in runs for name, why in run.skipped.items()}
    table = {
        "schema": 1, "command": "smoke run", "stackctl": __version__, "scenario": scenario.name, "title": scenario.title,
        "engine": host.engine, "verdict": verdict, "problems": [*problems, *failed], "not_judged": open_ones, "skipped": skipped,
        "started": started, "seconds": round(seconds, 1), "subject": asdict(subject), **facts,
        "settings": dict(scenario.settings), "environment": dict(scenario.environment),
        "noise": {"foreign_cpu_limit": scenario.foreign_cpu, "disturbed_runs": sum(not run.quiet for run in runs)},
        "servers": [_server(server) for server in servers],
        "arms": [{"name": arm.name, "tree": arm.tree, "control": arm.control, "environment": dict(arm.environment), "flags": list(arm.flags)} for arm in scenario.arms],
        "cases": [{"name": case.name, "settings": dict(case.settings), "environment": dict(case.environment), "flags": list(case.flags)} for case in scenario.cases],
        "runs": [asdict(run) for run in runs],
        "figures": [
            {"arm": arm, "case": case, "metric": metric, "median": spread.median, "low": spread.low, "high": spread.high, "runs": len(spread.values)}
            for (arm, case, metric), spread in sorted(figures.items())
        ],
        "claims": [asdict(one) for one in judged], "plots": list(plots),
    }  # fmt: skip
    plain: dict[str, Any] = json.loads(json.dumps(table))
    return plain


def _server(server: Server) -> dict[str, Any]:
    return {
        "name": server.name, "planted": server.spec.planted, "environment": dict(server.spec.environment), "flags": list(server.spec.flags),
        "boot_s": server.boot_s, "command": list(server.command[4:]), "log": server.log.name, "trace": server.trace.name,
    }  # fmt: skip


def write(folder: Path, result: dict[str, Any]) -> Path:
    """result.json in the scenario's folder, written in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{RESULT}.new"
    fresh.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(fresh, folder / RESULT)
    return folder / RESULT


def read(folder: Path) -> list[dict[str, Any]]:
    """The results of a run's folder, or of one scenario's. Raises StackctlError where there are none."""
    paths = [folder / RESULT] if (folder / RESULT).is_file() else sorted(folder.glob(f"*/{RESULT}"))
    if not paths:
        raise StackctlError("holds no result of a smoke run", str(folder), "name a folder that `stackctl smoke run` wrote")
    found: list[dict[str, Any]] = []
    for path in paths:
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            if table["schema"] != 1 or table["command"] != "smoke run":
                raise KeyError("schema")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StackctlError(f"is not a result of a smoke run: {error}", str(path)) from error
        found.append(table)
    return found


def schema() -> dict[str, Any]:
    """The JSON schema of result.json."""
    text: dict[str, Any] = json.loads(files("stackctl.smoke").joinpath("result.schema.json").read_text(encoding="utf-8"))
    return text
