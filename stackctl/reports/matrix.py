"""What becomes of each entry on each upstream release: a matrix of entries by releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stackctl.census.memo import Memo
from stackctl.census.verify import verify
from stackctl.model.report import LedgerRow
from stackctl.model.stack import Entry, Stack
from stackctl.model.verdict import Verdict
from stackctl.trees.git import Repository
from stackctl.trees.release import parse_release
from stackctl.trees.tree import GitTree

_ANCHOR = frozenset({Verdict.HOST_GONE, Verdict.AMBIGUOUS, Verdict.UNPARSABLE, Verdict.UNDECIDED})


@dataclass(frozen=True)
class Matrix:
    """`rows` holds, for each entry number, one word a release: ours, adopted, in part, re-anchor, not due, watched."""

    releases: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]


def release_tags(repository: Repository, most: int = 20) -> list[str]:
    """The newest release tags, oldest first."""
    from packaging.version import InvalidVersion, Version

    found = []
    for tag in repository.tags():
        try:
            version = Version(tag.removeprefix("v"))
        except InvalidVersion:
            continue
        if tag.startswith("v") and not version.is_prerelease:
            found.append((version, tag))
    return [tag for _, tag in sorted(found)[-most:]]


def matrix(stack: Stack, repository: Repository, tags: Sequence[str], memo: Memo) -> Matrix:
    """Judge the stack on stock upstream of each release: what would have to be planted, and what upstream has."""
    columns = [_column(stack, repository, tag, memo) for tag in tags]
    rows = {str(entry.number): tuple(column[entry.number] for column in columns) for entry in stack.entries}
    return Matrix(tuple(tag.removeprefix("v") for tag in tags), rows)


def _column(stack: Stack, repository: Repository, tag: str, memo: Memo) -> dict[int, str]:
    tree, release = GitTree(repository, f"refs/tags/{tag}"), parse_release(tag)
    found = verify(stack, tree, release, tree, memo.judge)
    ledger: dict[str, list[LedgerRow]] = {}
    for row in found.ledger:
        ledger.setdefault(row.entry, []).append(row)
    return {entry.number: _word(entry, ledger.get(str(entry.number), [])) for entry in stack.entries}


def _word(entry: Entry, rows: Sequence[LedgerRow]) -> str:
    if entry.disposition.tombstone:
        return "watched"
    due = [row.verdict for row in rows if row.verdict is not Verdict.NOT_DUE]
    if not due:
        return "not due"
    if _ANCHOR & set(due):
        return "re-anchor"
    adopted = due.count(Verdict.ADOPTED)
    return "adopted" if adopted == len(due) else "in part" if adopted else "ours"
