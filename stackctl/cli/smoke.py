"""`stackctl smoke`: real SGLang code on a planted tree."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, open_repository, repo_option, status


@click.group()
def command() -> None:
    """Run real SGLang code from a planted tree, without a GPU."""


_DIR = click.option("--dir", "directory", type=click.Path(path_type=Path), help="The environment's folder; default: in the cache.")
_TORCH = click.option("--torch", help="The pip requirement for torch; any build serves. Default: a CPU build where the index has one.")
_ENGINE = click.option("--engine", type=click.Choice(["frontend"]), default="frontend", show_default=True, help="What can be run: the real HTTP front end.")


@command.command()
@_ENGINE
@click.option("--release", required=True, help="The SGLang release, such as 0.5.23.")
@_DIR
@_TORCH
@click.pass_obj
def prepare(settings: Settings, engine: str, release: str, directory: Path | None, torch: str | None) -> int:
    """Make an environment: the CPU-only package set of a release and a small model folder (about 1.6 GB)."""
    env = _prepare(settings, release, directory, torch)
    click.echo(f"python {env.python}\nmodel  {env.model}")
    return 0


@command.command()
@repo_option
@click.option("--at", required=True, help="The planted commit to run.")
@click.option("--check", "check", default="chat_conversion", show_default=True, help="The check's file name in the stack's checks/smoke.")
@click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag.")
@_DIR
@_TORCH
@click.pass_obj
def run(settings: Settings, repo: Path | None, at: str, check: str, release: str | None, directory: Path | None, torch: str | None) -> int:
    """Run one check of checks/smoke on a planted commit and print what it found, as JSON."""
    import subprocess
    import tempfile

    from stackctl.model.errors import StackctlError
    from stackctl.plants.stacks import find_stack
    from stackctl.smoke.environment import run_check
    from stackctl.trees.export import export
    from stackctl.trees.release import release_of
    from stackctl.trees.tree import GitTree

    script = find_stack(settings.stack_dir or Path.cwd()) / "checks" / "smoke" / f"{check}.py"
    if not script.is_file() or "/" in check:
        raise StackctlError(f"no check {check!r}", str(script.parent))
    tree = GitTree(open_repository(repo), at)
    env = _prepare(settings, release_of(tree, release).version, directory, torch)
    with tempfile.TemporaryDirectory(prefix="stackctl-tree-") as folder, status(settings, f"running {check}"):
        export(tree, Path(folder))
        try:
            done = run_check(env, Path(folder), script=script, timeout=600)
        except subprocess.TimeoutExpired:
            raise StackctlError(f"{check} did not end within 10 minutes", at) from None
    click.echo(done.stdout.strip())
    if done.returncode:
        click.echo(done.stderr.strip()[-4000:], err=True)
    return 1 if done.returncode else 0


def _prepare(settings: Settings, release: str, directory: Path | None, torch: str | None):  # noqa: ANN202 - its module is loaded late
    from stackctl.smoke.environment import TORCH, prepare
    from stackctl.trees.cache import cache_folder

    folder = directory or cache_folder() / "smoke" / f"frontend-{release}"
    return prepare(release, folder, progress=settings.say, torch=torch or TORCH)
