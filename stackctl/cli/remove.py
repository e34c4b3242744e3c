"""`stackctl remove N`: take an entry out of the stack."""

from __future__ import annotations

import click

from stackctl.cli.common import Settings


@click.command()
@click.argument("number", type=int)
@click.pass_obj
def command(settings: Settings, number: int) -> int:
    """Take an entry, its files and its patch out of the stack. Branches are not touched."""
    from stackctl.carry.records import remove

    for name in remove(settings.stack(), number):
        click.echo(f"removed {name}")
    return 0
