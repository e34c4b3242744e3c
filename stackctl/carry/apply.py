"""Put a stack on an upstream release, or make it whole again on a merged branch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from stackctl.carry import transaction
from stackctl.carry.by_half import carry_entries
from stackctl.carry.planting import Judge, Outcome
from stackctl.carry.transaction import Step
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Stack
from stackctl.model.verdict import Verdict
from stackctl.plants.judging import is_bad, judge_plant
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import NO_RELEASE, Release, release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import GitTree, OverlayTree, Tree


@dataclass(frozen=True)
class Run:
    """What apply or replant did: the outcomes, the branch, its tip before and after."""

    outcomes: tuple[Outcome, ...]
    release: Release
    branch: str
    start: str
    tip: str
    stock: str | None
    mended: tuple[str, ...] = ()

    @property
    def commits(self) -> int:
        """How many commits were made."""
        planted = sum(bool(outcome.changes) for outcome in self.outcomes)
        return planted + bool(self.mended) if self.tip != self.start else 0


@dataclass(frozen=True)
class _Job:
    """What one run is to do: where it starts, the branch it moves (`old`: its tip now, None if it is new).

    `mend` is a commit to make first: halves that no entry declares.
    """

    stack: Stack
    repository: Repository
    start: str
    stock: GitTree | None
    release: Release
    branch: str
    old: str | None
    entries: Sequence[Entry]
    verb: str
    mend: Step | None = None


def default_branch(stack: Stack, release: Release) -> str:
    """The branch that `apply` writes when none is named."""
    return f"{stack.name}-{release.version}"


def apply(
    stack: Stack, repository: Repository, onto: str, *, branch: str | None = None, entries: Sequence[Entry] | None = None,
    release: str | None = None, dry_run: bool = False, checkout: bool = False, judge: Judge = judge_plant,
) -> Run:  # fmt: skip
    """Plant `entries` (default: all) on `onto`, on a branch of its own; one that is there is carried on with."""
    base = repository.resolve(onto)
    stock = GitTree(repository, base)
    found = release_of(stock, release)
    name = branch or default_branch(stack, found)
    with _lock(repository, dry_run):
        transaction.check_branch(repository, name, checkout=checkout or dry_run)
        old = repository.resolve(f"refs/heads/{name}") if repository.exists(f"refs/heads/{name}") else None
        if old and base not in repository.merge_bases(old, base):
            raise StackctlError(
                f"branch {name} is there and does not stand on {onto}", str(repository.path), "name another: --branch NAME"
            )
        chosen = stack.entries if entries is None else entries
        job = _Job(stack, repository, old or base, stock, found, name, old, chosen, "Plants")
        return _run(job, dry_run=dry_run, checkout=checkout, judge=judge)


def replant(
    stack: Stack, repository: Repository, at: str, *, branch: str | None = None, entries: Sequence[Entry] | None = None,
    release: str | None = None, upstream: str | None = None, dry_run: bool = False, checkout: bool = False, judge: Judge = judge_plant,
    mend: Step | None = None,
) -> Run:  # fmt: skip
    """Make the stack whole at `at`, in commits on that branch, or on `branch` made from it; `mend` comes first."""
    start = repository.resolve(at)
    is_branch = repository.exists(f"refs/heads/{at}")
    if branch is None and not is_branch:
        raise StackctlError(f"{at} is not a branch", str(repository.path), "name one to write: --branch NAME")
    name = branch or at
    tree = GitTree(repository, start)
    chosen = stack.entries if entries is None else entries
    found = release_of(tree, release) if chosen else NO_RELEASE
    with _lock(repository, dry_run):
        transaction.check_branch(repository, name, checkout=checkout or dry_run)
        old = repository.resolve(f"refs/heads/{name}") if repository.exists(f"refs/heads/{name}") else None
        if old and old != start:
            raise StackctlError(f"branch {name} is there already", str(repository.path), "name another: --branch NAME")
        stock = stock_tree(repository, found, upstream)
        job = _Job(stack, repository, start, stock, found, name, old, chosen, "Replants", mend)
        return _run(job, dry_run=dry_run, checkout=checkout, judge=judge)


def _lock(repository: Repository, dry_run: bool) -> contextlib.AbstractContextManager[None]:
    """The repository's lock. A dry run takes none: it leaves not even a lock file."""
    return contextlib.nullcontext() if dry_run else transaction.locked(repository)


