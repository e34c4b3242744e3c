"""Verify, apply, list and help on a full tree, beside peers in the same run: `python -m tests.bench.bench_stack`.

Prints medians and ratios and asserts nothing: a number on another machine, or a busy one, is no failure.
`cpu` is user and system time of the command and all it started; `rss` the most that it and its children
held together. A generated stack that took minutes to make is kept with --folder DIR and used again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackctl.trees.git import Repository
from tests.bench.generated_stack import crashes, generate
from tests.support import NEWEST, ROOT, git, releases_repository

TAG = f"v{NEWEST}"


@dataclass(frozen=True)
class Cost:
    """What one run of one command took, in seconds and MB, and its exit code."""

    wall: float
    cpu: float
    rss: float
    code: int


@dataclass(frozen=True)
class Row:
    """One line of the table: medians over the runs, the budget and what it is compared with."""

    name: str
    costs: Sequence[Cost]
    budget: float = 0.0
    less: float = 0.0  # taken off before the budget is held against it: the interpreter's own start
    peer: str = ""

    def median(self, field: str) -> float:
        return statistics.median(getattr(cost, field) for cost in self.costs)


def measured(command: Sequence[str], folder: Path, cache: Path) -> Cost:
    """Run a command once, its output thrown away."""
    environment = {**os.environ, "STACKCTL_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak, done = [0.0], threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peak, done))
    watcher.start()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    done.set()
    watcher.join()
    return Cost(wall, used.ru_utime + used.ru_stime, max(peak[0], used.ru_maxrss / 1024), process.returncode)


def _watch(pid: int, peak: list[float], done: threading.Event) -> None:
    """Note the most memory that a process and its children hold together (Linux; elsewhere only the greatest's)."""
    while not done.wait(0.1):
        with contextlib.suppress(OSError, ValueError, IndexError):
            peak[0] = max(peak[0], sum(map(_resident, _family(pid))))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _family(int(child))


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Bench:
    """One run of everything in one scratch folder."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder = folder
        self.runs = runs
        self.cache = folder / "cache"
        self.rows: list[Row] = []

    def add(self, name: str, command: Sequence[str], *, budget: float = 0.0, before: Callable[[], None] = lambda: None,
            runs: int = 0, less: float = 0.0, peer: str = "") -> Row:  # fmt: skip
        """Measure a command and note it."""
        costs = []
        for _ in range(runs or self.runs):
            before()
            costs.append(measured(command, self.folder, self.cache))
        self.rows.append(Row(name, costs, budget, less, peer))
        print(f"  {name}: done", file=sys.stderr, flush=True)
        return self.rows[-1]

    def stackctl(self, *arguments: str, stack: Path = ROOT) -> list[str]:
        return [sys.executable, "-m", "stackctl", "--stack", str(stack), *arguments]

    def start(self) -> None:
        """--help and list over the interpreter's own start."""
        plain = self.add("python -c pass", [sys.executable, "-c", "pass"], runs=9)
        for words in (["--help"], ["list"]):
            self.add(
                f"stackctl {words[-1]}",
                self.stackctl(*words),
                runs=9,
                budget=0.15,
                less=plain.median("wall"),
                peer="python -c pass",
            )

    def apply(self, repository: Repository) -> None:
        """Entry 201 and the whole stack on the newest release, and git am of what they made."""
        for name, only in (("entry 201", ["--only", "201", "--only", "190"]), ("whole stack", [])):
            branch = f"bench-{len(only)}"
            apply = self.stackctl("apply", "--repo", str(repository.path), "--onto", TAG, "--branch", branch, *only)
            self.add(f"apply {name}", apply, budget=8, before=lambda branch=branch: self._fresh(repository, branch))
            self.add(f"apply {name}, second run", apply, budget=1)
            self._am(repository, branch, name)

    def _fresh(self, repository: Repository, branch: str) -> None:
        shutil.rmtree(self.cache, ignore_errors=True)
        if repository.exists(f"refs/heads/{branch}"):
            git(repository.path, "branch", "--quiet", "-D", branch)

    def _am(self, repository: Repository, branch: str, name: str) -> None:
        """`git am` of the branch's own commits, in a work tree that is checked out beforehand."""
        series, tree = self.folder / f"series-{branch}", self.folder / f"tree-{branch}"
        git(repository.path, "format-patch", "--quiet", "--output-directory", str(series), f"{TAG}..{branch}")
        patches = sorted(map(str, series.iterdir()))
        git(repository.path, "worktree", "add", "--quiet", "--detach", str(tree), TAG)
        person = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
        self.add(f"git am of it, {len(patches)} patches", ["git", "-C", str(tree), *person, "am", "--quiet", *patches],
                 before=lambda: git(tree, "reset", "--hard", "--quiet", TAG) and None, peer=f"apply {name}")  # fmt: skip

    def verify(self, repository: Repository, stack: Path, branch: str) -> None:
        """The generated stack on its own tree, with nothing known and with everything."""
        command = self.stackctl(
            "verify", "--repo", str(repository.path), "--at", branch, "--format", "json", stack=stack
        )
        self.add("verify, cold", command, budget=6, before=lambda: shutil.rmtree(self.cache, ignore_errors=True))
        self.add("verify, warm", command, budget=0.5, runs=max(self.runs, 5))
        self.add("list of 300 entries, warm", self.stackctl("list", stack=stack), runs=5)
        parse = "import ast, pathlib, sys\nfor p in sorted(pathlib.Path(sys.argv[1]).rglob('*.py'))[::3]: ast.parse(p.read_bytes())"
        tree = self.folder / "checkout"
        git(repository.path, "worktree", "add", "--quiet", "--detach", str(tree), branch)
        self.add(
            "ast.parse of every third file",
            [sys.executable, "-W", "ignore", "-c", parse, str(tree / "python")],
            peer="verify, cold",
        )

    def table(self) -> Iterator[str]:
        """The table, a line at a time."""
        names = {row.name: row for row in self.rows}
        yield f"{'':34} {'wall s':>8} {'cpu s':>8} {'rss MB':>7} {'exit':>4}  {'budget':>14}  beside"
        for row in self.rows:
            wall = row.median("wall")
            kept = "" if not row.budget else f"{row.budget:g} s {'kept' if wall - row.less <= row.budget else 'OVER'}"
            other = names.get(row.peer)
            # A peer's own line says how much longer the command took; a command's line what it is measured over.
            beside = (
                ""
                if other is None
                else f"{row.peer}: x{max(wall, other.median('wall')) / min(wall, other.median('wall')):.2f}"
            )
            codes = "/".join(sorted({str(cost.code) for cost in row.costs}))
            yield f"{row.name:34} {wall:8.3f} {row.median('cpu'):8.3f} {row.median('rss'):7.0f} {codes:>4}  {kept:>14}  {beside}"


def _stack(folder: Path, repository: Repository, files: int) -> tuple[Path, str]:
    """The generated stack, made unless a kept folder has it."""
    kept = folder / "stack" / "made.json"
    if not kept.is_file():
        print("generating 300 entries with 3,000 plants; this takes minutes", file=sys.stderr, flush=True)
        (folder / "stack").mkdir()
        made = generate(repository, TAG, folder / "stack", files=files)
        said = f"{sum(made.kinds.values())} plants in {made.files} files: " + ", ".join(
            f"{n} {kind}" for kind, n in made.kinds.most_common()
        )
        kept.write_text(json.dumps({"branch": made.branch, "said": said}))
        for plant, error in crashes:
            print(
                f"not plantable without a traceback: {plant.kind} {plant.host} {dict(plant.options)}: {type(error).__name__}",
                file=sys.stderr,
            )
    facts = json.loads(kept.read_text())
    print(facts["said"])
    return folder / "stack", facts["branch"]


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the generated stack here and use it again")
    parser.add_argument("--files", type=int, default=1500, help="modules that the generated plants are spread over")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=("start", "apply", "verify"), action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stackctl-bench-") as scratch:
        home = options.folder or Path(scratch) / "kept"
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "repo").is_dir():
            releases_repository(home / "repo", NEWEST)
        git(home / "repo", "worktree", "prune")
        repository, bench = Repository(home / "repo"), Bench(Path(scratch), options.runs)
        wanted = options.only or ["start", "apply", "verify"]
        load = os.getloadavg()[0]
        if "start" in wanted:
            bench.start()
        if "apply" in wanted:
            bench.apply(repository)
        if "verify" in wanted:
            bench.verify(repository, *_stack(home, repository, options.files))
        print(
            f"SGLang {NEWEST}, {bench.runs} runs, {os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after"
        )
        print("\n".join(bench.table()))
        if max(load, os.getloadavg()[0]) > (os.cpu_count() or 1):
            print("Others are at work on this machine: believe the cpu column and the ratios, not the wall clock.")


if __name__ == "__main__":
    main()
