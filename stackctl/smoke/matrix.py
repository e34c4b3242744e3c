"""The matrix of releases by hosts over Ray: a bundle per release, run on every host, results brought home.

Ray is the optional extra `ray`. A host needs only what a bundle needs: a Python that has SGLang of the release.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.smoke.bundle import TOP
from stackctl.smoke.servers import Progress


@dataclass(frozen=True)
class Order:
    """What every cell of the matrix runs: scenarios, engine, the hosts' Python (with {release} in it), a limit."""

    scenarios: Sequence[str]
    engine: str
    python: str
    minutes: float


@dataclass(frozen=True)
class Cell:
    """One release on one host: the exit code of its run, None where it never came back, and the end of its log."""

    release: str
    host: str
    code: int | None
    log: str


def run_matrix(address: str, bundles: Mapping[str, Path], order: Order, out: Path, progress: Progress) -> list[Cell]:
    """Run every bundle on every living host of the cluster at `address`; one GPU a run where the engine wants one.

    Results are in `out`/RELEASE/HOST. Raises StackctlError where Ray is missing or the cluster does not answer.
    """
    ray = _ray()
    # By value: the hosts do not have stackctl, they get it in the bundle.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise StackctlError(f"no Ray cluster answers: {error}", address) from error
    try:
        hosts = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
        waiting = {}
        for release, bundle in bundles.items():
            data = ray.put(bundle.read_bytes())
            for node, host in hosts.items():
                progress(f"{release} on {host}")
                waiting[_remote(ray, node, order).remote(data, release, order)] = (release, f"{host}-{node[:6]}")
        return _collected(ray, waiting, out, progress)
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise StackctlError("Ray is not installed", hint="pip install 'stackctl[ray]'") from None
    return ray


def _remote(ray: Any, node: str, order: Order) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return ray.remote(run_cell).options(
        num_cpus=2, num_gpus=1 if order.engine == "gpu" else 0, max_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False),
    )  # fmt: skip


def run_cell(bundle: bytes, release: str, order: Order) -> tuple[int | None, str, bytes]:
    """On a host: unpack, run, give back exit code, log and the results as a tar. Nothing of it stays there."""
    with tempfile.TemporaryDirectory(prefix="stackctl-matrix-") as folder:
        with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
            archive.extractall(folder, filter="data")
        results = Path(folder) / "results"
        environment = os.environ | {
            "STACKCTL_SMOKE_OUT": str(results), "STACKCTL_SMOKE_ENGINE": order.engine, "STACKCTL_SMOKE_SCENARIOS": " ".join(order.scenarios),
        }  # fmt: skip
        command = ["sh", f"{folder}/{TOP}/run", order.python.format(release=release), "--time-limit", str(order.minutes)]
        # The run ends itself at its limit; this only catches one that cannot.
        try:
            done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60 * order.minutes + 300)
        except subprocess.TimeoutExpired:
            return None, "it did not end at its time limit", b""
        packed = Path(f"{results}.tar.gz")
        return done.returncode, (done.stdout + done.stderr)[-4000:], packed.read_bytes() if packed.is_file() else b""


def _collected(ray: Any, waiting: dict[Any, tuple[str, str]], out: Path, progress: Progress) -> list[Cell]:
    cells: list[Cell] = []
    while waiting:
        (done,), _ = ray.wait(list(waiting), num_returns=1)
        release, host = waiting.pop(done)
        try:
            code, log, packed = ray.get(done)
        except ray.exceptions.RayError as error:  # the host went away, or the task died: nothing was judged there
            code, log, packed = None, str(error), b""
        folder = out / release / re.sub(r"[^\w.-]", "_", host)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log.txt").write_text(log, encoding="utf-8")
        if packed:
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                archive.extractall(folder, filter="data")
        progress(f"{release} on {host}: exit code {code}")
        cells.append(Cell(release, host, code, log))
    return sorted(cells, key=lambda cell: (cell.release, cell.host))
