"""`stackctl verify`: the census."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import FORMATS, Settings, chosen, format_option, open_repository, render, repo_option, status

if TYPE_CHECKING:
    from stackctl.model.report import Report
    from stackctl.model.stack import Stack
    from stackctl.trees.release import Release
    from stackctl.trees.tree import GitTree


@click.command()
@repo_option
@click.option("--at", default="HEAD", show_default=True, help="The commit to judge.")
@click.option("--tree", "folder", type=click.Path(path_type=Path), help="Judge a folder, not a commit.")
@click.option("--upstream", help="Stock upstream's commit, for `adopted`; default: the tag of the tree's release.")
@click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag.")
@click.option("--only", type=int, multiple=True, help="Only this entry (again for more).")
@click.option("--without", type=int, multiple=True, help="All but this entry (again for more).")
@click.option("--python", type=click.Path(path_type=Path), help="The interpreter of an environment: entries that do nothing there are inert.")
@click.option("--launch", metavar="CMD", help="The launch command, for probes that ask about flags and variables.")
@format_option(*FORMATS)
@click.pass_obj
def command(
    settings: Settings, repo: Path | None, at: str, folder: Path | None, upstream: str | None, release: str | None,
    only: tuple[int, ...], without: tuple[int, ...], python: Path | None, launch: str | None, form: str,
) -> int:  # fmt: skip
    """Judge every declared half of one tree. Reads only: nothing is written, imported or run."""
    from stackctl.census.helper import assisted
    from stackctl.census.memo import Memo
    from stackctl.census.verify import verify
    from stackctl.trees.release import release_of
    from stackctl.trees.stock import stock_tree
    from stackctl.trees.tree import FolderTree, GitTree, Tree

    stack = settings.stack()
    entries = chosen(stack, only, without)
    with status(settings, "judging"):
        if folder is not None:
            tree: Tree = FolderTree(folder)
            found = release_of(tree, release)
            stock = _stock_of_folder(repo, found, upstream)
        else:
            repository = open_repository(repo)
            tree = GitTree(repository, at)
            found = release_of(tree, release)
            stock = stock_tree(repository, found, upstream)
        with Memo() as memo, assisted(memo, stack, entries, tree, stock, found) as judge:
            report = verify(stack, tree, found, stock, judge, entries)
    if python is not None:
        report = _woken(report, stack, python, launch)
    render(report, form)
    return report.exit


def _woken(report: Report, stack: Stack, python: Path, launch: str | None) -> Report:
    """The report with the entries that an environment's probes find inert."""
    from stackctl.census.verify import woken
    from stackctl.probes.asking import ask_all
    from stackctl.probes.declared import load_probes

    asking = ask_all(stack, load_probes(stack.root), python, launch)
    return woken(report, {state.entry: state for state in asking.states})


def _stock_of_folder(repo: Path | None, release: Release, upstream: str | None) -> GitTree | None:
    """Stock upstream for a folder: from the repository named, else the user's cache if it has the release."""
    from stackctl.trees.cache import upstream_folder
    from stackctl.trees.stock import stock_tree

    if repo is None and not upstream_folder().is_dir():
        return None
    return stock_tree(open_repository(repo, around=False), release, upstream)
