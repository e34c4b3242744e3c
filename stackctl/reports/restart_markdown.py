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
    yield f"- code tip {code(at['commit'][:12])} ({escape(at['subject'])}, {escape(at['date'][:10])}), SGLang {escape(summary['release'])}"
    yield f"- deployed {code(since['commit'][:12])} ({escape(since['subject'])}, {escape(since['date'][:10])})"
    changes = ", ".join(f"{count} {word}" for word, count in summary["changes"].items())
    yield f"- entries: {escape(changes or 'none changed')}; now {escape(', '.join(f'{count} {word}' for word, count in summary['entries'].items()))}"
    if summary["python"]:
        yield f"- environment {code(summary['python'])}"
    if summary["launch"]:
        yield f"- launched as {code(summary['launch'])}"


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
