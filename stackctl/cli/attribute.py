"""`stackctl attribute`: whose failures are these?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import Settings, format_option, open_repository, repo_option, status

if TYPE_CHECKING:
    from stackctl.attribute.done import Held, Item
    from stackctl.attribute.runs import Runner
    from stackctl.model.report import Report
    from stackctl.trees.git import Repository


@click.command(context_settings={"ignore_unknown_options": True})
@repo_option
@click.option("--base", metavar="REF", help="The tree before the merge; default: the first parent of --merged.")
@click.option("--merged", default="HEAD", show_default=True, metavar="REF", help="The merged tree.")
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    help="The interpreter that runs the tests; default: the one that runs stackctl.",
)
@click.option(
    "--repeat",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="How often to run at most; more than once only if a test fails.",
)
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds for one run or command.")
@click.option("--done", is_flag=True, help="Hold the definition of done in checks/done.toml as well.")
@click.argument("selection", nargs=-1, type=click.UNPROCESSED)
@format_option("md", "json")
@click.pass_obj
def command(
    settings: Settings,
    repo: Path | None,
    base: str | None,
    merged: str,
    python: Path | None,
    repeat: int,
    timeout: float,
    done: bool,
    selection: tuple[str, ...],
    form: str,
) -> int:
    """Run a pytest SELECTION on a base tree and on the merged tree, and say which failures are the merge's.

    Both run in scratch worktrees, with no hook or filter of the repository; the code of both trees is run.
    Exit code 1 if a failure is the merge's or something to be held is broken, 2 if a side could not be run.
    """
    from stackctl.attribute.done import load_done
    from stackctl.attribute.runs import Runner
    from stackctl.model.errors import StackctlError

    stack, repository = settings.stack(), open_repository(repo)
    if not selection and not done:
        raise click.UsageError("name the tests to run (after --), or --done")
    items = load_done(stack.root) if done else []
    if done and not items:
        raise StackctlError("no item to hold", str(stack.root / "checks" / "done.toml"), "write one: stackctl explain done")
    runner = Runner((python or Path(sys.executable)).absolute(), stack.source, timeout)
    with status(settings, "running both trees"):
        report = _judge(repository, base or f"{merged}^1", merged, runner, repeat, selection, items)
    if form == "json":
        from stackctl.reports.json import render_json

        click.echo(render_json(report))
    else:
        from stackctl.attribute.attribution import render_attribution

        click.echo(render_attribution(report))
    return int(report.exit)


def _judge(
    repository: Repository,
    base: str,
    merged: str,
    runner: Runner,
    repeat: int,
    selection: tuple[str, ...],
    items: list[Item],
) -> Report:
    from dataclasses import replace

    from stackctl.attribute.attribution import attribution_report, repeated
    from stackctl.attribute.done import hold
    from stackctl.attribute.runs import Run, run_pytest
    from stackctl.attribute.scratch import scratch_worktree

    with scratch_worktree(repository, base) as before, scratch_worktree(repository, merged) as after:
        runs = ([Run()], [Run()])
        if selection:
            runs = repeated(
                lambda: run_pytest(before, selection, runner), lambda: run_pytest(after, selection, runner), repeat
            )
        report = attribution_report(*runs, (base, merged), selected=bool(selection))
        held = hold(items, before, after, runner, lambda: _linted(repository, base, merged))
    return replace(
        report,
        findings=(*report.findings, *_broken(held)),
        summary={**report.summary, "done": [each.to_json() for each in held]},
    )


def _broken(held: list[Held]) -> list:
    return [finding for each in held if (finding := each.finding()) is not None]


def _linted(repository: Repository, base: str, merged: str) -> tuple[int, str]:
    """How much lint the merge added, and why it cannot be told."""
    from stackctl.census.lint import lint_merge
    from stackctl.trees.tree import GitTree

    parents = repository.parents(merged)
    ours = GitTree(repository, base)
    theirs = GitTree(repository, parents[1]) if len(parents) == 2 else ours
    lint = lint_merge(ours, theirs, GitTree(repository, merged))
    return len(lint.added), lint.problem