def _run(job: _Job, *, dry_run: bool, checkout: bool, judge: Judge) -> Run:
    tree: Tree = GitTree(job.repository, job.start)
    if job.mend:
        tree = OverlayTree(tree, job.mend.changes)
    stack = replace(job.stack, entries=tuple(job.entries))  # a patch is laid on those before it that are planted, no others
    stock = View(job.stock, stack, job.release) if job.stock else None
    outcomes = carry_entries(job.entries, View(tree, stack, job.release, stock), judge)
    mended = tuple(sorted(job.mend.changes)) if job.mend else ()
    tip = job.start if dry_run else _write(job, tree, outcomes, checkout)
    return Run(tuple(outcomes), job.release, job.branch, job.start, tip, job.stock.label if job.stock else None, mended)


def _write(job: _Job, tree: Tree, outcomes: Sequence[Outcome], checkout: bool) -> str:
    """Commit what was planted, move the branch, keep what is pending; return the new tip."""
    repository, branch, old = job.repository, job.branch, job.old
    steps = [*filter(None, [job.mend]), *transaction.steps_of(outcomes, job.stack, job.verb, str(job.release))]
    tip = transaction.write_commits(repository, job.start, tree, steps)
    pending = _pending(outcomes, transaction.load_pending(repository, branch), old, tip)
    if pending:  # first, so that a branch that has moved can be taken back
        transaction.save_pending(repository, branch, pending)
    if tip != old:
        transaction.move_branch(repository, branch, tip, old, checkout=checkout)
    if not pending:
        transaction.save_pending(repository, branch, None)
    return tip


def _pending(
    outcomes: Sequence[Outcome], known: Mapping[str, object] | None, old: str | None, tip: str
) -> dict[str, object] | None:
    """What a person must decide, and where the branch was before, for --continue and --abort; None if there is nothing."""
    left = {
        str(outcome.entry.number): {plant.id: found.message for plant, found in outcome.judged if is_bad(found)}
        for outcome in outcomes
        if any(is_bad(found) and found.verdict is not Verdict.RESURRECTED for _, found in outcome.judged)
    }
    before = known["before"] if known and known["tip"] == old else old
    return {"before": before, "tip": tip, "entries": left} if left else None


def require_pending(repository: Repository, branch: str) -> None:
    """Refuse --continue where nothing is pending and no killed run left anything to finish."""
    with transaction.locked(repository):  # taking the lock finishes what a killed run left
        if transaction.load_pending(repository, branch) is None and not repository.exists(f"refs/heads/{branch}"):
            raise StackctlError(f"nothing is pending on branch {branch}", str(repository.path), "start with apply, without --continue")


def abort(repository: Repository, branch: str, say: Callable[[str], None]) -> int:
    """Take a branch with something pending back to where it was before, or delete it if a run of ours made it.

    Refuses one that has moved since, and one that is checked out: nothing of anybody else's is lost.
    """
    ref = f"refs/heads/{branch}"
    with transaction.locked(repository):
        pending = transaction.load_pending(repository, branch)
        if pending is None:
            raise StackctlError(f"nothing is pending on branch {branch}", str(repository.path))
        if ref in repository.branch_checkouts():
            raise StackctlError(f"branch {branch} is checked out", str(repository.path), "check out another one first")
        before, tip = pending["before"], repository.resolve(ref) if repository.exists(ref) else None
        if tip not in (before, pending["tip"]):
            raise StackctlError(f"branch {branch} has moved since", str(repository.path), "move or delete it yourself: git branch")
        if tip != before:
            repository.update_ref(ref, str(before or repository.nothing), str(tip))
        transaction.save_pending(repository, branch, None)
    say(f"branch {branch} is back at {str(before)[:12]}" if before else f"branch {branch} is deleted")
    return 0
