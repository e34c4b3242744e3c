"""`stackctl completion SHELL`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script of a shell: `eval "$(stackctl completion bash)"`."""
    from stackctl.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "stackctl", "_STACKCTL_COMPLETE").source())
    return 0
