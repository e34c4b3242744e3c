"""`stackctl init`: the layout of a new fork's repository."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings


@click.command()
@click.option("--name", help="The stack's name, of which branches are named; default: the folder's.")
@click.pass_obj
def command(settings: Settings, name: str | None) -> int:
    """Lay out a stack in the current folder (or --stack DIR). Asks nothing and overwrites nothing."""
    from stackctl.carry.records import lay_out

    folder = (settings.stack_dir or Path.cwd()).absolute()
    for made in lay_out(folder, name or folder.name):
        click.echo(f"made {made}")
    settings.say("next: stackctl import SERIES_DIR --base v0.5.23 --repo DIR")
    return 0
