"""JUnit XML: well-formed whatever the text, one case a half or finding, red exactly when the run is."""

from __future__ import annotations

from xml.etree import ElementTree

from stackctl.model.report import Finding, LedgerRow, Report
from stackctl.model.verdict import Level, Verdict
from stackctl.reports.junit import render_junit
from tests.reports import hostile


def suite(report: Report) -> ElementTree.Element:
    return ElementTree.fromstring(render_junit(report).encode()).find("testsuite")


def test_hostile_text_stays_text() -> None:
    found = suite(hostile.report())
    assert len(found) == int(found.get("tests")) == 2 * len(hostile.TEXTS)
    assert {child.tag for case in found for child in case} <= {"failure", "error", "skipped", "system-out"}
    assert not list(found.iter("script"))


def test_a_case_for_each_half_and_finding() -> None:
    rows = (
        LedgerRow(Verdict.INTACT, "a.py", "f", 1, "201", "one"),
        LedgerRow(Verdict.LOST, "a.py", "g", 2, "201", "two"),
        LedgerRow(Verdict.LOST, "b.py", "h", 3, "201"),
        LedgerRow(Verdict.NOT_JUDGED, "e.py", "m", 3, "201"),
    )
    findings = (
        Finding(Verdict.LOST, "gone", "a.py", 2, "g", "201", "two"),
        Finding(Verdict.SIBLING, "a twin", "c.py", 9, "k"),
        Finding(Verdict.NOT_JUDGED, "no base"),
        Finding(Verdict.LOST, "known", "d.py", 1, level=Level.NOTE),
    )
    found = suite(Report("gate", (), rows, findings))
    tags = {case.get("name"): [child.tag for child in case] for case in found}
    assert tags == {
        "one intact": ["system-out"],
        "h lost": ["skipped"],
        "m not-judged": ["error"],
        "two lost: gone": ["failure"],
        "k sibling: a twin": ["system-out"],
        "all not-judged: no base": ["error"],
        "d.py lost: known": ["system-out"],
    }
    assert [found.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["7", "1", "2", "1"]


def test_a_clean_run() -> None:
    assert suite(Report("gate")).get("tests") == "0"
