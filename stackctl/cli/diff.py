"""`stackctl diff N`: the patch of one entry."""

from __future__ import annotations

import sys

import click

from stackctl.cli.common import Settings, chosen


@click.command()
@click.argument("number", type=int)
@click.pass_obj
def command(settings: Settings, number: int) -> int:
    """Print the patch that is on record for an entry, byte for byte."""
    from stackctl.carry.records import difference

    stack = settings.stack()
    (entry,) = chosen(stack, [number], [])
    sys.stdout.buffer.write(difference(entry, stack))
    sys.stdout.flush()
    return 0
