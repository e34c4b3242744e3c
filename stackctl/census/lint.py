"""Lint by difference: what ruff's E9 and F821 say of a merged tree and of neither of its sides."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict
from stackctl.trees.tree import Tree

RULES = "E9,F821"
_SECONDS = 300


@dataclass(frozen=True)
class Complaint:
    """One line of ruff's: `code` is empty for a syntax error."""

    path: str
    line: int
    code: str
    message: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same on another side, wherever it stands in the file."""
        return self.path, self.code, self.message


@dataclass(frozen=True)
class Lint:
    """Complaints in the touched files: counts (ours, theirs, merged), those only merged has, or why not judged."""

    touched: tuple[str, ...]
    counts: tuple[int, ...] = ()
    added: tuple[Complaint, ...] = ()
    problem: str = ""

    def findings(self) -> list[Finding]:
        """The added ones as findings; if ruff did not run, that it did not."""
        if self.problem:
            return [Finding(Verdict.NOT_JUDGED, f"lint ({RULES}) was not run", evidence=self.problem)]
        return [
            Finding(
                Verdict.UNRESOLVED if each.code == "F821" else Verdict.UNPARSABLE,
                each.message,
                each.path,
                each.line,
                evidence=f"ruff {each.code or 'syntax error'}, on neither side of the merge",
            )
            for each in self.added
        ]


def lint_merge(ours: Tree, theirs: Tree, merged: Tree) -> Lint:
    """Lint the files that the merge made anew: one that is a side's own, byte for byte, can add nothing."""
    touched = tuple(path for path in merged.paths() if _touched(path, ours, theirs, merged))
    ruff = find_ruff()
    if not touched or ruff is None:
        return Lint(touched, (0, 0, 0), problem="" if not touched else "ruff is not installed: pip install ruff")
    try:
        sides = [_complaints(ruff, tree, touched) for tree in (ours, theirs, merged)]
    except StackctlError as error:
        return Lint(touched, problem=str(error))
    return Lint(touched, tuple(map(len, sides)), tuple(_added(sides[2], sides[:2])))


def find_ruff() -> str | None:
    """ruff's program: beside this Python, else on the path."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.is_file() else shutil.which("ruff")


def _touched(path: str, ours: Tree, theirs: Tree, merged: Tree) -> bool:
    if not path.endswith(".py") or not merged.is_file(path):
        return False
    blob = merged.blob(path)
    return not any(side.is_file(path) and side.blob(path) == blob for side in (ours, theirs))


def _added(merged: Sequence[Complaint], sides: Sequence[Sequence[Complaint]]) -> list[Complaint]:
    """What merged has more of than either side, the last ones in the file."""
    known: Counter[tuple[str, str, str]] = Counter()
    for side in sides:
        known |= Counter(complaint.key for complaint in side)
    added = []
    for complaint in merged:
        if known[complaint.key]:
            known[complaint.key] -= 1
        else:
            added.append(complaint)
    return added


def _complaints(ruff: str, tree: Tree, paths: Sequence[str]) -> list[Complaint]:
    """ruff's complaints on some files of a tree, written to a scratch folder: no configuration of the tree counts."""
    with tempfile.TemporaryDirectory(prefix="stackctl-lint-") as name:
        folder = Path(name).resolve()
        for path in paths:
            if tree.is_file(path) and ".." not in path.split("/") and not path.startswith("/"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(tree.read(path))
        return _run(ruff, folder)


def _run(ruff: str, folder: Path) -> list[Complaint]:
    words = [
        ruff,
        "check",
        "--isolated",
        "--no-cache",
        "--ignore-noqa",
        "--no-respect-gitignore",
        "--quiet",
        "--exit-zero",
        f"--select={RULES}",
        "--output-format=json",
        ".",
    ]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        rows = json.loads(done.stdout or "[]")
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise StackctlError(f"ruff failed: {error}") from None
    if done.returncode:
        raise StackctlError(f"ruff failed: {done.stderr.strip()[-300:] or done.returncode}")
    return [_complaint(row, folder) for row in rows]


def _complaint(row: dict, folder: Path) -> Complaint:
    code = row["code"] if row["code"] not in (None, "invalid-syntax") else ""
    return Complaint(Path(row["filename"]).relative_to(folder).as_posix(), row["location"]["row"], code, row["message"])
