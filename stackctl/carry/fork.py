"""A fork as its series makes it: the base release, and the patches on it one after the other, strictly.

Git itself applies them, in a scratch repository that borrows the objects of the real one: what comes out
is what `git am` makes, byte for byte, and nothing is written where the user works.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stackctl.carry.series import diff_start, diffs_of
from stackctl.model.errors import StackctlError
from stackctl.trees.git import FileEntry, Repository


@dataclass(frozen=True)
class Layer:
    """One patch to put on: who it belongs to, its bytes, how many folders to strip, what to leave out of it."""

    number: int
    name: str
    data: bytes
    strip: int = 1
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """One file of the fork: its Git mode and its bytes."""

    mode: str
    data: bytes


@dataclass
class Fork:
    """Every file that the series changes, after each of its patches. `failed` says why a patch does not apply."""

    repository: Repository
    base: str
    changes: dict[int, dict[str, State | None]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    missing: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def after(self, number: int) -> dict[str, State | None]:
        """The files that differ from the base after the entry `number` (None: removed), in path order."""
        files: dict[str, State | None] = {}
        for key, changes in self.changes.items():
            if key <= number:
                files |= changes
        return dict(sorted(files.items()))


def build_fork(repository: Repository, base: str, layers: Sequence[Layer]) -> Fork:
    """Put the layers on `base` in order. A layer that does not apply strictly is left out and named."""
    tree = repository.resolve(base, "tree")
    fork = Fork(repository, base)
    with tempfile.TemporaryDirectory(prefix="stackctl-fork-", ignore_cleanup_errors=True) as folder:
        scratch = borrowing(repository, Path(folder))
        scratch.run("read-tree", tree)
        known = set(scratch.files(tree))
        for layer in layers:
            fork.missing[layer.number] = outside = _outside(layer, known)
            try:
                _put_on(scratch, layer)
            except StackctlError as error:
                fork.failed[layer.number] = _reason(error, outside)
                continue
            new = scratch.text("write-tree")
            fork.changes[layer.number] = _changes(scratch, tree, new)
            known = (known | {p for p, s in fork.changes[layer.number].items() if s}) - {
                p for p, s in fork.changes[layer.number].items() if s is None
            }
            tree = new
    return fork


def borrowing(repository: Repository, folder: Path) -> Repository:
    """A repository of no objects of its own that reads another's."""
    Repository.create(folder)
    alternates = folder / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_bytes(os.fsencode(repository.git_dir.absolute() / "objects") + b"\n")
    return Repository(folder)


def _outside(layer: Layer, known: set[str]) -> tuple[str, ...]:
    """The files that a patch edits and that are not there: of a part of upstream that the base does not have."""
    if layer.strip != 1:
        return ()
    made = {new for old, new in diffs_of(layer.data) if not old}
    edited = {old for old, _ in diffs_of(layer.data) if old}
    return tuple(
        sorted(path for path in edited if path not in known and path not in made and path not in layer.leave_out)
    )


def _put_on(scratch: Repository, layer: Layer) -> None:
    if diff_start(layer.data) == len(layer.data):  # a record of which a carry left nothing
        return
    excluded = [f"--exclude={_literal(path)}" for path in layer.leave_out]
    scratch.run("apply", "--cached", "--whitespace=nowarn", f"-p{layer.strip}", *excluded, "-", stdin=layer.data)


def _literal(path: str) -> str:
    """A path as a pattern that matches nothing else."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in path)


def _reason(error: StackctlError, outside: Sequence[str]) -> str:
    if outside:
        return f"it edits {', '.join(outside[:3])}, which the base has not"
    return f"it does not apply strictly: {error.message.removeprefix('git apply failed: ').removeprefix('error: ')}"


def _changes(scratch: Repository, old: str, new: str) -> dict[str, State | None]:
    output = scratch.run("diff-tree", "-r", "-z", "--no-renames", old, new)
    fields, changes = output.split(b"\0"), {}
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, _ = head.decode().split()
        entry = FileEntry(mode, blob)
        changes[os.fsdecode(name)] = None if entry.mode == "000000" else State(entry.mode, scratch.blob(entry.blob))
    return changes
