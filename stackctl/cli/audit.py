"""`stackctl audit`: judge one merge by its four sides, one merge commit, or every merge after a point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import FORMATS, Settings, format_option, open_repository, render, status

if TYPE_CHECKING:
    from stackctl.census.merges import Merge
    from stackctl.model.report import Report
    from stackctl.trees.git import Repository

_SIDES = ("base", "ours", "theirs", "merged")


@click.command("audit")
@click.option("--base", metavar="REF|DIR", help="What both sides were cut from.")
@click.option("--ours", metavar="REF|DIR", help="The fork before the merge.")
@click.option("--theirs", metavar="REF|DIR", help="Upstream.")
@click.option("--merged", metavar="REF|DIR", help="The result.")
@click.option("--merge", "commit", metavar="COMMIT", help="A merge commit: its parents are ours and theirs.")
@click.option("--since", metavar="REF", help="Every merge on the first-parent line after REF, up to --at.")
@click.option("--at", default="HEAD", show_default=True, metavar="REF", help="Where --since ends.")
@click.option("--swap", is_flag=True, help="With --merge or --since: ours is the second parent (the fork was merged into upstream).")
@click.option("--repo", type=click.Path(path_type=Path), help="The Git repository of the refs; default: the cache that `upstream add` fills.")
@click.option("--entry-pattern", metavar="REGEX", help="Finds the entry in a commit's subject; its first group, else the match, is the name.")
@format_option(*FORMATS)
@click.pass_obj
def command(
    settings: Settings,
    base: str | None,
    ours: str | None,
    theirs: str | None,
    merged: str | None,
    commit: str | None,
    since: str | None,
    at: str,
    swap: bool,
    repo: Path | None,
    entry_pattern: str | None,
    form: str,
) -> int:
    """Say what a merge made of every half of the fork, and of every line of upstream.

    Name the four sides (each a Git ref of --repo, or a folder), or a merge commit, or --since REF.
    No entry has to be declared. Exit code 1 if anything of error level was found.
    """
    four = {"base": base, "ours": ours, "theirs": theirs, "merged": merged}
    _check(four, commit, since)
    with status(settings, "judging the merge"):
        repository = _repository(four, repo)
        report = _judge(_merges(four, commit, since, at, repository), swap, repository, entry_pattern)
    render(report, form)
    return int(report.exit)


def _check(four: dict[str, str | None], commit: str | None, since: str | None) -> None:
    """One way of naming the merge, and that one whole."""
    given = [name for name, value in four.items() if value]
    if bool(given) + bool(commit) + bool(since) != 1:
        raise click.UsageError("name the merge one way: --base --ours --theirs --merged, or --merge, or --since")
    if given and (missing := [f"--{name}" for name in _SIDES if name not in given]):
        raise click.UsageError(f"missing {', '.join(missing)}: four sides are needed")


def _repository(four: dict[str, str | None], repo: Path | None) -> Repository | None:
    """The repository, unless all four sides are folders."""
    folders = all(value and Path(value).is_dir() for value in four.values())
    return None if folders and repo is None else open_repository(repo)


def _merges(
    four: dict[str, str | None], commit: str | None, since: str | None, at: str, repository: Repository | None
) -> list[Merge]:
    from stackctl.census.merges import Merge, merge_of, merges_since, side

    if repository is None or not (commit or since):
        return [Merge(*(side(four[name] or "", repository) for name in _SIDES))]
    commits = [commit] if commit else merges_since(repository, since or "", at)
    return [merge_of(repository, name) for name in commits]


def _judge(merges: list[Merge], swap: bool, repository: Repository | None, pattern: str | None) -> Report:
    from stackctl.census.run import audit_all

    return audit_all(merges, swap, repository, pattern)


if __name__ == "__main__":
    raise SystemExit(command(standalone_mode=False, obj=Settings()))
