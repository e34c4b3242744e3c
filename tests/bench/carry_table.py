"""Print the table of the issue again: what Git, quilt and StGit stop at, and what a person has to decide with us.

    python tests/bench/carry_table.py REPO SNAPSHOT [STEP ...]

REPO is what `fork_trees.py` built, SNAPSHOT the repository with the series' `patches/` at several commits.
A conflicted hunk counts as carried only if every half of ours in it is; one with a proven adoption in it
stands in a column of its own. What is carried is then compared with the tree that the series' owner made
for the same release, where there is one: statements that are not there are listed. REPO is only read.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from text_tools import quilt_stops, stgit_stops

from stackctl.carry.accepting import carriers
from stackctl.carry.carrying import Carrier
from stackctl.carry.fork import Layer, build_fork
from stackctl.carry.merge3 import ADOPTED, CARRIED, COMMENT, LOOK, Half
from stackctl.carry.proposing import UNDECIDED
from stackctl.carry.series import propose, read_folder, write_entries
from stackctl.model.stack import Disposition
from stackctl.plants.manifest import load_stack
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree

STEPS = {
    "s12": ("3466816", "v0.5.11", "v0.5.12", "f-c8a22ef"),
    "s13": ("8ab4ce6", "v0.5.12", "v0.5.13.post1", "f-192dde7"),
    "s14": ("2f3d753", "v0.5.13.post1", "v0.5.14", "f-5d2fa09"),
    "s15": ("a0445f5", "v0.5.14", "v0.5.15", "f-6dfa754"),
    "s16": ("b86a3fe", "v0.5.15", "v0.5.16", ""),
    "s23": ("b86a3fe", "v0.5.15", "v0.5.23", ""),
}
# Words for what upstream put there too: ours stands in the result.
_SAME = ("upstream has the same", "upstream imports the same", "upstream has it too", "upstream passes the same")
_IDLE = (Disposition.CANDIDATE, Disposition.SUPERSEDED, Disposition.RETIRED, Disposition.BLOCKED)


@dataclass
class Row:
    """One line of the table."""

    step: str
    patches: int = 0
    git: Counter[str] = field(default_factory=Counter)
    quilt: int | None = None
    stgit: int | None = None
    hunks: Counter[str] = field(default_factory=Counter)
    halves: Counter[str] = field(default_factory=Counter)
    units: int = 0
    seconds: float = 0.0
    proposed: list[str] = field(default_factory=list)
    owner: list[str] = field(default_factory=list)
    with_owner: int = 0
    waiting: list[str] = field(default_factory=list)


def main() -> int:
    """Print a table of the chosen steps, then what waits and what differs from the owner's tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("repo", type=Path)
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("steps", nargs="*", default=list(STEPS))
    given = parser.parse_args()
    print(
        "| step | patches | git: files / hunks | quilt stops at | StGit stops at | hunks carried | adopted | proposal | a person | halves | units to decide | s | carried as owner |"
    )
    print("|---" * 13 + "|", flush=True)
    rows = []
    for step in given.steps:
        rows.append(row := measure(step, Repository(given.repo), given.snapshot))
        halves = ", ".join(f"{count} {word}" for word, count in row.halves.most_common())
        print(
            f"| {row.step} | {row.patches} | {row.git['files']} / {row.git['hunks']} "
            f"| {told(row.quilt)} | {told(row.stgit)} | {row.hunks['carried']} | {row.hunks['adopted']} "
            f"| {row.hunks['proposal']} | {row.hunks['person']} | {halves} | {row.units} | {row.seconds:.1f} | {row.with_owner} of {row.with_owner + len(row.owner)} |",
            flush=True,
        )
    for row in rows:
        print(f"\n{row.step}: proposals", *row.proposed, sep="\n  ")
        print(f"\n{row.step}: waits for a person", *row.waiting, sep="\n  ")
        if row.owner:
            print(f"\n{row.step}: carried, and not so in the owner's tree", *row.owner, sep="\n  ")
    return 0


