"""Audit merges of well-kept public repositories: a clean merge must report nothing.

    python tests/bench/clean_merges.py REPO [REPO ...] [--count 20]
    python tests/bench/clean_merges.py REPO --merge COMMIT [--merge COMMIT ...]

Chosen from each repository's main line: merges of two parents that both changed Python code since
their base, at least one file on both sides, spread evenly over the newest 500 merges.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from auditing import Clock, peak_megabytes, run_audit, show, troubles

from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Level
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree

_SCANNED = 500
_LEAST_FILES = 2


@dataclass(frozen=True)
class Merge:
    """One merge and how much Python each side changed."""

    repository: Path
    commit: str
    base: str
    parents: tuple[str, str]
    ours: int
    theirs: int
    both: int


def main() -> int:
    """Audit every chosen merge, print its findings, and exit 1 if any is an error."""
    given = _arguments()
    share = -(-given.count // len(given.repo))
    errors = warnings = 0
    for path in given.repo:
        merges = [merge for name in given.merge or () if (merge := read_merge(path, name))]
        for merge in merges or choose(path, share):
            found = audit(merge)
            errors, warnings = errors + found[0], warnings + found[1]
    print(f"total: {errors} errors, {warnings} warnings; peak {peak_megabytes():.0f} MB")
    return int(bool(errors))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("repo", nargs="+", type=Path, help="a Git repository with history")
    parser.add_argument("--count", type=int, default=20, help="merges in all, an even share from each repository")
    parser.add_argument("--merge", action="append", help="this merge and no chosen ones")
    return parser.parse_args()


def choose(path: Path, count: int) -> list[Merge]:
    """`count` merges that both sides have Python changes in, spread over those found."""
    commits = _git(path, "rev-list", "--merges", "--min-parents=2", "--max-parents=2", "HEAD").split()
    found = [merge for commit in commits[:_SCANNED] if (merge := read_merge(path, commit)) and _is_real(merge)]
    return found[:: max(1, len(found) // count)][:count]


def _is_real(merge: Merge) -> bool:
    """Whether both sides changed Python, and one file at least on both."""
    return merge.ours >= _LEAST_FILES and merge.theirs >= _LEAST_FILES and merge.both > 0


def read_merge(path: Path, commit: str) -> Merge | None:
    """One merge of two parents with a single best common ancestor."""
    parents = _git(path, "rev-list", "--parents", "-n", "1", commit).split()[1:]
    bases = _git(path, "merge-base", "--all", *parents).split() if len(parents) == 2 else []
    if len(bases) != 1:
        return None
    ours, theirs = (_python_changes(path, bases[0], parent) for parent in parents)
    return Merge(path, commit, bases[0], (parents[0], parents[1]), len(ours), len(theirs), len(ours & theirs))


def _python_changes(path: Path, base: str, side: str) -> set[str]:
    """The Python files that `side` changed since `base`."""
    return set(_git(path, "diff", "--name-only", "--no-renames", base, side, "--", "*.py").splitlines())


def audit(merge: Merge) -> tuple[int, int]:
    """Print what the audit says of one merge; how many errors and warnings."""
    clock, repository = Clock(), Repository(merge.repository)
    report = run_audit([GitTree(repository, ref) for ref in (merge.base, *merge.parents, merge.commit)])
    found = troubles(report)
    errors = sum(finding.severity is Level.ERROR for finding in found)
    subject = _git(merge.repository, "log", "-1", "--format=%as %s", merge.commit).strip()
    sizes = f"{merge.ours} + {merge.theirs} files, {merge.both} shared"
    print(f"{merge.commit[:10]} {subject[:70]} ({sizes}): {errors} errors, {len(found) - errors} warnings; {clock}")
    for line in _lines(found):
        print("    ", line, flush=True)
    return errors, len(found) - errors


def _lines(found: list) -> Iterator[str]:
    """The findings, errors first."""
    for finding in sorted(found, key=lambda finding: (finding.severity is not Level.ERROR, finding.path, finding.line)):
        yield show(finding)


def _git(path: Path, *arguments: str) -> str:
    """The output of a reading Git command; `merge-base` of unrelated histories ends with 1 and says nothing."""
    done = subprocess.run(["git", "-C", str(path), *arguments], capture_output=True, check=False)
    if done.returncode > 1:
        raise StackctlError(done.stderr.decode(errors="replace").strip(), str(path))
    return done.stdout.decode(errors="replace")


if __name__ == "__main__":
    raise SystemExit(main())
