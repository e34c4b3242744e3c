"""What commands share: settings, options, progress, and how a report leaves the program."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from stackctl.model.report import Report
    from stackctl.model.stack import Entry, Stack
    from stackctl.trees.git import Repository

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
# What a report can be printed as.
FORMATS = ("text", "json", "md", "sarif", "junit", "github")


@dataclass(frozen=True)
class Settings:
    """What stands before the command."""

    stack_dir: Path | None = None
    quiet: bool = False

    def stack(self) -> Stack:
        """The stack named with --stack, else the one found above the current folder."""
        from stackctl.plants.stacks import find_stack, open_stack

        return open_stack(find_stack(self.stack_dir or Path.cwd()))

    def stack_or_none(self) -> Stack | None:
        """The stack, None where none is named and there is none above the current folder."""
        from stackctl.plants.stacks import STACK_FILE

        folders = [Path.cwd().resolve(), *Path.cwd().resolve().parents]
        known = self.stack_dir or any((folder / STACK_FILE).is_file() for folder in folders)
        return self.stack() if known else None

    def say(self, message: str) -> None:
        """A message for the person at the terminal, on stderr."""
        if not self.quiet:
            click.echo(message, err=True)


def format_option(*formats: str) -> Callable[[F], F]:
    """--format, the first one the default."""
    return click.option("--format", "form", type=click.Choice(formats), default=formats[0], show_default=True, help="How to print the result on stdout.")


def repo_option(function: F) -> F:
    """--repo, by default the user's cache of upstream history."""
    return click.option(
        "--repo", type=click.Path(path_type=Path), help="The Git repository; default: the fork that the stack is kept in, else the cache that `upstream add` fills."
    )(function)


def open_repository(path: Path | None, *, around: bool = True) -> Repository:
    """The repository named, else (`around`) the fork that the stack is kept in, else the user's cache of upstream history."""
    from stackctl.model.errors import StackctlError
    from stackctl.trees.cache import upstream_folder
    from stackctl.trees.git import Repository

    path = path or (_fork_around() if around else None)
    if path is None and not upstream_folder().is_dir():
        raise StackctlError("no upstream history yet", str(upstream_folder()), "fetch it: stackctl upstream add 0.5.23")
    return Repository(path or upstream_folder())


def _fork_around() -> Path | None:
    """The checkout that the stack (or the current folder) is in, if SGLang's own tree is there: a fork that keeps its
    stack beside its code. Judging the cache there, as was done, says that every entry is gone."""
    context = click.get_current_context(silent=True)
    settings = context.obj if context and isinstance(context.obj, Settings) else Settings()
    start = (settings.stack_dir or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder if (folder / "python" / "sglang").is_dir() else None
    return None


def chosen(stack: Stack, only: Sequence[int], without: Sequence[int]) -> list[Entry]:
    """The entries that --only and --without leave, in order. Raises StackctlError for a number not there."""
    from stackctl.model.errors import StackctlError

    for number in (*only, *without):
        if stack.entry(number) is None:
            raise StackctlError(f"no entry {number} in stack {stack.name}", str(stack.root), "see: stackctl list")
    return [e for e in stack.entries if (not only or e.number in only) and e.number not in without]


def render(report: Report, form: str) -> None:
    """Print a report on stdout, alone there."""
    if form != "text":
        click.echo(view(report, form))
    elif at_terminal():
        from stackctl.reports.terminal import render_terminal

        render_terminal(report)
    else:
        from stackctl.reports.text import render_text

        click.echo(render_text(report))


def at_terminal() -> bool:
    """Whether a person reads stdout, or wants it as for one."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def view(report: Report, form: str) -> str:
    """A report as the text of one of FORMATS, all but "text"; its module is loaded when it is asked for."""
    import importlib

    name = {"md": "markdown"}.get(form, form)
    made: str = getattr(importlib.import_module(f"stackctl.reports.{name}"), f"render_{name}")(report)
    return made


def show_progress(settings: Settings) -> bool:
    """Whether anyone would see a bar."""
    return not settings.quiet and sys.stderr.isatty()


def track(items: Iterable[T], settings: Settings, message: str, total: int | None = None) -> Iterator[T]:
    """Iterate with a progress bar on stderr, if that is a terminal."""
    if not show_progress(settings):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    yield from rich_track(items, message, total=total, console=Console(stderr=True), transient=True)


@contextlib.contextmanager
def status(settings: Settings, message: str) -> Iterator[None]:
    """A spinner on stderr while something takes its time, if that is a terminal."""
    if not show_progress(settings):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(message):
        yield
