"""`stackctl export`: the stack as a plain series of patches."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, open_repository, repo_option, status


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--onto", help="The upstream commit or tag to export for; default: the stack's base.")
@repo_option
@click.pass_obj
def command(settings: Settings, folder: Path, onto: str | None, repo: Path | None) -> int:
    """Write the stack as patches that `git am` applies, the same bytes from run to run.

    `stackctl import` makes the same entries of them again.
    """
    from stackctl.carry.records import export, write_series
    from stackctl.model.errors import StackctlError

    stack = settings.stack()
    base = onto or stack.base
    if not base:
        raise StackctlError(
            "for which release?", str(stack.root), 'say it with --onto, or write base = "v0.5.23" into stack.toml'
        )
    with status(settings, f"planting on {base}"):
        files = export(stack, open_repository(repo), base)
    write_series(folder, files)
    settings.say(f"{len(files)} patches on {base} in {folder}; apply them with: git am {folder}/*.patch")
    return 0
