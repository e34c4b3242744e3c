"""The entries follow what was edited on a branch that `apply` wrote: their records are made anew from its commits.

A record holds what the branch adds to its upstream commit. What an entry has now and the branch does not, or what
stands below the stack's own commits, would leave the record in silence: it is named, and needs a word.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.version import InvalidVersion, Version

from stackctl.carry.accepting import carriers
from stackctl.carry.carrying import Carrier, series_entries, series_plant
from stackctl.carry.fork import Layer, borrowing, build_fork
from stackctl.carry.merge3 import ADOPTED, COMMENT
from stackctl.carry.records import diff_between
from stackctl.carry.series import diff_start, diffs_of, toml_value
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Stack
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.replacing import Held, rewrite
from stackctl.trees.tree import GitTree

Lines = Counter[tuple[str, str]]  # (path, line)

_ENTRY = re.compile(r"^Stack-Entry: (\d+)$", re.MULTILINE)
_TAG = re.compile(r"tag: v(\d[^,\s]*)")
_BLOCK = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_SHOWN = 12


@dataclass(frozen=True)
class _Commit:
    """A commit of a branch's first-parent line: the entry that its trailer names, 0 for none."""

    id: str
    parents: tuple[str, ...]
    owner: int
    released: bool


@dataclass(frozen=True)
class _Line:
    """A branch since its upstream commit: its commits, oldest first, each with the entry that it is recorded for."""

    repository: Repository
    base: str
    released: bool
    commits: tuple[tuple[_Commit, int], ...]

    @cached_property
    def layers(self) -> list[Layer]:
        """The commits' differences in the order of the entries."""
        ordered = sorted(self.commits, key=lambda pair: pair[1])
        return [
            Layer(index, f"{owner} ({commit.id[:12]})", diff_between(self.repository, commit.parents[0], commit.id))
            for index, (commit, owner) in enumerate(ordered, 1)
        ]

    @property
    def owners(self) -> list[int]:
        """The entry of each layer."""
        return sorted(owner for _, owner in self.commits)


def refresh(stack: Stack, repository: Repository, branch: str, number: int, *, forget: bool = False) -> list[str]:
    """Record a series anew from a branch that `apply` wrote: each entry's commits become its patch, on the branch's base.

    Commits without a `Stack-Entry` trailer are edits of entry `number`. Returns the names of the entries whose record
    changed. Raises StackctlError if an edit does not apply where its entry stands, or, without `forget`, if the
    entries have halves now that the branch's commits do not have; it names them.
    """
    line = _line(repository, branch, number)
    entries = _entries(stack, line, number)
    if stack.entry(number) not in entries or number not in line.owners:
        raise StackctlError(
            f"branch {branch} has no commit of entry {number}, or it is not of a series", str(repository.path)
        )
    fork = build_fork(repository, line.base, line.layers)
    if fork.failed:
        names = ", ".join(f"{line.layers[index - 1].name}: {reason}" for index, reason in fork.failed.items())
        raise StackctlError(f"an edit does not apply where its entry stands: {names}", branch)
    diffs = _diffs(repository, line, [entry.number for entry in entries])
    if not forget and (lost := list(_lost(stack, repository, branch, line, diffs))):
        _refuse(branch, lost)
    files: dict[str, Held | bytes | None] = {}
    changed = []
    for entry in entries:
        made = _record(stack, repository, entry, line.base, diffs[entry.number])
        files |= made
        changed += [entry.name] if made else []
    rewrite(stack.root, files)
    return changed


def _refuse(branch: str, lost: Sequence[str]) -> None:
    more = f"\n  and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    said = "\n".join(f"  {each}" for each in lost[:_SHOWN])
    raise StackctlError(
        f"{len(lost)} halves that the entries have now would no longer be on record; nothing was recorded\n{said}{more}",
        branch, "bring them to the branch first (stackctl apply, replant), or say --forget to record without them",
    )  # fmt: skip


# The branch.


def _line(repository: Repository, branch: str, number: int) -> _Line:
    """The commits of a branch down to the one that it stands on, which is that below the oldest of ours.

    Whether that is upstream's, no name says: a fork's plain commits may stand below ours. `_lost` looks what is in it.
    """
    found: list[_Commit] = []
    for commit in _walk(repository, branch):
        found.append(commit)
        if commit.released and not commit.owner:
            break
    base = None
    while found and not found[-1].owner:
        base = found.pop()
    if base is None or not found:
        raise StackctlError(f"branch {branch} has no commit of entry {number}, or it is not of a series", str(repository.path))
    _refuse_foreign(repository, branch, found)
    pairs = tuple((commit, commit.owner or number) for commit in reversed(found))
    return _Line(repository, base.id, base.released, pairs)


def _walk(repository: Repository, branch: str) -> Iterator[_Commit]:
    """A branch's first-parent line, newest first."""
    form = "--format=%H%x00%P%x00%D%x00%B%x01"
    said = repository.text("log", "--first-parent", "--decorate=short", form, branch, "--")
    for record in said.split("\x01"):
        fields = record.strip("\n").split("\0")
        if len(fields) == 4:
            owner = _ENTRY.search(fields[3])
            yield _Commit(fields[0], tuple(fields[1].split()), int(owner[1]) if owner else 0, _is_release(fields[2]))


def _is_release(decoration: str) -> bool:
    """Whether a commit has a tag of upstream's; a fork's own has a local part, or is no version."""
    for name in _TAG.findall(decoration):
        with contextlib.suppress(InvalidVersion):
            if Version(name).local is None:
                return True
    return False


