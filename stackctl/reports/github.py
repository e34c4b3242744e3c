"""A report as workflow commands of GitHub Actions: annotations on the lines of a pull request.

GitHub shows ten errors and ten warnings of a step and drops the others without a word, so the ten findings that
matter first are annotated, and one notice says where the rest is.
"""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Level
from stackctl.reports.importance import by_importance, is_red
from stackctl.reports.markdown import headline
from stackctl.reports.words import clean, cut, sentence, title

_SHOWN = 10
_LENGTH = 2_000


def render_github(report: Report) -> str:
    """The report as lines that start with `::`, at least one: the runner's log then says what came of it."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    told = [finding for finding in by_importance(report.findings) if is_red(finding) or finding.severity is not Level.NOTE]
    yield from map(_annotation, told[:_SHOWN])
    rest = f"; the first {_SHOWN} of {len(told)} are annotated, all are in the job summary" if len(told) > _SHOWN else ""
    level = "error" if report.exit and not any(map(is_red, told)) else "notice"  # a half without a verdict has no finding
    scope = f" ({clean(str(report.summary['scope']))})" if report.summary.get("scope") else ""
    yield f"::{level} title=stackctl {_property(report.command)}::{_data(headline(report) + rest + scope)}"


def _annotation(finding: Finding) -> str:
    places = {
        "file": finding.path, "line": str(finding.line) if finding.line and finding.path else "", "title": title(finding),
    }  # fmt: skip
    properties = ",".join(f"{key}={_property(clean(value))}" for key, value in places.items() if value)
    return f"::{'error' if is_red(finding) else 'warning'} {properties}::{_data(cut(clean(sentence(finding), newline=chr(10)), _LENGTH))}"


def _data(text: str) -> str:
    """Text after the `::`, as the runner's own toolkit escapes it (toolkit, packages/core/src/command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
