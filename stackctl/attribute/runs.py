"""Run a pytest selection in a folder and read what became of each test from its JUnit file."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.reports.junit_read import read_junit

_RAN = (0, 1, 2, 5)  # passed, failed, stopped by errors that are in the file, nothing selected
# What a test run of ours, or a Git hook that called us, would hand on to a test run of theirs.
_NOT_PASSED = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST", "GIT_")


@dataclass(frozen=True)
class Runner:
    """How tests are run: with which interpreter, from which source folder of the tree, for how many seconds at most."""

    python: Path
    source: str = "python"
    timeout: float = 3600

    def environment(self, folder: Path) -> dict[str, str]:
        """The tree's own modules come first, whatever is installed; no byte code is left behind."""
        paths = [str(folder / self.source), str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED)}
        return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes] | str:
        """Run a command in a tree; a text says why it could not be run to its end."""
        try:
            return subprocess.run(
                command, cwd=folder, env=self.environment(folder), stdin=subprocess.DEVNULL,
                capture_output=True, timeout=self.timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"did not end within {self.timeout:g} s"
        except OSError as error:
            return f"{command[0]} cannot be run: {error.strerror}"


@dataclass(frozen=True)
class Run:
    """One run: each test's outcome, why it cannot be judged, and the paths that the tree has not."""

    outcomes: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    absent: tuple[str, ...] = ()

    @property
    def figures(self) -> str:
        """As people write it: 1025P/83F/9S, errors as E."""
        counts = Counter(self.outcomes.values())
        return "/".join(
            f"{counts[word]}{letter}"
            for word, letter in (("passed", "P"), ("failed", "F"), ("error", "E"), ("skipped", "S"))
            if counts[word] or letter in "PF"
        )


def run_pytest(folder: Path, selection: Sequence[str], runner: Runner) -> Run:
    """Run a selection once. Paths that this tree has not are left out and said."""
    absent = tuple(word for word in selection if _is_path(word) and not (folder / word.split("::")[0]).exists())
    words = [word for word in selection if word not in absent]
    if absent and not any(_is_path(word) for word in words):
        return Run(absent=absent)  # without a path pytest would take the whole tree
    with tempfile.TemporaryDirectory(prefix="stackctl-junit-") as name:
        junit = Path(name) / "junit.xml"
        command = [
            str(runner.python),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-o",
            "junit_family=xunit1",
            "--continue-on-collection-errors",
            f"--junitxml={junit}",
            *words,
        ]
        done = runner.run(command, folder)
        if isinstance(done, str):
            return Run(problem=done, absent=absent)
        return _read(junit, done, absent)


def _read(junit: Path, done: subprocess.CompletedProcess[bytes], absent: tuple[str, ...]) -> Run:
    said = (done.stderr or done.stdout).decode(errors="replace").strip()[-500:]
    if done.returncode not in _RAN:
        return Run(problem=f"pytest ended with {done.returncode}: {said}", absent=absent)
    try:
        return Run(read_junit(junit), "", absent)
    except StackctlError as error:
        return Run(problem=f"{error.message}: {said}", absent=absent)


def _is_path(word: str) -> bool:
    return not word.startswith("-") and ("/" in word or word.split("::")[0].endswith(".py"))


def split_command(command: str, runner: Runner) -> list[str]:
    """A command of the stack's definition of done; a leading `python` is the interpreter that was named."""
    words = shlex.split(command)
    return [str(runner.python), *words[1:]] if words[:1] == ["python"] else words
