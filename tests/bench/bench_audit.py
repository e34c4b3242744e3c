"""The audit of one release step under a fork of 60 entries, cold and warm: `python -m tests.bench.bench_audit`.

The fork is generated on the release before the newest, and Git merges the newest into it. A real fork is
measured with --repo DIR --sides BASE OURS THEIRS MERGED. Prints medians, asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bench_stack import Bench
from tests.bench.generated_stack import generate
from tests.support import NEWEST, RELEASES, git, releases_repository

ENTRIES, FILES = 60, 120  # a public fork of 63 patches touches 91 files


def merged_fork(home: Path) -> tuple[Path, list[str]]:
    """A repository with a generated fork and its merge, and the four sides."""
    before = RELEASES[-2]
    repository = releases_repository(home / "repo", before, NEWEST)
    (home / "stack").mkdir()
    ours = generate(repository, f"v{before}", home / "stack", entries=ENTRIES, files=FILES).branch
    tree = home / "tree"
    git(repository.path, "worktree", "add", "--quiet", "--detach", str(tree), ours)
    git(tree, "-c", "merge.renames=true", "merge", "--quiet", "--no-edit", "-X", "ours", f"v{NEWEST}")
    return repository.path, [f"v{before}", ours, f"v{NEWEST}", git(tree, "rev-parse", "HEAD")]


def measure(bench: Bench, repository: Path, sides: Sequence[str]) -> None:
    """The audit with nothing known and with all, beside Git's own merge of the same two and a plain parse."""
    names = ("--base", "--ours", "--theirs", "--merged")
    words = [word for pair in zip(names, sides, strict=True) for word in pair]
    audit = bench.stackctl("audit", "--repo", str(repository), *words, "--format", "json")
    bench.add("audit, cold", audit, budget=30, before=lambda: shutil.rmtree(bench.cache, ignore_errors=True))
    bench.add("audit, warm", audit, budget=3, runs=max(bench.runs, 5))
    merge = ["git", "-C", str(repository), "merge-tree", "--write-tree", sides[1], sides[2]]
    bench.add("git merge-tree of the same sides", merge, peer="audit, warm")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("--repo", type=Path, help="a repository with a real fork")
    parser.add_argument("--sides", nargs=4, metavar=("BASE", "OURS", "THEIRS", "MERGED"))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if bool(options.repo) != bool(options.sides):
        parser.error("give --repo and --sides together")
    with tempfile.TemporaryDirectory(prefix="stackctl-bench-") as scratch:
        bench, load = Bench(Path(scratch), options.runs), os.getloadavg()[0]
        repository, sides = (options.repo.absolute(), options.sides) if options.repo else merged_fork(Path(scratch))
        measure(bench, repository, sides)
        print(f"{' '.join(sides)}: {bench.runs} runs, {os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after")
        print("\n".join(bench.table()))


if __name__ == "__main__":
    main()
