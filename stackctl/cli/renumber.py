"""`stackctl renumber`: other numbers for entries."""

from __future__ import annotations

import click

from stackctl.cli.common import Settings
from stackctl.model.errors import StackctlError


@click.command()
@click.argument("numbers", nargs=-1, type=int, metavar="[OLD NEW]")
@click.option(
    "--step",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="The distance of numbers, where all are given anew.",
)
@click.pass_obj
def command(settings: Settings, numbers: tuple[int, ...], step: int) -> int:
    """Give the entry OLD the number NEW; without numbers, count all entries anew from the first one's.

    Where other entries name it (requires, excludes), they name it by its new number.
    """
    from stackctl.carry.records import renumber

    stack = settings.stack()
    if len(numbers) not in (0, 2):
        raise StackctlError("say OLD NEW, or nothing to count all anew")
    first = stack.entries[0].number if stack.entries else 1
    plan = (
        {numbers[0]: numbers[1]}
        if numbers
        else {entry.number: first + index * step for index, entry in enumerate(stack.entries)}
    )
    for line in renumber(stack, plan):
        click.echo(line)
    return 0
