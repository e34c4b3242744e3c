"""The tests that travel with entries run here too, on the entries' own files, without SGLang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

TESTS = sorted(ROOT.glob("entries/*/files/test/registered/unit/**/test_*.py"))


def test_there_are_some() -> None:
    assert {"test_preprocess_executor.py", "test_token_pieces.py"} <= {path.name for path in TESTS}


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_travelling(path: Path, tmp_path: Path) -> None:
    sources = os.pathsep.join(map(str, sorted(ROOT.glob("entries/*/files/python"))))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        f"--rootdir={tmp_path}",
        str(path),
    ]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": sources}, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
