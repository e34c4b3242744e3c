"""`stackctl list`: the entries."""

from __future__ import annotations

import click

from stackctl.cli.common import Settings, format_option


@click.command()
@format_option("text", "json")
@click.pass_obj
def command(settings: Settings, form: str) -> int:
    """List the stack's entries: number, disposition, halves, title."""
    stack = settings.stack()
    if form == "json":
        import json

        rows = [
            {"entry": e.number, "title": e.title, "disposition": str(e.disposition), "default": e.default, "plants": len(e.plants)}
            for e in stack.entries
        ]
        click.echo(json.dumps({"schema": 1, "command": "list", "stack": stack.name, "entries": rows}, indent=2))
        return 0
    width = max((len(str(entry.disposition)) for entry in stack.entries), default=0)
    for entry in stack.entries:
        halves = f"{len(entry.plants)} {'half' if len(entry.plants) == 1 else 'halves'}"
        default = f" (default {entry.default})" if entry.default else ""
        click.echo(f"{entry.number:>4}  {entry.disposition:<{width}}  {halves:>9}  {entry.title}{default}")
    return 0
