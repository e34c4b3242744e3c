"""`stackctl explain WORD`: the page on one verdict, or the documentation of one plant kind."""

from __future__ import annotations

import difflib
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

import click

from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Verdict

if TYPE_CHECKING:
    from stackctl.plants.kind import Kind

# What is neither a verdict nor a kind, and has a page all the same.
TOPICS = ("done", "gate", "json", "probe", "restart", "smoke")
# The JSON Schemas of what we publish, as reports/schemas has them.
SCHEMAS = {f"json-{name}": f"{name}.json" for name in ("report", "probes", "ticks")}


@click.command("explain")
@click.argument("word", required=False)
def command(word: str | None) -> int:
    """Explain a verdict (lost, shadowed, ...), a plant kind or a topic; without a word, list them."""
    if word is None:
        click.echo("verdicts:    " + " ".join(sorted(Verdict)))
        click.echo("plant kinds: " + " ".join(sorted(_kinds())))
        click.echo("topics:      " + " ".join((*TOPICS, *SCHEMAS)))
        return 0
    if name := SCHEMAS.get(word.strip().lower()):
        click.echo((files("stackctl.reports") / "schemas" / name).read_text(encoding="utf-8"), nl=False)
    else:
        _show(page_of(word))
    return 0


def page_of(word: str) -> str:
    """The Markdown page on `word`. Raises StackctlError, with the nearest word, for one that has none."""
    name = word.strip().lower().replace("_", "-")
    if name in set(Verdict):
        return (files("stackctl.census") / "explain" / f"{name}.md").read_text(encoding="utf-8")
    kinds = _kinds()
    if name in kinds:
        from stackctl.reports.kinds import kind_page

        return kind_page(kinds[name])
    if name in TOPICS:
        return (files("stackctl.cli") / "pages" / f"{name}.md").read_text(encoding="utf-8")
    known = [*map(str, Verdict), *kinds, *TOPICS, *SCHEMAS]
    near = difflib.get_close_matches(name, known, 1)
    raise StackctlError(
        f"nothing is called {word!r}", hint=f"did you mean {near[0]!r}?" if near else "see: stackctl explain"
    )


def _kinds() -> dict[str, Kind]:
    """The plant kinds by name."""
    from stackctl.plants.registry import kinds

    return dict(kinds())


def _show(page: str) -> None:
    """Rendered at a terminal, plain Markdown elsewhere."""
    if not sys.stdout.isatty():
        click.echo(page)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(page))


if __name__ == "__main__":
    raise SystemExit(command(standalone_mode=False))
