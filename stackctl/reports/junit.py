"""A report as JUnit XML: one test case for every half and every finding that is not about one of them.

Failures are the findings of error level, errors what could not be judged: a run is red here exactly when its exit
code is not 0. A half that has a finding is shown by it, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from stackctl.model.report import Finding, LedgerRow, Report
from stackctl.model.verdict import Level, Verdict
from stackctl.reports.words import sentence, title

# What XML 1.0 has no way to write, not even as an entity, and surrogates.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(report: Report) -> str:
    """The report as one test suite."""
    cases = [*_halves(report), *(_found(report, finding) for finding in report.findings)]
    counts = {
        "tests": len(cases), "failures": _count(cases, "failure"),
        "errors": _count(cases, "error"), "skipped": _count(cases, "skipped"),
    }  # fmt: skip
    numbers = {key: str(value) for key, value in counts.items()}
    suites = ElementTree.Element("testsuites", {"name": "stackctl", **numbers})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": f"stackctl {report.command}", **numbers})
    suite.extend(cases)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}'


def _count(cases: list[ElementTree.Element], tag: str) -> int:
    return sum(case.find(tag) is not None for case in cases)


def _halves(report: Report) -> Iterator[ElementTree.Element]:
    """The halves that no finding is about. One that is not well all the same is told by another's finding: skipped."""
    told = {_key(finding) for finding in report.findings}
    for row in report.ledger:
        if _key(row) in told:
            continue
        case = _case(report, row, row.plant or row.symbol or row.path, str(row.verdict))
        if row.verdict.level is Level.NOTE:
            _child(case, "system-out", f"{row.verdict}: {row.evidence}".rstrip(": "))
        elif row.verdict is Verdict.NOT_JUDGED:
            _child(case, "error", row.evidence, "could not be judged")
        else:
            _child(case, "skipped", row.evidence, f"{row.verdict}; a finding tells of it")
        yield case


def _key(item: Finding | LedgerRow) -> tuple[str, ...]:
    return (item.entry, item.plant) if item.entry and item.plant else (item.path, item.symbol)


def _found(report: Report, finding: Finding) -> ElementTree.Element:
    case = _case(report, finding, finding.plant or finding.symbol or finding.path, str(finding.kind), finding.message)
    if finding.severity is Level.ERROR:
        _child(case, "failure", sentence(finding), finding.message, str(finding.kind))
    elif finding.kind is Verdict.NOT_JUDGED:
        _child(case, "error", sentence(finding), finding.message, str(finding.kind))
    else:
        _child(case, "system-out", f"{finding.severity}: {title(finding)}: {sentence(finding)}")
    return case


def _case(report: Report, item: Finding | LedgerRow, name: str, kind: str, says: str = "") -> ElementTree.Element:
    """A test case whose names hold no line, so that CI knows it again."""
    group = f"entry {item.entry}" if item.entry else item.path or "the stack"
    values = {"classname": f"stackctl.{report.command}.{group}", "name": f"{name or 'all'} {kind}" + (f": {says}" if says else "")}
    if item.path:
        values["file"] = item.path
    if item.line:
        values["line"] = str(item.line)
    return ElementTree.Element("testcase", {key: _writable(value) for key, value in values.items()})


def _child(case: ElementTree.Element, tag: str, text: str, message: str = "", kind: str = "") -> None:
    values = {key: _writable(value) for key, value in (("message", message), ("type", kind)) if value}
    ElementTree.SubElement(case, tag, values).text = _writable(text)


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
