"""The restart checklist as one page that needs nothing else: no request leaves it, and it works from a file.

Every text goes through `html.escape`; the page's policy lets only its own script and style run, by their
hashes, so that what a title smuggled in would not run even if an escape were missed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from stackctl.model.report import EntryRow, Report
from stackctl.reports.board import SIGNS, TONES, columns
from stackctl.reports.restart_markdown import open_findings

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_COLOURS = {
    **TONES,
    "broken": "bad",
    "added": "good",
    "changed": "info",
    "retired": "calm",
    "active": "good",
    "error": "bad",
    "warning": "warn",
    "note": "calm",
    "passed": "good",
    "failed": "bad",
    "new": "info",
    "raised": "info",
    "lowered": "warn",
    "removed": "warn",
    "stale": "bad",
    "stray": "bad",
    "exclusive": "warn",
    "due again": "info",
}


def render_html(report: Report) -> str:
    """The page of a `report restart`."""
    summary = report.summary
    template = (files("stackctl.reports") / "restart.html").read_text(encoding="utf-8")
    verdicts = {row.number: row for row in report.entries}
    changed = {
        str(item["entry"])
        for section in summary["sections"]
        if section["id"] in ("entries", "woken")
        for item in section["items"]
    }
    marks = _Marks(verdicts, changed, summary["defaults"])
    slots = {
        "policy": _policy(template),
        "title": _text(f"Restart {summary['label']}"),
        "label": _text(summary["label"]),
        "key": _text(f"{summary['label']}@{summary['at']['commit'][:12]}"),
        "facts": _facts(summary),
        "links": _links(summary),
        "verdicts": "".join(f'<option value="{_text(word)}">{_text(word)}</option>' for word, _ in columns(report.entries)),
        "sections": "".join(_section(section, marks) for section in summary["sections"]),
        "board": _board(report, marks),
        "matrix": _matrix(summary["matrix"], report, marks),
        "footer": _text(f"Made by stackctl from {summary['at']['commit']}, since {summary['since']['commit']}."),
    }
    return _SLOT.sub(lambda slot: slots[slot[1]], template)  # once: what a slot holds is not looked at again


class _Marks:
    """The attributes that filters read, of whatever belongs to an entry."""

    def __init__(self, rows: Mapping[str, EntryRow], changed: set[str], defaults: Mapping[str, str]) -> None:
        self.rows, self.changed, self.defaults = rows, changed, defaults

    def of(self, number: str) -> str:
        """The attributes as HTML."""
        verdict = str(self.rows[number].verdict) if number in self.rows else ""
        default = self.defaults.get(number, "")
        return f'data-v="{_text(verdict)}" data-c="{int(number in self.changed)}" data-d="{_text(default)}"'


def _text(text: str) -> str:
    """Text that is no markup. Control and direction characters, which would spoof what is read, are replaced."""
    return escape("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text)))


def _policy(template: str) -> str:
    hashes = {tag: _hash(re.search(rf"<{tag}>(.*?)</{tag}>", template, re.DOTALL)) for tag in ("style", "script")}
    return (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(block: re.Match[str] | None) -> str:
    assert block is not None
    return base64.b64encode(hashlib.sha256(block[1].encode()).digest()).decode()


def _facts(summary: Mapping[str, Any]) -> str:
    at, since = summary["at"], summary["since"]
    counts = ", ".join(f"{count} {word}" for word, count in summary["entries"].items())
    rows = [
        ("Code tip", f"{_code(at['commit'][:12])} {_text(at['subject'])}, {_text(at['date'][:10])}"),
        ("Deployed", f"{_code(since['commit'][:12])} {_text(since['subject'])}, {_text(since['date'][:10])}"),
        ("SGLang", _text(f"{summary['release']}, deployed {summary['since_release'] or 'not known'}")),
        ("Entries", _text(counts)),
        (
            "Since then",
            _text(", ".join(f"{count} {word}" for word, count in summary["changes"].items()) or "no entry changed"),
        ),
    ]
    level = next((level for level in ("error", "warning") if summary["open"].get(level)), "")
    found = _tag(open_findings(summary), _COLOURS.get(level, "good"))
    rows.append(("Open findings", f'<a href="#findings">{found}</a>' if summary["open"] else found))
    rows += [
        (name, _code(summary[key])) for name, key in (("Environment", "python"), ("Launch", "launch")) if summary[key]
    ]
    return "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _links(summary: Mapping[str, Any]) -> str:
    names = [(section["id"], section["title"]) for section in summary["sections"] if section["items"]]
    names += [("board", "Board"), *([("matrix", "Matrix")] if summary["matrix"] else [])]
    return "".join(f'<li><a href="#{_text(name)}">{_text(title)}</a></li>' for name, title in names)


def _head(name: str, title: str, count: str) -> str:
    own = _text(name)
    return (
        f'<section id="{own}" aria-labelledby="h-{own}"><div class="head">'
        f'<h2 id="h-{own}">{_text(title)}</h2><span>{count}</span></div>'
    )


def _section(section: Mapping[str, Any], marks: _Marks) -> str:
    items = section["items"]
    if not items:
        return f'{_head(section["id"], section["title"], "")}<p class="none">{_text(section["empty"])}</p></section>\n'
    rows = "\n".join(_item(section["id"], index, item, marks) for index, item in enumerate(items))
    return f'{_head(section["id"], section["title"], str(len(items)))}<ul class="items">{rows}</ul></section>\n'


def _item(section: str, index: int, item: Mapping[str, Any], marks: _Marks) -> str:
    name = _text(f"t-{section}-{index}")
    says = "".join(f"<li>{_text(text)}</li>" for text in item["says"])
    command = f"<pre><code>{_text(item['command'])}</code></pre>" if item["command"] else ""
    default_on = item["default"] == "on" and section == "entries"
    return (
        f'<li class="item" {marks.of(str(item["entry"] or ""))}>'
        f'<input type="checkbox" id="{name}" data-id="{_text(item["id"])}"><div>'
        f"{_tag(item['tag'])}{_tag('default on', 'info') if default_on else ''}"
        f'<label for="{name}">{_text(item["subject"])}</label> <span class="by"></span>'
        f"{f'<ul>{says}</ul>' if says else ''}{command}</div></li>"
    )


def _tag(word: str, colour: str = "") -> str:
    return f'<span class="tag {colour or _COLOURS.get(word, "calm")}">{_text(word)}</span>' if word else ""


def _board(report: Report, marks: _Marks) -> str:
    body = "".join(
        f'<div class="column"><h3>{_tag(word)}{len(rows)}</h3>'
        f'<ul tabindex="0" aria-label="{_text(word)} entries">{_cards(rows, marks)}</ul></div>'
        for word, rows in columns(report.entries)
    )
    head = _head("board", "Board: entries by verdict", str(len(report.entries)))
    return f'{head}<div class="board">{body}</div></section>\n'


def _cards(rows: Iterable[EntryRow], marks: _Marks) -> str:
    return "".join(
        f"<li {marks.of(row.number)}><b>{_text(row.number)}</b> {_text(row.title)}"
        f"<small>{_text(_small(row))}</small></li>"
        for row in rows
    )


def _small(row: EntryRow) -> str:
    missing = f"missing: {', '.join(row.missing[:6])}{' ...' if len(row.missing) > 6 else ''}" if row.missing else ""
    return "; ".join(filter(None, (row.disposition, missing, row.note)))


def _matrix(table: Mapping[str, Any] | None, report: Report, marks: _Marks) -> str:
    if not table:
        return ""
    titles = {row.number: row.title for row in report.entries}
    heads = "".join(
        f'<th role="columnheader" scope="col" class="cell"><span>{_text(release)}</span></th>'
        for release in table["releases"]
    )
    rows = "".join(_matrix_row(number, titles.get(number, ""), words, marks) for number, words in table["rows"].items())
    key = "".join(
        f'<span><b class="{colour}">{sign}</b>{_text(says)}</span>' for sign, colour, says in SIGNS.values()
    )
    size = f"{len(table['rows'])} × {len(table['releases'])}"
    return (
        f'{_head("matrix", "Matrix: entries by upstream releases", size)}<p class="key">{key}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Entries by upstream releases">'
        '<table role="table"><thead role="rowgroup"><tr role="row">'
        f'<th role="columnheader" scope="col" class="wide">Entry</th>{heads}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></div></section>\n'
    )


def _matrix_row(number: str, title: str, words: Iterable[str], marks: _Marks) -> str:
    cells = "".join(
        f'<td role="cell" class="{colour}">{sign}</td>' for sign, colour, _ in (SIGNS[word] for word in words)
    )
    text = _text(f"{number} {title}")
    head = f'<th role="rowheader" scope="row" title="{_text(title)}">{text}</th>'
    return f'<tr role="row" {marks.of(number)} data-t="{text}">{head}{cells}</tr>'
