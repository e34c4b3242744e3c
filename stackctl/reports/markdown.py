"""A report as Markdown, for a job summary or a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stackctl.model.report import Finding, Report


def render_markdown(report: Report) -> str:
    """Findings first, then the entries."""
    parts = [f"## stackctl {report.command}: {headline(report)}"]
    if report.findings:
        parts.append(_table(("level", "what", "where", "entry", "message", "do"), map(_finding_cells, report.findings)))
    if report.entries:
        rows = ((row.number, row.title, str(row.verdict), row.disposition, ", ".join(row.missing)) for row in report.entries)
        parts.append(_table(("entry", "title", "verdict", "disposition", "missing"), rows))
    return "\n\n".join(parts)


def headline(report: Report) -> str:
    """The result in one line."""
    levels = [str(finding.severity) for finding in report.findings]
    counts = [f"{levels.count(level)} {level}{'s' if levels.count(level) > 1 else ''}" for level in ("error", "warning") if level in levels]
    return ", ".join(counts) or "clean"


def _finding_cells(finding: Finding) -> tuple[str, ...]:
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    message = f"{finding.message} ({finding.evidence})" if finding.evidence else finding.message
    name = "/".join(filter(None, (finding.entry, finding.plant)))
    return (str(finding.severity), str(finding.kind), f"{where} {finding.symbol}".strip(), name, message, finding.action or finding.kind.action)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(head), _row(["---"] * len(head)), *(_row([escape(cell) for cell in row]) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Text that cannot break out of a table cell or become markup."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    for char in "\\`*_[]<>|#":
        printable = printable.replace(char, f"\\{char}" if char not in "<>" else {"<": "&lt;", ">": "&gt;"}[char])
    return printable
