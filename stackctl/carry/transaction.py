"""Commits and refs, all or nothing: one run at a time, a kill at any moment loses nothing.

Objects are written first and one `git update-ref` moves the branch last, so a killed run leaves every
ref as it was. Only a branch that is checked out needs more: its files are written after the ref moved,
from a journal that the next run finishes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackctl.carry.planting import Outcome
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Stack
from stackctl.trees.git import FileEntry, Repository
from stackctl.trees.tree import Tree

NOTHING = "0" * 40


@dataclass(frozen=True)
class Step:
    """One commit to make: its message and the files it changes."""

    message: str
    changes: Mapping[str, bytes | None]


def state_folder(repository: Repository) -> Path:
    """Where stackctl keeps what is pending in a repository."""
    return repository.git_dir / "stackctl"


@contextlib.contextmanager
def locked(repository: Repository) -> Iterator[None]:
    """Hold the repository's lock. A second run is told and stops; the lock of a killed one is gone with it."""
    folder = state_folder(repository)
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackctlError(
                "another stackctl is at work in this repository", str(repository.path), "wait until it has ended"
            ) from None
        finish_checkout(repository)
        yield


def steps_of(outcomes: Sequence[Outcome], stack: Stack, verb: str, release: str) -> list[Step]:
    """One commit for each entry that changed something."""
    return [Step(_message(outcome, stack, verb, release), outcome.changes) for outcome in outcomes if outcome.changes]


def _message(outcome: Outcome, stack: Stack, verb: str, release: str) -> str:
    entry = outcome.entry
    trailers = {
        "Stack": stack.name,
        "Stack-Entry": str(entry.number),
        "Stack-Plants": ", ".join(outcome.planted),
        "Stack-Digest": entry.digest,
        "Stack-Disposition": str(entry.disposition),
    }
    body = "".join(f"{key}: {value}\n" for key, value in trailers.items())
    halves = f"{len(outcome.planted)} {'half' if len(outcome.planted) == 1 else 'halves'}"
    return f"{entry.number}: {entry.title}\n\n{verb} {halves} on SGLang {release}.\n\n{body}"


def write_commits(repository: Repository, start: str, tree: Tree, steps: Sequence[Step]) -> str:
    """Commit the steps on top of `start` (no ref moves) and return the last commit."""
    tip = start
    with tempfile.TemporaryDirectory(prefix="stackctl-", dir=state_folder(repository)) as scratch:
        for step in steps:
            entries = {path: _entry(repository, tree, path, data) for path, data in step.changes.items()}
            written = repository.write_tree(tip, entries, Path(scratch) / "index")
            tip = repository.commit(written, [tip], step.message)
    return tip


def _entry(repository: Repository, tree: Tree, path: str, data: bytes | None) -> FileEntry | None:
    if data is None:
        return None
    return FileEntry(tree.mode(path) if path in tree else "100644", repository.write_blob(data))


def move_branch(repository: Repository, branch: str, new: str, old: str, *, checkout: bool) -> None:
    """Move a branch from `old` (NOTHING: make it) to `new`; refuse one that is checked out unless asked."""
    ref = f"refs/heads/{branch}"
    folder = repository.branch_checkouts().get(ref)
    if folder is None:
        repository.update_ref(ref, new, old)
        return
    _refuse_changes(folder, branch, checkout)
    _journal(repository).write_text(json.dumps({"ref": ref, "old": old, "new": new, "folder": str(folder)}))
    repository.update_ref(ref, new, old)
    finish_checkout(repository)


def check_branch(repository: Repository, branch: str, *, checkout: bool) -> None:
    """Refuse a branch name or a checked-out branch before any work is done."""
    try:
        repository.run("check-ref-format", "--branch", branch)
    except StackctlError:
        raise StackctlError(f"{branch!r} is not a branch name", hint="name one with --branch") from None
    folder = repository.branch_checkouts().get(f"refs/heads/{branch}")
    if folder is not None:
        _refuse_changes(folder, branch, checkout)


def _refuse_changes(folder: Path, branch: str, checkout: bool) -> None:
    if changed := Repository(folder).changed_files():
        names = ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else "")
        raise StackctlError(
            f"branch {branch} is checked out with changes: {names}", str(folder), "commit them, or write to another branch: --branch NAME"
        )
    if not checkout:
        raise StackctlError(
            f"branch {branch} is checked out", str(folder), "say --checkout to change the files there too, or --branch NAME"
        )


def _journal(repository: Repository) -> Path:
    return state_folder(repository) / "checkout.json"


def finish_checkout(repository: Repository) -> None:
    """Bring a checked-out branch's files to its tip, if a run moved the branch and was killed before it did."""
    path = _journal(repository)
    if not path.is_file():
        return
    try:
        plan = json.loads(path.read_text())
    except ValueError:  # killed while the journal was written: the ref had not moved
        path.unlink()
        return
    if repository.resolve(plan["ref"]) == plan["new"]:
        _write_files(Repository(Path(plan["folder"])), plan["old"], plan["new"])
    path.unlink()


def _write_files(worktree: Repository, old: str, new: str) -> None:
    """Write what differs between two commits into a worktree and its index, without any filter."""
    before, after = worktree.files(old), worktree.files(new)
    lines = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        entry = after.get(path)
        target = worktree.path / path
        if entry is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, worktree.blob(entry.blob), 0o755 if entry.mode == "100755" else 0o644)
        mode, blob = (entry.mode, entry.blob) if entry else ("0", NOTHING)
        lines.append(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0")
    if lines:
        worktree.run("update-index", "-z", "--index-info", stdin=b"".join(lines))


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file by renaming a finished one over it: a reader sees the old bytes or the new ones."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save_pending(repository: Repository, branch: str, pending: Mapping[str, object] | None) -> None:
    """Keep what a person must decide on a branch; None forgets it."""
    path = _pending(repository, branch)
    if pending is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(exist_ok=True)
    replace_file(path, json.dumps(pending, indent=2).encode())


def load_pending(repository: Repository, branch: str) -> dict[str, object] | None:
    """What is pending on a branch, None if nothing is."""
    try:
        return json.loads(_pending(repository, branch).read_text())
    except FileNotFoundError:
        return None


def _pending(repository: Repository, branch: str) -> Path:
    return state_folder(repository) / "pending" / f"{branch.replace('%', '%25').replace('/', '%2F')}.json"
