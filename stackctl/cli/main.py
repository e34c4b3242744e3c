"""The command line: find the command, load only its module, turn every error into words and an exit code."""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from pathlib import Path

import click

from stackctl import __version__
from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Exit

# name -> (module, one line of help): the group must list commands without importing them.
COMMANDS = {
    "apply": ("stackctl.cli.apply", "Plant the stack on an upstream release, on a branch of its own."),
    "attribute": ("stackctl.cli.attribute", "Say which test failures are a merge's and which were there before."),
    "audit": ("stackctl.cli.audit", "Judge every half of a fork after a merge; no declarations needed."),
    "check": ("stackctl.cli.check", "Run the stack's own rules on their examples and on a tree."),
    "completion": ("stackctl.cli.completion", "Print the completion script of a shell."),
    "diff": ("stackctl.cli.diff", "Print the patch of an entry."),
    "explain": ("stackctl.cli.explain", "Explain a verdict or a plant kind."),
    "export": ("stackctl.cli.export", "Write the stack as patches that git am applies."),
    "gate": ("stackctl.cli.gate", "Judge a merge or pull request in CI: census, audit, markers, rules."),
    "import": ("stackctl.cli.import_", "Make patches or commits entries of the stack."),
    "init": ("stackctl.cli.init", "Lay out a new fork's repository."),
    "list": ("stackctl.cli.list", "List the stack's entries."),
    "markers": ("stackctl.cli.markers", "Count the comments that a merge left for a later decision."),
    "probe": ("stackctl.cli.probe", "Ask an installed environment which entries are active in it."),
    "refresh": ("stackctl.cli.refresh", "Record entries anew from an edited branch."),
    "remove": ("stackctl.cli.remove", "Take an entry out of the stack."),
    "renumber": ("stackctl.cli.renumber", "Give entries other numbers."),
    "replant": ("stackctl.cli.replant", "Put lost halves back into a merged branch."),
    "report": ("stackctl.cli.report", "Write the restart checklist, or the log of a merge."),
    "show": ("stackctl.cli.show", "Show one entry with its plants."),
    "smoke": ("stackctl.cli.smoke", "Run real SGLang code from a planted tree."),
    "upstream": ("stackctl.cli.upstream", "Turn SGLang releases from PyPI into a Git repository."),
    "verify": ("stackctl.cli.verify", "Judge every declared half of one tree."),
}


class Lazy(click.Group):
    """A group that imports a command's module when the command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="stackctl")
@click.option("--stack", "stack_dir", type=click.Path(path_type=Path), help="The stack's folder; default: found from here upwards.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no messages; findings and results stay.")
@click.pass_context
def cli(ctx: click.Context, stack_dir: Path | None, quiet: bool) -> None:
    """Carry a numbered stack of patches on a fork of SGLang, and lose no half of one."""
    from stackctl.cli.common import Settings

    ctx.obj = Settings(stack_dir, quiet)


def main() -> None:
    """The program: run, and exit with the code of DESIGN section 6."""
    for stream in (sys.stdout, sys.stderr):  # a name that is no text is printed, not raised over
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Syntax trees are many small objects and no cycles: the collector, as it is set, takes half of the time.
    gc.set_threshold(1_000_000, 50, 100)
    try:
        sys.exit(cli.main(standalone_mode=False) or 0)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.Abort:
        print("stackctl: stopped", file=sys.stderr)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.NOT_JUDGED)
    except StackctlError as error:
        sys.exit(_refused(str(error)))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.CLEAN)
    except OSError as error:  # a full disk, a folder that may not be read: the machine's, not a bug
        sys.exit(_refused(f"{os.fsdecode(error.filename or 'the system')}: {error.strerror or error}"))
    except Exception as error:
        sys.exit(_bug(error))


def _refused(message: str) -> int:
    """Say why nothing was done. Names from somebody else's tree may hold control characters of a terminal."""
    text = "".join(char if char == "\n" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in message)
    print(f"stackctl: {text}", file=sys.stderr)
    return Exit.NOT_JUDGED


def _bug(error: Exception) -> int:
    """Keep the traceback in a file and say where: a person is not helped by it on the screen."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="stackctl-bug-", suffix=".txt", delete=False, errors="backslashreplace") as file:
        file.write(f"stackctl {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n")
        traceback.print_exception(error, file=file)
    print(f"stackctl: a bug of ours: {type(error).__name__}: {error}\n  the traceback is in {file.name}", file=sys.stderr)
    return Exit.BUG


if __name__ == "__main__":
    main()
