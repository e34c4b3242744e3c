"""A report for the person at the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stackctl.model.report import EntryRow, Finding, Report
from stackctl.model.verdict import EntryVerdict, Level
from stackctl.reports.text import closing, missing, printable, rank

_COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
_ENTRY_COLOURS = {
    EntryVerdict.WHOLE: "green",
    EntryVerdict.ADOPTED: "cyan",
    EntryVerdict.HALF: "red",
    EntryVerdict.ABSENT: "red",
    EntryVerdict.NOT_JUDGED: "yellow",
}


def render_terminal(report: Report) -> None:
    """Findings as `path:line: verdict message`, then the table of entries and one closing line."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 120  # a log or a pipe has no width of its own
    for finding in report.findings:
        _finding(console, finding)
    if report.entries:
        entries_table(console, report.entries)
    result, *scope = closing(report).split("\n")
    console.print(plain(result), style="green" if report.exit == 0 else "red")
    for line in scope:
        console.print(plain(line), style="dim")


def _finding(console: Console, finding: Finding) -> None:
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    name = "/".join(filter(None, (finding.entry, finding.plant)))
    symbol = f" in {finding.symbol}" if finding.symbol else ""
    console.print(
        f"[bold]{plain(where) or '-'}[/]: [{_COLOURS[finding.severity]}]{rank(finding)}{finding.kind}[/]"
        f"{f' [bold]{plain(name)}[/]' if name else ''}{plain(symbol)}: {plain(finding.message)}"
    )
    if finding.evidence:
        console.print(f"    {plain(finding.evidence)}", style="dim")
    action = finding.action or finding.kind.action
    if action != "none":
        console.print(f"    do: {plain(action)}", style="dim")


def plain(text: str) -> str:
    """Text that is printed as it is: no markup, no control characters of somebody else's."""
    return escape(printable(text))


def entries_table(console: Console, entries: Iterable[EntryRow]) -> None:
    """The table of entries."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("entry", "verdict", "disposition", "title", "missing"):
        table.add_column(name, no_wrap=name in ("entry", "verdict", "disposition"))
    for row in entries:
        colour = _ENTRY_COLOURS.get(row.verdict, "dim")
        table.add_row(row.number, f"[{colour}]{row.verdict}[/]", row.disposition, plain(row.title), plain(missing(row)))
    console.print(table)
