"""`stackctl probe`: ask an installed environment which entries do anything there."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, format_option, render


@click.command()
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    required=True,
    help="The interpreter of the environment to ask, such as /srv/venv/bin/python.",
)
@click.option("--launch", metavar="CMD", help="The launch command, for flags and for the variables in front of it.")
@click.option(
    "--since", "since_file", type=click.Path(path_type=Path), help="The answers at the last restart, to compare with."
)
@click.option(
    "--save", "save_file", type=click.Path(path_type=Path), help="Keep the answers here for the next restart."
)
@format_option("text", "json", "md")
@click.pass_obj
def command(
    settings: Settings, python: Path, launch: str | None, since_file: Path | None, save_file: Path | None, form: str
) -> int:
    """Ask the probes of checks/probes and say which entries are active, inert or due again, and what changed.

    The environment's files are read; nothing of it is imported or run. What cannot be told is not judged
    (exit code 2), never taken for a no.
    """
    from stackctl.probes.asking import ask_all, load_asking, report, save_asking
    from stackctl.probes.declared import load_probes

    stack = settings.stack()
    probes = load_probes(stack.root)
    before = load_asking(since_file) if since_file else None
    asking = ask_all(stack, probes, python, launch, before)
    found = report(asking, before, stack, probes)
    if form == "text":
        from stackctl.reports.probes import render_probes

        render_probes(asking, found, probes)
    else:
        render(found, form)
    if save_file:
        save_asking(asking, save_file)
    return int(found.exit)
