"""`stackctl list`: the entries, and with --at the board."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, at_terminal, format_option
from stackctl.cli.judged import board_options, judge


@click.command()
@board_options
@format_option("text", "json")
@click.pass_obj
def command(settings: Settings, repo: Path | None, at: str | None, release: str | None, releases: int, form: str) -> int:
    """List the stack's entries: number, disposition, halves, title.

    With --at (or --repo) the board: entries by what became of them there, and what each upstream release of
    that repository would need.
    """
    from stackctl.reports.board import board_of, render_board

    stack = settings.stack()
    report, matrix = judge(settings, stack, stack.entries, repo, at, release, releases)
    board = board_of(stack, stack.entries, report, matrix)
    if form == "json":
        import json

        rows = [card.to_json() for card in board.cards]
        table = {"schema": 1, "command": "list", "entries": rows, "ledger": [], "summary": board.summary, "findings": []}
        click.echo(json.dumps(table, indent=2))
    elif not board.cards:
        settings.say(f"stack {stack.name} has no entries yet: stackctl import SERIES_DIR --base REF --repo DIR")
    elif at_terminal():
        from stackctl.reports.board_terminal import render_board_terminal

        render_board_terminal(board)
    else:
        click.echo(render_board(board))
    return 0
