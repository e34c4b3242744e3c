"""Runs of the command on real servers, for tests that are marked smoke."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support import ROOT

RELEASE = os.environ.get("STACKCTL_SMOKE_RELEASE", "0.5.23")


def stack_without(folder: Path, plants: Iterable[str] = (), entry: str = "201-preprocess-executor") -> Path:
    """A copy of the repository's own stack in which these plants of an entry are not declared."""
    for name in ("entries", "patches", "checks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "stack.toml", folder)
    manifest = folder / "entries" / entry / "entry.toml"
    text = manifest.read_text()
    for plant in plants:
        text, count = re.subn(rf'\[\[plant\]\]\nid = "{plant}"\n(?:(?!\[\[).*\n?)*', "", text)
        assert count == 1, plant
    manifest.write_text(text)
    return folder


def edited(stack: Path, name: str, old: str, new: str) -> Path:
    """The stack with one change in a file that it plants."""
    path = next(stack.glob(f"entries/*/files/**/{name}"))
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))
    return stack


def smoke(stack: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`stackctl smoke run` on a stack, planted on RELEASE for the run."""
    command = [sys.executable, "-m", "stackctl", "--stack", str(stack), "smoke", "run", *arguments, "--onto", f"v{RELEASE}", "--out", str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)


def result(out: Path, scenario: str) -> dict[str, Any]:
    """A scenario's result."""
    table: dict[str, Any] = json.loads((out / scenario / "result.json").read_text())
    return table