def told(count: int | None) -> str:
    """A text tool's column: how many patches it stops at, or that it is not installed here."""
    return "not-judged" if count is None else str(count)


def measure(step: str, repository: Repository, snapshot: Path) -> Row:
    """One step: import the series, carry it in memory, lay Git's conflicts beside it."""
    commit, base, onto, owner = STEPS[step]
    with tempfile.TemporaryDirectory() as folder:
        series = unpack(snapshot, commit, Path(folder) / "series")
        root = Path(folder) / "stack"
        root.mkdir()
        (root / "stack.toml").write_text(f'name = "fork"\nbase = "{base}"\n')
        import_all(root, series, base, repository)
        began = time.perf_counter()
        (carrier,) = carriers(load_stack(root), repository, onto)
        for entry in carrier.entries:
            carrier.after(entry.number)
        row = Row(step, len(carrier.entries), seconds=time.perf_counter() - began)
        fill(row, carrier, repository, f"f-{commit}", onto)
        numbered = sorted(path for path in series.iterdir() if path.suffix == ".patch" and path.name[0].isdigit())
        row.quilt = quilt_stops(repository, numbered, onto)
        row.stgit = stgit_stops(repository, f"f-{commit}", base, onto)
        if owner:
            compare(row, carrier, GitTree(repository, owner))
    return row


