"""The restart checklist: what is new at a tip since the deployed one. Everything it says is derived, nothing typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from stackctl.census.memo import Memo
from stackctl.census.verify import verify, woken
from stackctl.model.errors import StackctlError
from stackctl.model.probe import Probe
from stackctl.model.report import Report
from stackctl.model.stack import Stack
from stackctl.probes.asking import Asking, ask_all
from stackctl.probes.environment import NotThere, Unsure, open_environment
from stackctl.reports.locks import Bump, bumps
from stackctl.reports.matrix import Matrix
from stackctl.reports.smoke import read_smoke
from stackctl.reports.tips import Carried, Declared, Tip, carried_at, declared_at, declared_now, tip_of
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import GitTree

COMMAND = "report restart"


@dataclass(frozen=True)
class Wanted:
    """What the command was asked for. `before` holds the answers at the last restart, `locks` two lock files."""

    at: str
    since: str
    stack_since: str | None = None
    python: Path | None = None
    launch: str | None = None
    before: Asking | None = None
    locks: tuple[Path, Path] | None = None
    smoke: Path | None = None


@dataclass(frozen=True)
class Item:
    """One line of the checklist, which a person ticks. `id` is the same in every run on the same two tips."""

    id: str
    subject: str
    says: tuple[str, ...] = ()
    tag: str = ""
    entry: int = 0
    default: str = ""
    command: str = ""


@dataclass(frozen=True)
class Section:
    """One heading of the checklist; `empty` is said where there is nothing to tick, and why."""

    id: str
    title: str
    items: tuple[Item, ...]
    empty: str = "none"


@dataclass(frozen=True)
class Facts:
    """All that was gathered; what follows from it is in `sections`."""

    stack: Stack
    wanted: Wanted
    at: Tip
    since: Tip
    now: Report
    then: Report | None
    carried: Mapping[int, Carried]
    carried_before: Mapping[int, Carried]
    declared: Mapping[int, Declared]
    declared_before: Mapping[int, Declared] | None
    probes: Mapping[str, Probe] = field(default_factory=dict)
    asking: Asking | None = None
    bumps: tuple[Bump, ...] = ()
    installed: Mapping[str, str] = field(default_factory=dict)
    smoke: tuple[tuple[str, str, str], ...] = ()

    @property
    def label(self) -> str:
        """The name of this stack at this tip: its own, its highest entry, the day of the tip."""
        live = [entry.number for entry in self.stack.entries if not entry.disposition.tombstone]
        return f"{self.stack.name}-{max(live, default=0)}-{self.at.date[:10]}"


def gather(stack: Stack, repository: Repository, wanted: Wanted, probes: Mapping[str, Probe]) -> Facts:
    """Read both tips, the environment and the lock files. Nothing of the tree is imported or run."""
    at, since = tip_of(repository, wanted.at), tip_of(repository, wanted.since)
    asking = ask_all(stack, probes, wanted.python, wanted.launch, wanted.before) if wanted.python else None
    with Memo() as memo:
        now = _census(stack, repository, at.commit, memo)
        try:
            then: Report | None = _census(stack, repository, since.commit, memo)
        except StackctlError:  # a deployed tip of an unknown release says nothing of adoption
            then = None
    if asking is not None:
        now = woken(now, {state.entry: state for state in asking.states})
    moved = tuple(bumps(*wanted.locks)) if wanted.locks else ()
    return Facts(
        stack,
        wanted,
        at,
        since,
        now,
        then,
        carried_at(repository, at.commit, stack.name),
        carried_at(repository, since.commit, stack.name),
        declared_now(stack),
        declared_at(stack, repository, since.commit, wanted.stack_since),
        probes,
        asking,
        moved,
        _installed(wanted.python, moved),
        tuple(read_smoke(wanted.smoke)) if wanted.smoke else (),
    )


def _census(stack: Stack, repository: Repository, commit: str, memo: Memo) -> Report:
    tree = GitTree(repository, commit)
    release = release_of(tree)
    return verify(stack, tree, release, stock_tree(repository, release), memo.judge)


def _installed(python: Path | None, moved: Sequence[Bump]) -> dict[str, str]:
    """The version of each bumped distribution that the environment really has, "?" where it cannot tell."""
    if python is None:
        return {}
    environment, found = open_environment(python), {}
    for bump in moved:
        try:
            found[bump.name] = "?" if environment.problem else environment.version(bump.name)
        except NotThere:
            found[bump.name] = ""
        except Unsure:
            found[bump.name] = "?"
    return found


def restart_report(facts: Facts, sections: Sequence[Section], matrix: Matrix | None = None) -> Report:
    """The checklist as the one report that every view renders: its sections are in the summary."""
    summary: dict[str, Any] = {
        **facts.now.summary,
        "label": facts.label,
        "at": asdict(facts.at),
        "since": asdict(facts.since),
        "since_release": str(facts.then.summary.get("release", "")) if facts.then else "",
        "open": dict(Counter(str(finding.severity) for finding in facts.now.findings)),
        "launch": facts.wanted.launch or "",
        "python": str(facts.wanted.python or ""),
        "changes": dict(Counter(item.tag for section in sections if section.id == "entries" for item in section.items)),
        "defaults": {str(entry.number): entry.default for entry in facts.stack.entries if entry.default},
        "sections": [asdict(section) for section in sections],
        "probes": facts.asking.to_json() if facts.asking else None,
        "matrix": asdict(matrix) if matrix else None,
    }
    return replace(facts.now, command=COMMAND, summary=summary)
