"""A report as Markdown, for a job summary or a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stackctl.model.report import Finding, LedgerRow, Report
from stackctl.model.verdict import Verdict
from stackctl.reports.importance import by_importance
from stackctl.reports.words import cut

LIMIT = 1_000_000  # bytes: GitHub drops a job summary of more than 1 MiB as a whole
_CELL = 2_000  # characters
# GitHub reads $ as mathematics and ~ as struck out.
_SPELT = {**{char: f"\\{char}" for char in "\\`*_[]|#~$"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}


def render_markdown(report: Report, limit: int = LIMIT) -> str:
    """Findings first, the ones that matter most on top, then the entries; at most `limit` bytes."""
    parts = [f"## stackctl {escape(report.command)}: {headline(report)}"]
    if scope := str(report.summary.get("scope", "")):
        parts.append(escape(scope))
    if report.findings:
        found = map(_finding_cells, by_importance(report.findings))
        parts.append(_table(("level", "what", "where", "entry", "message", "do"), found, limit // 4 * 3))
    if report.entries:
        rows = ((row.number, row.title, str(row.verdict), row.disposition, ", ".join(row.missing)) for row in report.entries)
        parts.append(_table(("entry", "title", "verdict", "disposition", "missing"), rows, limit // 5))
    return "\n\n".join(parts)


def headline(report: Report) -> str:
    """The result in one line. What was not judged is neither clean nor a mere warning: the run is red for it."""
    judged = [str(finding.severity) for finding in report.findings if finding.kind is not Verdict.NOT_JUDGED]
    counts = [f"{judged.count(level)} {level}{'s' if judged.count(level) > 1 else ''}" for level in ("error", "warning") if level in judged]
    unjudged = {_half(item) for item in (*report.findings, *report.ledger) if _kind(item) is Verdict.NOT_JUDGED}
    if unjudged:
        counts.append(f"{len(unjudged)} not judged")
    return ", ".join(counts) or "clean"


def _kind(item: Finding | LedgerRow) -> Verdict:
    return item.kind if isinstance(item, Finding) else item.verdict


def _half(item: Finding | LedgerRow) -> tuple[str, ...]:
    """One half, however often it is told of; what is no half is told apart by its words."""
    if item.plant:
        return item.entry, item.plant
    return item.path, item.symbol, item.message if isinstance(item, Finding) else item.evidence


def _finding_cells(finding: Finding) -> tuple[str, ...]:
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    message = f"{finding.message} ({finding.evidence})" if finding.evidence else finding.message
    name = "/".join(filter(None, (finding.entry, finding.plant)))
    return (str(finding.severity), str(finding.kind), f"{where} {finding.symbol}".strip(), name, message, finding.action or finding.kind.action)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], limit: int) -> str:
    """The rows that fit; how many do not is said below, for a table that just ends would be believed whole."""
    lines, size, left_out = [_row(head), _row(["---"] * len(head))], 0, 0
    for row in rows:
        line = _row([escape(cut(cell, _CELL)) for cell in row])
        size += len(line.encode(errors="replace")) + 1
        if size <= limit:
            lines.append(line)
        else:
            left_out += 1
    return "\n".join(lines) + (f"\n\n{left_out} more rows do not fit here: `--format json` has them all." if left_out else "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Text that cannot break out of a table cell or become markup; what stands between `backticks` is shown as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its fellow
        return _spelt(text)
    made = ""
    for index, part in enumerate(parts):
        if index % 2 == 0:
            # Two spans side by side would be read as one with longer fences.
            made += _spelt(part) or (" " if 0 < index < len(parts) - 1 and made.endswith("`") else "")
        else:
            made += _span(part)
    return made


def _span(text: str) -> str:
    """A code span; in a cell a bar ends it whatever is done, so text with one is spelt out."""
    shown = _printable(text)
    return f"`{shown}`" if shown.strip() and "|" not in shown else _spelt(f"`{text}`")


def _spelt(text: str) -> str:
    shown = _printable(text)
    parts = (_char(shown, index) for index in range(len(shown)))
    return "".join(parts)


def _char(text: str, index: int) -> str:
    """One character of a text; an underscore inside a word is none of Markdown's, and a name after @ is no person."""
    char, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    if char == "_" and before.isalnum() and after.isalnum():
        return char
    if char == "@" and after.isalnum() and not before.isalnum():
        return "@<!-- -->"
    return _SPELT.get(char, char)


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