def unpack(snapshot: Path, commit: str, folder: Path) -> Path:
    """The series of one commit, as files."""
    done = subprocess.run(["git", "-C", str(snapshot), "archive", commit, "patches"], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "patches"


def import_all(root: Path, folder: Path, base: str, repository: Repository) -> None:
    """What `stackctl import` does."""
    patches, _ = read_folder(folder)
    layers = [Layer(p.number, p.name, p.data, p.strip) for p in patches if propose(p).disposition not in _IDLE]
    outside = {number: paths for number, paths in build_fork(repository, base, layers).missing.items() if paths}
    write_entries(root, load_stack(root), patches, base, outside)


def fill(row: Row, carrier: Carrier, repository: Repository, ours: str, onto: str) -> None:
    """Git's conflicted hunks, each with the worst state of our halves in it."""
    halves = carrier.after(carrier.last).halves
    row.halves = Counter(half.state for half in halves)
    decisions = carrier.decisions
    row.units, shown = len(decisions.units), decisions.proposals
    row.proposed = [
        f"{number} {path}: {shown[path, unit].kind}: {shown[path, unit].evidence[:200]}"
        for (path, unit), number in decisions.units.items()
        if (path, unit) in shown
    ]
    known = {unit: each for unit, each in shown.items() if each.kind != UNDECIDED}
    row.waiting = [
        f"{h.path}:{h.rows[0] + 1} {h.host}: {h.text[:60]} -- {h.evidence[:120]}"
        for h in halves
        if not h.settled and h.state != COMMENT and (h.path, h.unit) not in known
    ]
    for path, hunks in conflicts(repository, ours, onto).items():
        row.git["files"] += 1
        old = next((old for old, new in carrier.renames.items() if new == path), path)
        mine = [half for half in halves if half.path == path or f"moved from {old}," in half.how]
        state = carrier.fork.after(carrier.last).get(old) or carrier.fork.after(carrier.last).get(path)
        text = state.data.decode("utf-8", "replace").splitlines() if state else []
        at = 0
        for lines in hunks:
            row.git["hunks"] += 1
            at, found = located(text, lines, at)
            row.hunks[verdict(mine, found, known)] += 1


def located(text: Sequence[str], lines: Sequence[str], start: int) -> tuple[int, tuple[int, int] | None]:
    """Where our side of a hunk stands in our file, looked for from `start`; None for a hunk without lines of ours."""
    for row in range(start, len(text) - len(lines) + 1) if lines else ():
        if list(text[row : row + len(lines)]) == list(lines):
            return row + len(lines), (row, row + len(lines))
    return start, None


def verdict(halves: Sequence[Half], rows: tuple[int, int] | None, known: Container[tuple[str, int]] = ()) -> str:
    """carried, adopted, proposal or person: the worst of the halves in some rows of ours; of all without rows, if there are none.

    A proposal is what can be agreed to: a whole text, or leaving ours out with structure as its evidence. Of what
    is undecided similar code is shown, and a person has to write it.
    """
    inside = list(_inside(halves, rows))
    if not inside and rows is not None:  # every line of it is the base's: the halves that touch it
        inside = list(_inside(halves, (rows[0] - 1, rows[1] + 1)))
    states = {
        ("proposal" if (half.path, half.unit) in known else "person") if not half.settled
        else CARRIED if half.evidence.startswith(_SAME) else half.state
        for half in inside
        if half.state != LOOK
    }  # fmt: skip
    if not states or states - {CARRIED, ADOPTED, "proposal"}:
        return "person"
    if "proposal" in states:
        return "proposal"
    return "adopted" if ADOPTED in states else "carried"


def _inside(halves: Sequence[Half], rows: tuple[int, int] | None) -> Iterator[Half]:
    """The halves in some rows of ours; without rows, all that only take something out."""
    for half in halves:
        if half.state == COMMENT:
            continue
        if rows is None:
            if half.rows[0] == half.rows[1]:
                yield half
        elif half.rows[0] <= rows[1] and rows[0] <= half.rows[1] and _real(half, rows):
            yield half


def _real(half: Half, rows: tuple[int, int]) -> bool:
    """Whether a half has a line in some rows, or is a removal that stands between them."""
    return (
        half.rows[0] < rows[1] and rows[0] < half.rows[1]
        if half.rows[0] < half.rows[1]
        else rows[0] < half.rows[0] < rows[1]
    )


def conflicts(repository: Repository, ours: str, onto: str) -> dict[str, list[list[str]]]:
    """Git's conflicted hunks of Python files: the lines of our side of each."""
    done = subprocess.run(
        ["git", "merge-tree", "--write-tree", "-z", "--name-only", ours, onto],
        cwd=repository.path,
        capture_output=True,
        check=False,
    )
    fields = done.stdout.decode("utf-8", "replace").split("\0")
    found: dict[str, list[list[str]]] = {}
    for path in dict.fromkeys(fields[1 : fields.index("", 1)]):
        if path.endswith(".py"):
            text = subprocess.run(
                ["git", "show", f"{fields[0]}:{path}"], cwd=repository.path, capture_output=True, check=False
            ).stdout
            if hunks := list(our_sides(text.decode("utf-8", "replace").splitlines())):
                found[path] = hunks
    return found


def our_sides(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines between `<<<<<<<` and `=======` of every conflict."""
    side: list[str] | None = None
    for line in lines:
        if line.startswith("<<<<<<< "):
            side = []
        elif line.startswith("=======") and side is not None:
            yield side
            side = None
        elif side is not None:
            side.append(line)


def compare(row: Row, carrier: Carrier, owner: GitTree) -> None:
    """Whether the owner's tree has the lines of what is carried, in the same file."""
    states = carrier.fork.after(carrier.last)
    back = {new: old for old, new in carrier.renames.items()}
    for half in carrier.after(carrier.last).halves:
        state = states.get(back.get(half.path, half.path))
        if (
            half.state != CARRIED
            or half.rows[0] == half.rows[1]
            or state is None
            or not half.path.endswith(".py")
            or half.path not in owner
        ):
            continue
        lines = [line.strip() for line in state.data.decode("utf-8", "replace").splitlines()[slice(*half.rows)]]
        wanted = Counter(line for line in lines if line and not line.startswith("#"))
        have = Counter(line.strip() for line in owner.read(half.path).decode("utf-8", "replace").splitlines())
        if wanted - have:
            row.owner.append(f"{half.path}:{half.rows[0] + 1} {half.host}: {next(iter(wanted - have))[:80]}")
        else:
            row.with_owner += 1


if __name__ == "__main__":
    raise SystemExit(main())
