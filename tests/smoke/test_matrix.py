"""The matrix over Ray, on a cluster of this machine: a real bundle, a real server, the results brought home."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stackctl.trees.cache import cache_folder
from tests.smoke.booting import RELEASE
from tests.support import ROOT

ray = pytest.importorskip("ray", reason="pip install 'stackctl[ray]'")
pytestmark = pytest.mark.smoke


@pytest.fixture
def cluster():
    """One node, ended with all its processes."""
    from ray.cluster_utils import Cluster

    one = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        yield one
    finally:
        one.shutdown()


def matrix(address: str, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    python = cache_folder() / "smoke" / f"frontend-{RELEASE}" / "venv" / "bin" / "python"
    command = [sys.executable, "-m", "stackctl", "smoke", "matrix", "borrow", "--ray", address, "--release", RELEASE]
    command += ["--python", str(python).replace(RELEASE, "{release}"), "--out", str(out), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)


def test_a_cell_is_run_on_its_host_and_comes_home(cluster, tmp_path):
    done = matrix(cluster.address, tmp_path / "out")
    assert done.returncode in (0, 2), done.stderr[-2000:]  # 2: this machine is too noisy to tell
    (found,) = (tmp_path / "out" / RELEASE).rglob("borrow/result.json")
    table = json.loads(found.read_text())
    assert table["verdict"] in ("passed", "not-judged") and table["runs"]


def test_a_host_without_the_interpreter_is_not_judged(cluster, tmp_path):
    done = matrix(cluster.address, tmp_path / "out", "--python", "/nowhere/{release}/python")
    assert done.returncode != 0 and "passed" not in done.stdout
    assert not list((tmp_path / "out").rglob("result.json"))
