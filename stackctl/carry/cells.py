"""Carry a stack onto many upstream commits: a matrix of entries by commits, one result a cell, resumable.

A column is one carry, in memory: nothing of the repository is written. Columns are spread over processes here,
or over a Ray cluster. What comes back is kept cell by cell, under everything it was made from, so that a run
that was stopped goes on where it was. A worker that dies is no loss: its column is carried again.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Stack, digest
from stackctl.trees.cache import cache_folder, code_stamp, replace_text
from stackctl.trees.git import Repository

_ATTEMPTS = 3
Done = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """What becomes of one entry on one upstream commit: its verdict, its halves by verdict, the units that wait."""

    entry: int
    onto: str
    verdict: str
    halves: dict[str, int] = field(default_factory=dict)
    units: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Task:
    """One column, as a worker on another machine can take it up: paths, and the commit by its id."""

    stack: str
    repository: str
    onto: str
    commit: str
    release: str | None = None


def carry_column(task: Task) -> list[Cell]:
    """Carry the whole stack onto one commit, in memory. What cannot be carried at all says why in every cell."""
    from stackctl.plants.stacks import open_stack

    stack, repository = open_stack(Path(task.stack)), Repository(Path(task.repository))
    try:
        return _column(stack, repository, task)
    except StackctlError as error:
        return [Cell(entry.number, task.onto, "not-judged", why=error.message) for entry in stack.entries]


def _column(stack: Stack, repository: Repository, task: Task) -> list[Cell]:
    from stackctl.carry.aftermath import waiting
    from stackctl.carry.apply import apply
    from stackctl.census.verify import report

    branch = f"stackctl-matrix-{task.commit}"  # a dry run makes none: it is only a name
    run = apply(stack, repository, task.commit, branch=branch, release=task.release, dry_run=True)
    units: dict[int, list[int]] = {}
    for asked in waiting(stack, repository, task.commit, run):
        for number in asked.entries:
            units.setdefault(number, []).append(asked.unit)
    said = report("apply", stack, [(outcome.entry, outcome.judged) for outcome in run.outcomes], {})
    counts: dict[str, dict[str, int]] = {}
    for row in said.ledger:
        mine = counts.setdefault(row.entry, {})
        mine[str(row.verdict)] = mine.get(str(row.verdict), 0) + 1
    return [
        Cell(int(row.number), task.onto, str(row.verdict), counts.get(row.number, {}), tuple(units.get(int(row.number), ())))
        for row in said.entries
    ]


class Cells:
    """The cells of one stack, kept in a folder: one file each, under what it was made from."""

    def __init__(self, stack: Stack, repository: Repository, folder: Path | None = None) -> None:
        self._entries = [entry.number for entry in stack.entries]
        self._folder = folder or cache_folder() / "matrix"
        self._made_from = [str(repository.path), code_stamp(), _stamp(), [entry.digest for entry in stack.entries]]

    def column(self, task: Task) -> list[Cell] | None:
        """Every cell of a column; None if one is not there."""
        found = []
        for number in self._entries:
            try:
                row = json.loads(self._path(task, number).read_bytes())
                found.append(Cell(**{**row, "units": tuple(row["units"]), "onto": task.onto}))
            except (OSError, ValueError, TypeError, KeyError):
                return None
        return found

    def keep(self, task: Task, cells: Sequence[Cell]) -> None:
        """Write each cell. What cannot be written is carried again next time."""
        with contextlib.suppress(OSError):
            for cell in cells:
                path = self._path(task, cell.entry)
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_text(path, json.dumps(asdict(cell)))

    def _path(self, task: Task, number: int) -> Path:
        return self._folder / digest([*self._made_from, task.commit, task.release]) / f"{number}.json"


def _stamp() -> list[list[object]]:
    """Changes with the code that carries."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def tasks_of(stack: Stack, repository: Repository, onto: Sequence[str], release: str | None = None) -> list[Task]:
    """A task for each upstream commit named. Raises StackctlError for one that is not there."""
    repo = str(repository.path.resolve())
    return [Task(str(stack.root.resolve()), repo, name, repository.resolve(name), release) for name in onto]


def fill(
    tasks: Sequence[Task], cells: Cells, *, jobs: int = 1, ray: str | None = None, done: Done = lambda onto: None
) -> dict[str, list[Cell]]:
    """The columns by the commit's name, those kept from before not carried again."""
    columns = {task.onto: found for task in tasks if (found := cells.column(task)) is not None}
    rest = [task for task in tasks if task.onto not in columns]
    spread = _over_ray(rest, ray) if ray and rest else _here(rest, jobs)
    for task in [task for task in tasks if task.onto in columns]:
        done(task.onto)
    for task, made in spread:
        cells.keep(task, made)
        columns[task.onto] = made
        done(task.onto)
    return {task.onto: columns[task.onto] for task in tasks}


def _here(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Cell]]]:
    """Columns as they are done, in this process or in several; one whose process dies is given to another."""
    if jobs < 2 or len(tasks) < 2:
        yield from ((task, carry_column(task)) for task in tasks)
        return
    left = list(tasks)
    for _ in range(_ATTEMPTS):
        with ProcessPoolExecutor(min(jobs, len(left)), mp_context=multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(carry_column, task): task for task in left}
            for future in as_completed(futures):
                with contextlib.suppress(BrokenProcessPool):
                    made = future.result()
                    left.remove(futures[future])
                    yield futures[future], made
        if not left:
            return
    raise StackctlError(
        f"the process that carries onto {left[0].onto} died {_ATTEMPTS} times", left[0].repository, "carry onto it alone to see why"
    )


def _over_ray(tasks: Sequence[Task], address: str) -> Iterator[tuple[Task, list[Cell]]]:
    """Columns as a Ray cluster is done with them; Ray gives a dead worker's column to another one."""
    try:
        import ray
    except ImportError:
        raise StackctlError("Ray is not installed", hint="pip install 'stackctl[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    try:
        carry = ray.remote(max_retries=_ATTEMPTS)(carry_column)
        left = {carry.remote(task): task for task in tasks}
        while left:
            ready, _ = ray.wait(list(left))
            for each in ready:
                task = left.pop(each)
                try:
                    yield task, ray.get(each)
                except ray.exceptions.RayError as error:
                    raise StackctlError(f"Ray could not carry onto {task.onto}: {error}", address) from None
    finally:
        if mine:
            ray.shutdown()


_MARKS = {"not-due": "-", "not-judged": "?"}


def render_cells(stack: Stack, columns: dict[str, list[Cell]], form: str) -> str:
    """The matrix as a table for people: "text", or "md"."""
    names = list(columns)
    by_entry = {onto: {cell.entry: cell for cell in column} for onto, column in columns.items()}
    rows = [["entry", *names]]
    for entry in stack.entries:
        found = [by_entry[onto].get(entry.number) for onto in names]
        rows.append([f"{entry.number} {entry.slug}"[:48], *map(_word, found)])
    counts = [sum(bool(cell.units) for cell in columns[onto]) for onto in names]
    rows.append(["entries that wait for a person", *map(str, counts)])
    if form == "md":
        cut = [["---"] * len(rows[0])]
        return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], *cut, *rows[1:]])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _word(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    word = _MARKS.get(cell.verdict, cell.verdict)
    return f"{word} ({len(cell.units)} to decide)" if cell.units else word
