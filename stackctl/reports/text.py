"""A report as plain text, for a pipe or a log: rich, which nobody would see there, takes as long as the census."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackctl.model.report import EntryRow, Finding, Report
from stackctl.model.verdict import Level
from stackctl.reports.markdown import headline

_COLUMNS = ("entry", "verdict", "disposition", "title", "missing")


def render_text(report: Report) -> str:
    """Findings as `path:line: verdict message`, then the table of entries and one closing line."""
    lines = [_said(line) for finding in report.findings for line in _finding(finding)]
    if report.entries:
        rows = [(row.number, str(row.verdict), row.disposition, printable(row.title), printable(missing(row))) for row in report.entries]
        lines += _table([_COLUMNS, *rows])
    return "\n".join([*lines, closing(report)])


def closing(report: Report) -> str:
    """The last lines: what came of it all, how many plants have which verdict, and what the run stood on."""
    plants = ", ".join(f"{count} {word}" for word, count in report.summary.get("plants", {}).items())
    scope = printable(str(report.summary.get("scope", "")))
    said = f"{report.command}: {headline(report)}{f' ({plants})' if plants else ''}"
    return f"{said}\n{scope}" if scope else said


def _said(line: str) -> str:
    """A line that a runner of GitHub's does not take for a command, which `::` at its start is."""
    return line.replace("::", ": :", 1) if line.lstrip().startswith("::") else line


def _finding(finding: Finding) -> Iterator[str]:
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    name = "/".join(filter(None, (finding.entry, finding.plant)))
    symbol = f" in {finding.symbol}" if finding.symbol else ""
    yield printable(f"{where or '-'}: {rank(finding)}{finding.kind}{f' {name}' if name else ''}{symbol}: {finding.message}")
    if finding.evidence:
        yield printable(f"    {finding.evidence}")
    action = finding.action or finding.kind.action
    if action != "none":
        yield printable(f"    do: {action}")


def rank(finding: Finding) -> str:
    """The level of a finding that is no error, where colour does not tell."""
    return "" if finding.severity is Level.ERROR else f"{finding.severity}: "


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def printable(text: str) -> str:
    """Text without control characters of somebody else's."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def missing(row: EntryRow) -> str:
    """The first few missing halves by name; a table is no place for thirty."""
    more = f" and {len(row.missing) - 3} more" if len(row.missing) > 4 else ""
    return ", ".join(map(_short, row.missing[: 3 if more else 4])) + more or row.note


def _short(name: str) -> str:
    """A half that the audit names by its place and code, cut to its code's first words."""
    tail = name.rpartition("/")[2]
    return tail if len(tail) <= 60 else f"{tail[:57]}..."
