"""`stackctl show N`: one entry."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, at_terminal, chosen, format_option
from stackctl.cli.judged import board_options, judge


@click.command()
@click.argument("number", type=int)
@board_options
@format_option("text", "json")
@click.pass_obj
def command(settings: Settings, number: int, repo: Path | None, at: str | None, release: str | None, releases: int, form: str) -> int:
    """Show one entry: what it is for, what was decided, and each of its halves; with --at what became of them."""
    from stackctl.reports.shown import render_shown, shown_of

    stack = settings.stack()
    (entry,) = chosen(stack, [number], [])
    shown = shown_of(stack, entry, *judge(settings, stack, [entry], repo, at, release, releases))
    if form == "json":
        import json

        click.echo(json.dumps(shown.to_json(), indent=2))
    elif at_terminal():
        from stackctl.reports.board_terminal import render_shown_terminal

        render_shown_terminal(shown)
    else:
        click.echo(render_shown(shown))
    return 0
