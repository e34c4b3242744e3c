"""`stackctl show N`: one entry."""

from __future__ import annotations

import click

from stackctl.cli.common import Settings, chosen, format_option


@click.command()
@click.argument("number", type=int)
@format_option("text", "json")
@click.pass_obj
def command(settings: Settings, number: int, form: str) -> int:
    """Show one entry: what it is for, what was decided, and each of its halves."""
    stack = settings.stack()
    (entry,) = chosen(stack, [number], [])
    plants = [{"id": p.id, "kind": p.kind, "host": p.host, "releases": p.releases, "unit": p.unit, **p.options} for p in entry.plants]
    facts = {
        "disposition": str(entry.disposition), **entry.decision, "default": entry.default, "switch": entry.switch,
        "upstream": ", ".join(entry.upstream), "requires": list(entry.requires), "excludes": list(entry.excludes),
        "watch": list(entry.watch), "probes": [f"{role}: {', '.join(names)}" for role, names in entry.probes.items()],
    }  # fmt: skip
    if form == "json":
        import json

        click.echo(json.dumps({"schema": 1, "command": "show", "entry": number, "title": entry.title, **facts, "notes": entry.notes, "plants": plants}, indent=2))
        return 0
    click.echo(f"{entry.number} {entry.title}")
    for key, value in facts.items():
        if value:
            text = "; ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"  {key}: {text}")
    if entry.notes:
        click.echo("\n" + "\n".join(f"  {line}" for line in entry.notes.strip().splitlines()))
    click.echo()
    for plant in entry.plants:
        due = f" [{plant.releases}]" if plant.releases else ""
        place = plant.host or plant.options.get("path") or plant.options.get("patch") or "the whole tree"
        click.echo(f"  {plant.id:<24} {plant.kind:<10} {place}{due}")
    return 0
