"""`stackctl import`: patches or commits become entries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import Settings, open_repository, repo_option, status

if TYPE_CHECKING:
    from stackctl.carry.series import Patch
    from stackctl.trees.git import Repository


@click.command("import")
@click.argument("source", metavar="SERIES_DIR|REV_RANGE")
@click.option("--base", required=True, help="The upstream commit or tag that the series stands on, such as v0.5.11.")
@repo_option
@click.pass_obj
def command(settings: Settings, source: str, base: str, repo: Path | None) -> int:
    """Make every patch of a folder, or every commit of a range, an entry of the stack.

    The patch is kept byte for byte in patches/. Number, slug, title and disposition are proposed from its
    name and its text (012-x.patch, "[012] x", "#012 x", "012: x", "entry 12: x"); edit entry.toml where they are
    wrong. Nothing is written unless all of it applies.
    """
    from stackctl.carry import series

    stack, repository = settings.stack(), open_repository(repo)
    patches, left_out = _patches(source, repository)
    with status(settings, "applying the series on its base"):
        outside = _checked(patches, base, repository)
    made = series.write_entries(stack.root, stack, patches, base, outside)
    from stackctl.plants.manifest import load_stack

    load_stack(stack.root)  # what was written is read back: a manifest that does not load is our bug
    for line in left_out:
        settings.say(f"left out {line}")
    for line in series.renumbered(patches):
        settings.say(line)
    for number, paths in outside.items():
        settings.say(f"entry {number}: {', '.join(paths)} left out: {base} has no such file")
    for patch in patches:
        # Said with -q too: a file that was cut off was once imported as an entry without a half.
        empty = "" if any(series.diffs_of(patch.data)) else f": {patch.name} holds no diff, nothing of it is planted or judged"
        click.echo(f"{patch.number:>4}  {series.propose(patch).disposition:<10}  {patch.slug}{empty}")
    settings.say(f"{len(made.names)} entries on {base}; check their dispositions, then: stackctl apply --onto NEW")
    return 0


def _patches(source: str, repository: Repository) -> tuple[list[Patch], list[str]]:
    """The patches of a folder if there is one by that name, else of a range of commits."""
    from stackctl.carry.series import read_folder, read_range

    if ".." in source and not Path(source).is_dir():
        return read_range(repository, source), []
    return read_folder(Path(source))


def _checked(patches: list[Patch], base: str, repository: Repository) -> dict[int, tuple[str, ...]]:
    """What of each patch is outside the base. Raises StackctlError if the series does not apply strictly."""
    from stackctl.carry.fork import Layer, build_fork
    from stackctl.carry.series import propose
    from stackctl.model.errors import StackctlError
    from stackctl.model.stack import Disposition

    idle = (Disposition.CANDIDATE, Disposition.SUPERSEDED, Disposition.RETIRED, Disposition.BLOCKED)
    layers = [Layer(p.number, p.name, p.data, p.strip) for p in patches if propose(p).disposition not in idle]
    outside = {number: paths for number, paths in build_fork(repository, base, layers).missing.items() if paths}
    layers = [Layer(x.number, x.name, x.data, x.strip, outside.get(x.number, ())) for x in layers]
    fork = build_fork(repository, base, layers)
    if fork.failed:
        names = {patch.number: patch.name for patch in patches}
        said = "\n".join(f"  {names[number]}: {reason}" for number, reason in fork.failed.items())
        raise StackctlError(
            f"the series does not stand on {base}; nothing was imported\n{said}",
            hint="name the base it was made on: --base REF",
        )
    return outside
