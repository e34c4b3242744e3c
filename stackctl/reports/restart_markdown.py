"""The restart checklist as Markdown, every line with a box to tick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stackctl.model.report import Report
from stackctl.reports.markdown import escape


def render_restart_markdown(report: Report) -> str:
    """The checklist of a `report restart`."""
    summary = report.summary
    lines = [f"# Restart: STACK={escape(summary['label'])}", "", *_head(summary), ""]
    for section in summary["sections"]:
        lines += [f"## {escape(section['title'])}", "", *(_items(section) or [f"{escape(section['empty'])}"]), ""]
    return "\n".join(lines).rstrip()


def _head(summary: Mapping[str, Any]) -> Iterator[str]:
    at, since = summary["at"], summary["since"]
    yield f"- code tip {_tip(at)}, SGLang {escape(summary['release'])}"
    yield f"- deployed {_tip(since)}, SGLang {escape(summary['since_release'] or 'not known')}"
    changes = ", ".join(f"{count} {word}" for word, count in summary["changes"].items())
    now = ", ".join(f"{count} {word}" for word, count in summary["entries"].items())
    yield f"- entries: {escape(changes or 'none changed')}; now {escape(now)}"
    yield f"- open findings: {open_findings(summary)}"
    if summary["python"]:
        yield f"- environment {code(summary['python'])}"
    if summary["launch"]:
        yield f"- launched as {code(summary['launch'])}"


def open_findings(summary: Mapping[str, Any]) -> str:
    """How many findings are open, by level: whoever restarts should see it first."""
    found = summary["open"]
    counts = [f"{found[level]} {level}{'' if found[level] == 1 else 's'}" for level in ("error", "warning", "note") if found.get(level)]
    return ", ".join(counts) or "none"


def _tip(tip: Mapping[str, str]) -> str:
    return f"{code(tip['commit'][:12])} ({escape(tip['subject'])}, {escape(tip['date'][:10])})"


def _items(section: Mapping[str, Any]) -> list[str]:
    lines = []
    for item in section["items"]:
        tag = f"**{escape(item['tag'])}** " if item["tag"] else ""
        lines.append(f"- [ ] {tag}{escape(item['subject'])}")
        lines += [f"  - {escape(text)}" for text in item["says"]]
        if item["command"]:
            lines.append(f"  - {code(item['command'])}")
    return lines


def code(text: str) -> str:
    """Text as a code span that it cannot end: the fence is longer than any run of backticks in it."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    runs = [len(run) for run in "".join(char if char == "`" else " " for char in plain).split()]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if "`" in plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}"
