"""What `list` and `show` ask of a tree, if one is named: a census, and a matrix of the releases that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackctl.cli.common import Settings, open_repository, repo_option, status

if TYPE_CHECKING:
    from stackctl.model.report import Report
    from stackctl.model.stack import Entry, Stack
    from stackctl.reports.matrix import Matrix

F = TypeVar("F", bound=Callable[..., Any])


def board_options(function: F) -> F:
    """--repo, --at, --release and --releases."""
    for option in (
        click.option("--releases", default=20, show_default=True, type=click.IntRange(0), help="How many upstream releases are shown with --at (0: none)."),
        click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag."),
        click.option("--at", metavar="REF", help="Judge this commit; default with --repo: HEAD. Without both no tree is read."),
        repo_option,
    ):
        function = option(function)
    return function


def judge(
    settings: Settings, stack: Stack, entries: Sequence[Entry], repo: Path | None, at: str | None, release: str | None, releases: int
) -> tuple[Report | None, Matrix | None]:
    """The census of some entries at a commit, and their matrix; neither where no tree is named."""
    if repo is None and at is None:
        return None, None
    from stackctl.census.memo import Memo
    from stackctl.census.verify import verify
    from stackctl.reports.matrix import matrix, release_tags
    from stackctl.trees.release import release_of
    from stackctl.trees.stock import stock_tree
    from stackctl.trees.tree import GitTree

    repository = open_repository(repo)
    with status(settings, "judging"), Memo() as memo:
        tree = GitTree(repository, at or "HEAD")
        found = release_of(tree, release)
        report = verify(stack, tree, found, stock_tree(repository, found), memo.judge, list(entries))
        tags = release_tags(repository, releases) if releases else []
        table = matrix(replace(stack, entries=tuple(entries)), repository, tags, memo) if tags else None
    return report, table
