"""`stackctl report`: the restart checklist, and the log of a merge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import Settings, format_option, open_repository, repo_option, status

if TYPE_CHECKING:
    from stackctl.model.report import Report
    from stackctl.model.stack import Stack
    from stackctl.reports.restart import Wanted
    from stackctl.trees.git import Repository


@click.group()
def command() -> None:
    """Write what people read: the checklist before a restart, and the log of a merge."""


@command.command()
@repo_option
@click.option("--at", default="HEAD", show_default=True, metavar="REF", help="The commit that is to be restarted.")
@click.option("--since", required=True, metavar="REF", help="The commit that is deployed now.")
@click.option(
    "--stack-since",
    metavar="REF",
    help="The deployed commit of the stack's own repository; default: --since, if it is the fork.",
)
@click.option(
    "--python", type=click.Path(path_type=Path), help="The interpreter of the environment to ask the probes of."
)
@click.option("--launch", metavar="CMD", help="The launch command, for flags and switches.")
@click.option(
    "--probes-since",
    "answers",
    type=click.Path(path_type=Path),
    help="The answers at the last restart, from `probe --save`.",
)
@click.option("--save-probes", type=click.Path(path_type=Path), help="Keep the answers here for the next restart.")
@click.option(
    "--locks",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="OLD NEW",
    help="Two lock files: pip freeze, requirements, uv.lock or pylock.toml.",
)
@click.option("--smoke", type=click.Path(path_type=Path), help="The folder of a smoke run: JSON and JUnit files.")
@click.option(
    "--releases", default=20, show_default=True, help="How many upstream releases the matrix shows (0: no matrix)."
)
@format_option("md", "html", "json")
@click.pass_obj
def restart(
    settings: Settings,
    repo: Path | None,
    at: str,
    since: str,
    stack_since: str | None,
    python: Path | None,
    launch: str | None,
    answers: Path | None,
    save_probes: Path | None,
    locks: tuple[Path, Path] | None,
    smoke: Path | None,
    releases: int,
    form: str,
) -> int:
    """The restart checklist: what changed since the deployed tip, what to watch, and how to go back.

    Reads only: the tree and the environment are never imported or run. Exit code 1 with open findings.
    """
    from stackctl.probes.asking import load_asking
    from stackctl.reports.restart import Wanted

    before = load_asking(answers) if answers else None
    wanted = Wanted(at, since, stack_since, python, launch, before, locks, smoke)
    with status(settings, "writing the checklist"):
        report = _restart(settings.stack(), open_repository(repo), wanted, releases if form != "md" else 0, save_probes)
    click.echo(_shown(report, form))
    return int(report.exit)


@command.command()
@click.argument("commit")
@repo_option
@click.option(
    "--after",
    metavar="REF",
    help="The tip that the merge was repaired to, such as its branch after `replant`; default: the merge itself.",
)
@click.option(
    "--entry-pattern", metavar="REGEX", help="Finds the entry in a commit's subject, for halves of no declared entry."
)
@click.option(
    "--audit/--no-audit", default=True, show_default=True, help="Judge every half of the fork, declared or not."
)
@click.option("--lint/--no-lint", default=True, show_default=True, help="Ask ruff (E9, F821) what the merge added.")
@format_option("md", "json")
@click.pass_obj
def merge(
    settings: Settings,
    commit: str,
    repo: Path | None,
    after: str | None,
    entry_pattern: str | None,
    audit: bool,
    lint: bool,
    form: str,
) -> int:
    """The log of a merge: for each half the decision with its evidence, counts that add up, and what is left.

    Reads only. Exit code 1 while something of error level is left.
    """
    from stackctl.reports.merge import judge_merge, merge_report

    stack, repository = settings.stack(), open_repository(repo)
    with status(settings, "reading the merge"):
        report = merge_report(
            judge_merge(stack, repository, commit, after, audit=audit, lint=lint, pattern=entry_pattern)
        )
    if form == "json":
        from stackctl.reports.json import render_json

        click.echo(render_json(report))
    else:
        from stackctl.reports.merge_markdown import render_merge_markdown

        click.echo(render_merge_markdown(report))
    return int(report.exit)


def _restart(stack: Stack, repository: Repository, wanted: Wanted, releases: int, save: Path | None) -> Report:
    from stackctl.census.memo import Memo
    from stackctl.probes.asking import save_asking
    from stackctl.probes.declared import load_probes
    from stackctl.reports.matrix import matrix, release_tags
    from stackctl.reports.restart import gather, restart_report
    from stackctl.reports.sections import sections

    facts = gather(stack, repository, wanted, load_probes(stack.root))
    table = None
    if releases and (tags := release_tags(repository, releases)):
        with Memo() as memo:
            table = matrix(stack, repository, tags, memo)
    if save and facts.asking:
        save_asking(facts.asking, save)
    return restart_report(facts, sections(facts), table)


def _shown(report: Report, form: str) -> str:
    if form == "json":
        from stackctl.reports.json import render_json

        return render_json(report)
    if form == "html":
        from stackctl.reports.html import render_html

        return render_html(report)
    from stackctl.reports.restart_markdown import render_restart_markdown

    return render_restart_markdown(report)
