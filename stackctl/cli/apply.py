"""`stackctl apply`: plant the stack on a release."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import Settings, chosen, format_option, open_repository, render, repo_option, status
from stackctl.cli.planting import finish

if TYPE_CHECKING:
    from stackctl.carry.apply import Run
    from stackctl.model.stack import Stack
    from stackctl.trees.git import Repository


@click.command()
@repo_option
@click.option("--onto", "ontos", required=True, multiple=True, help="The upstream commit or tag to plant on, such as v0.5.23; of several, a matrix.")
@click.option("--branch", help="The branch to write; default: <stack>-<release>.")
@click.option("--only", type=int, multiple=True, help="Only this entry (again for more).")
@click.option("--without", type=int, multiple=True, help="All but this entry (again for more).")
@click.option("--release", help="The release that --onto is; default: from its version file or the nearest tag.")
@click.option("--dry-run", is_flag=True, help="Print what would be done and touch nothing.")
@click.option("--checkout", is_flag=True, help="If the branch is checked out and clean, change the files there too.")
@click.option("--continue", "carry_on", is_flag=True, help="Take up what was left for a person on the branch.")
@click.option("--accept", multiple=True, metavar="N|all-proven", help="Agree to the proposal for this unit of a series (again for more).")
@click.option("--drop", multiple=True, metavar="N", help="Agree that upstream's text stands for this unit (again for more).")
@click.option("--show", multiple=True, metavar="N|all", help="Print the three texts and the proposal of this unit (again for more).")
@click.option("--audit/--no-audit", "audited", default=True, help="Audit the result of a series.", show_default=True)
@click.option("--record/--no-record", "recorded", default=True, show_default=True,
              help="After a whole carry, make the entries' patches anew on the new release.")  # fmt: skip
@click.option("--abort", is_flag=True, help="Take the branch that has something pending back to where it was (delete it if it is new).")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes for a matrix.", show_default="one a core")
@click.option("--ray", metavar="ADDRESS", help="Spread a matrix over this Ray cluster ('auto', or host:port).")
@format_option("text", "json", "md")
@click.pass_obj
def command(
    settings: Settings, repo: Path | None, ontos: tuple[str, ...], branch: str | None, only: tuple[int, ...], without: tuple[int, ...],
    release: str | None, dry_run: bool, checkout: bool, carry_on: bool, accept: tuple[str, ...], drop: tuple[str, ...],
    show: tuple[str, ...], audited: bool, recorded: bool, abort: bool,
    jobs: int, ray: str | None, form: str,
) -> int:  # fmt: skip
    """Plant the stack on an upstream release: a branch of its own, one commit an entry.

    A branch that is there is carried on with; a second run changes nothing. Units that cannot be placed
    are left out whole, and the exit code is 1. With more than one --onto nothing is written but a matrix of
    entries by releases; a run of that kind that was stopped goes on where it was.
    """
    if len(ontos) > 1 or ray:
        return _matrix(settings, open_repository(repo), ontos, release, jobs, ray, form)
    (onto,) = ontos
    from stackctl.carry import apply as carry
    from stackctl.census.memo import Memo
    from stackctl.trees.release import release_of
    from stackctl.trees.tree import GitTree

    stack = settings.stack()
    repository = open_repository(repo)
    name = branch or carry.default_branch(stack, release_of(GitTree(repository, onto), release))
    if abort:
        return carry.abort(repository, name, settings.say)
    if carry_on:
        carry.require_pending(repository, name)
    if accept or drop:
        from stackctl.carry.accepting import accept_units

        settings.say(accept_units(stack, repository, onto, accept, drop, release_of(GitTree(repository, onto), release)))
        stack = settings.stack()
    with status(settings, f"planting on {onto}"), Memo() as memo:
        run = carry.apply(
            stack, repository, onto, branch=name, entries=chosen(stack, only, without),
            release=release, dry_run=dry_run, checkout=checkout, judge=memo.judge,
        )  # fmt: skip
    code = _report(settings, stack, repository, onto, run, form, show, dry_run=dry_run, audited=audited)
    if not dry_run and recorded:
        _record(settings, stack, repository, onto, run)
    return code


def _record(settings: Settings, stack: Stack, repository: Repository, onto: str, run: Run) -> None:
    from stackctl.carry.recording import record

    for line in record(stack, repository, onto, run):
        settings.say(line)


def _report(
    settings: Settings, stack: Stack, repository: Repository, onto: str, run: Run, form: str, show: tuple[str, ...],
    *, dry_run: bool, audited: bool,
) -> int:  # fmt: skip
    """Audit what was carried, print it with what waits for a person, and say with which code to end."""
    from dataclasses import asdict

    from stackctl.carry.aftermath import audit_series, waiting
    from stackctl.carry.questions import render_questions, to_json
    from stackctl.carry.recording import changes

    with status(settings, "auditing the result"):
        found = audit_series(stack, repository, onto, run) if audited else []
    with status(settings, "composing proposals"):
        asked = waiting(stack, repository, onto, run)
    last, changed = changes(stack, repository, onto, run)
    more = {"units": to_json(asked), "last_carry": last, "changed": [asdict(each) for each in changed]}
    code = finish(settings, stack, run, "apply", form, dry_run=dry_run, left=found, more=more)
    if form != "json" and last:
        click.echo("\n  ".join([f"against the last carry, onto {last}: {len(changed)} halves have another verdict", *map(str, changed)]))
    if form != "json" and asked:
        click.echo(render_questions(asked, show, fenced=form == "md"))
    return code


def _matrix(
    settings: Settings, repository: Repository, ontos: Sequence[str], release: str | None, jobs: int, ray: str | None, form: str
) -> int:  # fmt: skip
    """Print what becomes of each entry on each of some upstream commits."""
    from dataclasses import asdict

    from stackctl.carry.cells import Cells, fill, render_cells, tasks_of
    from stackctl.model.report import Report
    from stackctl.model.verdict import Exit

    stack = settings.stack()
    tasks = tasks_of(stack, repository, list(dict.fromkeys(ontos)), release)
    with status(settings, f"carrying onto {len(tasks)} commits"):
        columns = fill(tasks, Cells(stack, repository), jobs=jobs, ray=ray, done=lambda onto: settings.say(f"carried onto {onto}"))
    cells = [cell for column in columns.values() for cell in column]
    if form == "json":
        render(Report("apply", summary={"stack": stack.name, "cells": [asdict(cell) for cell in cells]}), form)
    else:
        click.echo(render_cells(stack, columns, form))
    if any(cell.verdict in ("half", "absent") for cell in cells):
        return Exit.FINDINGS
    return Exit.NOT_JUDGED if any(cell.verdict == "not-judged" for cell in cells) else Exit.CLEAN
