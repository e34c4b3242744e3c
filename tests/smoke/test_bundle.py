"""The bundle for GPU hosts, and what a machine without a GPU says."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile

import pytest

from stackctl.model.errors import StackctlError
from stackctl.smoke import results
from stackctl.smoke.bundle import write_bundle
from tests.support import ROOT, write_files


@pytest.fixture
def bundle(tmp_path):
    """An unpacked bundle of a small tree and the stack's own scenarios."""
    write_files(tmp_path, {
        "tree/python/sglang/__init__.py": "", "tree/python/sglang/__pycache__/x.pyc": "", "tree/docs/x.md": "",
        "model/tokenizer.json": "{}", "model/tokenizer_config.json": "{}", "model/config.json": '{"hidden_size": 64, "vocab_size": 7}',
        "model/encodings/o200k_base.tiktoken": "v",
    })  # fmt: skip
    write_bundle(tmp_path / "b.tar.gz", tmp_path / "tree", tmp_path / "model", ROOT / "checks" / "smoke", results.Subject("0.5.23", "x", None))
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        archive.extractall(tmp_path / "host", filter="data")
    return tmp_path / "host" / "stackctl-smoke"


def test_it_holds_everything_that_a_run_needs(bundle):
    for path in ("tree/python/sglang/__init__.py", "model/encodings/o200k_base.tiktoken", "stack/stack.toml", "stack/checks/smoke/decode.toml", "stackctl/cli/main.py"):
        assert (bundle / path).is_file(), path
    assert '"hidden_size": 4096' in (bundle / "model/config.json").read_text() and '"vocab_size": 7' in (bundle / "model/config.json").read_text()
    assert not list(bundle.rglob("*.pyc")) and not (bundle / "tree/docs").exists()
    subprocess.run(["sh", "-n", str(bundle / "run")], check=True)


def test_without_a_gpu_nothing_is_run(bundle, tmp_path):
    """As on a host where no driver answers: exit code 2, no results, and nothing that could be taken for any."""
    environment = {"PATH": f"{os.path.dirname(sys.executable)}:/bin:/usr/bin", "STACKCTL_SMOKE_OUT": str(tmp_path / "out"), "HOME": str(tmp_path)}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    environment["PATH"] = f"{tmp_path / 'bin'}:{environment['PATH']}"
    done = subprocess.run(["sh", str(bundle / "run"), sys.executable], capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and "no NVIDIA GPU" in done.stderr and "passed" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
    assert subprocess.run(["sh", str(bundle / "run")], capture_output=True).returncode == 2


def test_it_is_refused_where_it_cannot_be_written(tmp_path):
    with pytest.raises(StackctlError):
        write_bundle(tmp_path / "no" / "b.tar.gz", tmp_path, tmp_path, ROOT / "checks" / "smoke", results.Subject("0.5.23", "x", None))
