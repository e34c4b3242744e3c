"""Commits and refs, all or nothing: one run at a time, a kill at any moment loses nothing.

Objects are written first and one `git update-ref` moves the branch last, so a killed run leaves every
ref as it was. A journal says which ref is about to move: the next run takes away the locks that a killed
Git left on it, and brings the files of a branch that is checked out, written after the ref moved, to its tip.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stackctl.carry import worktree
from stackctl.carry.planting import Outcome
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Stack
from stackctl.trees.git import FileEntry, Repository
from stackctl.trees.replacing import replace_file
from stackctl.trees.tree import Tree

_SCRATCH = "scratch-"
_KILLED_WITHIN = 5.0  # seconds from writing the journal to the end of the `git update-ref` that it announces


@dataclass(frozen=True)
class Step:
    """One commit to make: its message and the files it changes."""

    message: str
    changes: Mapping[str, bytes | None]
    modes: Mapping[str, str] = field(default_factory=dict)


def state_folder(repository: Repository) -> Path:
    """Where stackctl keeps what is pending in a repository."""
    return repository.git_dir / "stackctl"


@contextlib.contextmanager
def locked(repository: Repository) -> Iterator[None]:
    """Hold the repository's lock. A second run is told and stops; the lock of a killed one is gone with it."""
    folder = state_folder(repository)
    try:
        folder.mkdir(exist_ok=True)
        handle = open(folder / "lock", "a")  # noqa: SIM115 - held below
    except OSError as error:
        raise StackctlError(f"cannot write here: {error.strerror}", str(folder), "the repository must be writable") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackctlError(
                "another stackctl is at work in this repository", str(repository.path), "wait until it has ended"
            ) from None
        for scratch in folder.glob(f"{_SCRATCH}*"):  # of a run that was killed
            shutil.rmtree(scratch, ignore_errors=True)
        finish_move(repository)
        yield


def steps_of(outcomes: Sequence[Outcome], stack: Stack, verb: str, release: str) -> list[Step]:
    """One commit for each entry that changed something."""
    return [Step(_message(outcome, stack, verb, release), outcome.changes, outcome.modes) for outcome in outcomes if outcome.changes]


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
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=state_folder(repository)) as scratch:
        for step in steps:
            entries = {path: _entry(repository, tree, path, data, step.modes.get(path)) for path, data in step.changes.items()}
            written = repository.write_tree(tip, entries, Path(scratch) / "index")
            tip = repository.commit(written, [tip], step.message)
    return tip


def _entry(repository: Repository, tree: Tree, path: str, data: bytes | None, mode: str | None) -> FileEntry | None:
    if data is None:
        return None
    return FileEntry(mode or (tree.mode(path) if path in tree else "100644"), repository.write_blob(data))


def move_branch(repository: Repository, branch: str, new: str, old: str | None, *, checkout: bool) -> None:
    """Move a branch from `old` (None: make it) to `new`; refuse one that is checked out unless asked."""
    ref, old = f"refs/heads/{branch}", old or repository.nothing
    plan = {"ref": ref, "old": old, "new": new, "folder": ""}
    if folder := repository.branch_checkouts().get(ref):
        worktree.refuse_changes(folder, branch, checkout=checkout)
        worktree.refuse_untracked(folder, branch, old, new)
        plan["folder"] = str(folder)
    replace_file(_journal(repository), json.dumps(plan).encode())
    repository.update_ref(ref, new, old)
    if folder:
        worktree.write_files(Repository(folder), old, new, sure=True)
    _journal(repository).unlink()


def check_branch(repository: Repository, branch: str, *, checkout: bool) -> None:
    """Refuse a branch name or a checked-out branch before any work is done."""
    try:
        repository.run("check-ref-format", f"refs/heads/{branch}")
    except StackctlError:
        named = False
    else:
        named = not branch.startswith("-") and branch != "HEAD"
    if not named:
        raise StackctlError(f"{branch!r} is not a branch name", hint="name one with --branch")
    folder = repository.branch_checkouts().get(f"refs/heads/{branch}")
    if folder is not None:
        worktree.refuse_changes(folder, branch, checkout=checkout)


def _journal(repository: Repository) -> Path:
    return state_folder(repository) / "move.json"


def finish_move(repository: Repository) -> None:
    """Finish what a killed run left: Git's locks on the branch, and the files of a branch that had moved."""
    path = _journal(repository)
    if not path.is_file():
        return
    plan = json.loads(path.read_text())
    _unlock(repository, plan)
    if plan["folder"] and repository.branch_checkouts().get(plan["ref"]) == Path(plan["folder"]):
        tip = repository.resolve(plan["ref"]) if repository.exists(plan["ref"]) else None
        if tip == plan["new"]:
            worktree.write_files(Repository(Path(plan["folder"])), plan["old"], plan["new"], sure=False)
    path.unlink()


def _unlock(repository: Repository, plan: Mapping[str, str]) -> None:
    """Remove the lock files of a `git update-ref` that was killed with its run.

    They are its own if they hold what it writes (nothing, or the new id) and are of the journal's time.
    """
    written = _journal(repository).stat().st_mtime
    folder = Path(Repository(Path(plan["folder"])).text("rev-parse", "--absolute-git-dir")) if plan["folder"] else repository.git_dir
    for lock in (repository.git_dir / f"{plan['ref']}.lock", folder / "HEAD.lock", repository.git_dir / "HEAD.lock"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            ours = f"{plan['new']}\n".encode().startswith(lock.read_bytes())
            if ours and -1 < lock.stat().st_mtime - written < _KILLED_WITHIN:
                lock.unlink()


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
    except (FileNotFoundError, ValueError):
        return None


def _pending(repository: Repository, branch: str) -> Path:
    return state_folder(repository) / "pending" / f"{branch.replace('%', '%25').replace('/', '%2F')}.json"
