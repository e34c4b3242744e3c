"""`stackctl upstream`: PyPI releases as commits and tags of a Git repository."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackctl.cli.common import Settings, format_option, open_repository, render, repo_option, show_progress

if TYPE_CHECKING:
    from rich.progress import TaskID

    from stackctl.trees.download import Progress
    from stackctl.trees.pypi import UpstreamRelease


@click.group("upstream")
def command() -> None:
    """Turn SGLang releases from PyPI into a Git repository: one commit and one tag a release."""


@command.command("add")
@click.argument("versions", nargs=-1, required=True, metavar="RELEASE...")
@repo_option
@format_option("text", "json")
@click.pass_obj
def add(settings: Settings, versions: tuple[str, ...], repo: Path | None, form: str) -> int:
    """Add releases, such as 0.5.22 0.5.23, with tags v0.5.22 and v0.5.23.

    The repository is created if it is not there. All releases are added, or none. Tags never move: a
    release that is there is left alone, and it is an error if the index has another wheel for it by now.
    """
    from stackctl.trees.cache import upstream_folder
    from stackctl.trees.pypi import add_releases

    with bars(settings) as progress:
        added = add_releases(repo or upstream_folder(), versions, progress)
    for note in added.notes:
        settings.say(note)
    rows = [{**_row(release), "new": release.tag in added.new} for release in added.releases]
    _print(form, "upstream add", added.repository.path, rows)
    return 0


@command.command("list")
@repo_option
@format_option("text", "json")
def list_(repo: Path | None, form: str) -> int:
    """List the releases that are there, oldest first, each with its wheel."""
    from stackctl.trees.pypi import list_releases

    repository = open_repository(repo, around=False)  # `add` fills the cache
    _print(form, "upstream list", repository.path, [_row(release) for release in list_releases(repository)])
    return 0


@contextmanager
def bars(settings: Settings) -> Iterator[Progress]:
    """A bar for each download and import on stderr, gone when the work is done; none if nobody would see it."""
    if not show_progress(settings):
        yield lambda label, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as shown:
        tasks: dict[str, TaskID] = {}

        def show(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = shown.add_task(label, total=None)
            shown.update(tasks[label], completed=done, total=total or None)
            if total and done == total:
                shown.remove_task(tasks.pop(label))

        yield show


def _row(release: UpstreamRelease) -> dict[str, Any]:
    return {
        "version": str(release.version),
        "tag": release.tag,
        "commit": release.commit,
        "wheel": release.wheel,
        "sha256": release.sha256,
    }


def _print(form: str, name: str, repository: Path, rows: list[dict[str, Any]]) -> None:
    """The one JSON object of DESIGN section 9, or a line a release: tag, commit, wheel, and what was done."""
    if form == "json":
        from stackctl.model.report import Report

        render(Report(name, summary={"repository": str(repository), "releases": rows}), form)
        return
    width = max((len(row["tag"]) for row in rows), default=0)
    for row in rows:
        done = {True: "  added", False: "  there already", None: ""}[row.get("new")]
        click.echo(f"{row['tag']:<{width}}  {row['commit'][:12]}  {row['wheel'] or '(not from a wheel)'}{done}")
