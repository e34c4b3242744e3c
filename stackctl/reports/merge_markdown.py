"""The log of a merge as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from stackctl.model.report import Finding, Report
from stackctl.reports.board import halves
from stackctl.reports.markdown import escape
from stackctl.reports.restart_markdown import code

_MARKER = ("marker", "batch", "entries", "where", "what", "became", "decision")
_MARKER_KEYS = ("id", "batch", "entries", "path", "text", "word", "decision")


def render_merge_markdown(report: Report) -> str:
    """The log of a `report merge`: the sums first, then every half by entry, then what is left."""
    summary = report.summary
    merge, after = summary["merge"], summary["after"]
    lines = [
        f"# Merge {code(merge['commit'][:12])}: {escape(merge['subject'])}",
        "",
        *_sums(summary, after["commit"] != merge["commit"]),
        "",
    ]
    lines += ["## Decisions", "", *_decisions(report)]
    if summary["markers"]:
        lines += [
            "## Markers",
            "",
            *_table(_MARKER, (tuple(map(row.get, _MARKER_KEYS)) for row in summary["markers"])),
            "",
        ]
    if summary["settled"]:
        lines += [
            "## Settled",
            "",
            *_table(("finding", "entry", "where", "why"), map(_settled, summary["settled"])),
            "",
        ]
    lines += ["## Left", "", *(_left(report) or ["nothing"])]
    return "\n".join(lines).rstrip()


def _sums(summary: Mapping[str, Any], repaired: bool) -> Iterator[str]:
    words = " + ".join(f"{count} {word}" for word, count in summary["decisions"].items())
    yield f"- declared halves: {summary['halves']} = {escape(words) or 0}"
    if repaired:
        damage, tip = summary["damage"], code(summary["after"]["commit"][:12])
        yield f"- judged as repaired at {tip}: {halves(damage['merge'])} not right at the merge, {damage['now']} now"
    for name, audit in zip(("at the merge", "now"), summary["audits"], strict=False):
        verdicts = " + ".join(f"{count} {word}" for word, count in audit["verdicts"].items())
        levels = ", ".join(_counted(audit[f"{level}s"], level) for level in ("error", "warning"))
        yield f"- audit {name}: {audit['halves']} halves = {escape(verdicts) or 0}; {levels}"
    if summary["audits"]:
        left = sum(summary["left"].values())
        yield f"- findings: {len(summary['settled']) + left} = {len(summary['settled'])} settled + {left} left"
    if summary["markers"]:
        became = Counter(row["word"] for row in summary["markers"])
        yield f"- markers: {len(summary['markers'])} = {' + '.join(f'{count} {word}' for word, count in became.items())}"
        intact = [f"{row['batch'] or 'none'} {row['now']}" for row in summary["batches"] if row["intact"]]
        yield f"- batches intact: {escape(', '.join(intact) or 'none')}"
    if lint := summary["lint"]:
        counts = "ours {}, theirs {}, merged {}".format(*lint["counts"]) if lint["counts"] else ""
        result = f"{lint['added']} added in {lint['touched']} touched files ({counts})"
        yield f"- lint (E9, F821): {escape(lint['problem']) or result}"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _decisions(report: Report) -> Iterator[str]:
    rows: Sequence[Mapping[str, Any]] = report.summary["rows"]
    titles = {row.number: (row.title, str(row.verdict)) for row in report.entries}
    for number, group in groupby(rows, key=lambda row: row["entry"]):
        title, verdict = titles.get(number, ("", ""))
        yield f"### {escape(number)} {escape(title)}: {escape(verdict)}"
        yield ""
        yield from _table(("half", "decision", "ours, merge, now", "where", "evidence"), map(_cells, group))
        yield ""


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    verdicts = " → ".join(filter(None, (row["ours"], row["merged"], row["now"])))
    where = f"{row['path']}:{row['line']}" if row["line"] else row["path"]
    return row["plant"], row["word"], verdicts, f"{where} {row['symbol']}".strip(), row["evidence"]


def _settled(row: Mapping[str, str]) -> tuple[str, ...]:
    return f"{row['kind']}: {row['message']}", row["entry"], f"{row['path']} {row['symbol']}".strip(), row["why"]


def _left(report: Report) -> list[str]:
    return list(map(_left_line, report.findings))


def _left_line(finding: Finding) -> str:
    name = "/".join(filter(None, (finding.entry, finding.plant)))
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    evidence = f" ({finding.evidence})" if finding.evidence else ""
    place = " ".join(filter(None, (str(finding.kind), name, where, finding.symbol)))
    text = f"{place}: {finding.message}{evidence}; do: {finding.action or finding.kind.action}"
    return f"- [ ] **{finding.severity}** {escape(text)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows)
