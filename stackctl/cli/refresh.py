"""`stackctl refresh N`: an entry follows what was edited on the branch."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, open_repository, repo_option, status


@click.command()
@click.argument("number", type=int)
@click.option("--at", required=True, help="The branch that apply wrote, with your edits committed on it.")
@click.option("--forget", is_flag=True, help="Record the branch also where it lacks halves that the entries have now.")
@repo_option
@click.pass_obj
def command(settings: Settings, number: int, at: str, forget: bool, repo: Path | None) -> int:
    """Record a series anew from a branch: commits without a Stack-Entry trailer are edits of entry N.

    The patches then stand on the release that the branch stands on. Halves that the entries have now and the
    branch's commits have not are named, and nothing is recorded without --forget.
    """
    from stackctl.carry.refreshing import refresh

    stack = settings.stack()
    with status(settings, "recording the series"):
        changed = refresh(stack, open_repository(repo), at, number, forget=forget)
    for name in changed:
        click.echo(f"recorded {name}")
    settings.say(
        f"{len(changed)} entries recorded from {at}"
        if changed
        else "nothing to record: the branch is as the entries have it"
    )
    return 0