def _refuse_foreign(repository: Repository, branch: str, commits: Sequence[_Commit]) -> None:
    """Refuse a merge of another release: what it brought is nobody's edit."""
    for commit in commits:
        for parent in commit.parents[1:]:
            tags = repository.text("tag", "--list", "v[0-9]*", "--merged", parent, "--no-merged", commit.parents[0]).split()
            if tags:
                raise StackctlError(
                    f"{commit.id[:12]} merges upstream's {tags[-1]}: what it brought is no edit of an entry", branch,
                    f"carry the entries there instead: stackctl apply --onto {tags[-1]}",
                )  # fmt: skip


def _entries(stack: Stack, line: _Line, number: int) -> list[Entry]:
    """The entries to record: those with commits, and the others of the series that N is of, which stand on one base."""
    entry = stack.entry(number)
    plant = series_plant(entry) if entry else None
    series = series_entries(stack, plant.options["base"]) if plant else []
    return [e for e in stack.entries if series_plant(e) and (e in series or e.number in line.owners)]


def _diffs(repository: Repository, line: _Line, numbers: Sequence[int]) -> dict[int, bytes]:
    """What each entry comes to on the branch's base, after those before it."""
    with tempfile.TemporaryDirectory(prefix="stackctl-refresh-", ignore_cleanup_errors=True) as folder:
        scratch = borrowing(repository, Path(folder))
        tree = repository.resolve(line.base, "tree")
        scratch.run("read-tree", tree)
        found = {}
        for number in sorted({*numbers, *line.owners}):
            for layer, owner in zip(line.layers, line.owners, strict=True):
                if owner == number and diff_start(layer.data) < len(layer.data):
                    scratch.run("apply", "--cached", "--whitespace=nowarn", "-", stdin=layer.data)
            new = scratch.text("write-tree")
            found[number] = diff_between(scratch, tree, new)
            tree = new
    return found


# What would be lost.


def _lost(
    stack: Stack, repository: Repository, branch: str, line: _Line, diffs: Mapping[int, bytes]
) -> Iterator[str]:
    """The halves of the entries that a record of the branch would not have, each with the reason.

    What the entry's own commit on the branch has, and a later edit took out, was taken out by a person.
    """
    tip = GitTree(repository, branch)
    for carrier in carriers(stack, repository, line.base):
        release = release_of(carrier.theirs)
        view = View(tip, stack, release, View(carrier.theirs, stack, release))
        for entry in carrier.entries:
            if entry.number in diffs and entry.number in carrier.fork.changes:
                yield from _waiting(carrier, entry, view, line)
                yield from _missing(carrier, entry, line, diffs[entry.number])


def _waiting(carrier: Carrier, entry: Entry, view: View, line: _Line) -> Iterator[str]:
    for half in carrier.halves(entry.number):
        half = carrier.by_hand(entry.number, half, view)
        where = f"{entry.number}: {half.path}{f' {half.host}' if half.host else ''}: {half.text[:60]}"
        if not half.settled and half.state != COMMENT:
            yield f"{where}: it waits for a person, and the branch does not have it"
        elif half.state == ADOPTED and not line.released:
            yield f"{where}: it stands below the stack's commits, at {line.base[:12]}, which is no release of upstream's"


def _missing(carrier: Carrier, entry: Entry, line: _Line, diff: bytes) -> Iterator[str]:
    """Lines that the carry makes of an entry, and that neither its record would have nor its own commit had."""
    had = _added(diff)
    for (commit, owner), layer in zip(sorted(line.commits, key=lambda pair: pair[1]), line.layers, strict=True):
        had += _added(layer.data) if commit.owner == owner == entry.number else Counter()
    now, was = carrier.after(entry.number), carrier.after(carrier.before(entry.number))
    wanted: Lines = Counter()
    for path in carrier.changed(entry.number):
        after, before = (each.files.get(path, carrier.stock(path)) for each in (now, was))
        lines = [Counter(each.data.splitlines()) if each else Counter() for each in (after, before)]
        wanted += Counter({(path, text.decode("utf-8", "replace").strip()): n for text, n in (lines[0] - lines[1]).items()})
    for path, text in wanted - had:
        if text:
            yield f"{entry.number}: {path}: {text[:60]}: it is in none of the entry's commits on the branch"


def _added(diff: bytes) -> Lines:
    """The lines that a patch adds, each with its path."""
    found: Lines = Counter()
    for block in _BLOCK.split(diff):
        for _, path in diffs_of(block):
            lines = block.split(b"\n@@ ", 1)[-1].split(b"\n")[1:]
            found.update((path, text[1:].decode("utf-8", "replace").strip()) for text in lines if text.startswith(b"+"))
    return found


# The record.


def _record(stack: Stack, repository: Repository, entry: Entry, base: str, data: bytes) -> dict[str, bytes]:
    """One entry's patch and manifest on the branch's base; nothing if they are so already."""
    plant = series_plant(entry)
    assert plant is not None
    patch, manifest = f"patches/{plant.options['patch']}", f"entries/{entry.folder.name}/entry.toml"
    old = (stack.root / patch).read_bytes()
    start = diff_start(old)
    name = next(iter(sorted(repository.text("tag", "--points-at", base).split())), base)
    if old[start:] == data and plant.options["base"] == name:
        return {}
    text = (stack.root / manifest).read_bytes().decode()
    text = re.sub(r"^base\s*=[^\n]*$", lambda _: f"base = {toml_value(name)}", text, flags=re.MULTILINE)
    text = re.sub(r"^(leave_out|strip)\s*=[^\n]*\n", "", text, flags=re.MULTILINE)
    return {patch: old[:start] + data, manifest: text.encode()}
