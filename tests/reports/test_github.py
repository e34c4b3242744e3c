"""Annotations: ten, the ones that matter first, and no text that forges another command."""

from __future__ import annotations

import re

from stackctl.model.report import Finding, LedgerRow, Report
from stackctl.model.verdict import Level, Verdict
from stackctl.reports.github import render_github
from tests.reports import hostile

# As the runner reads a line: command, properties up to the first ::, data.
COMMAND = re.compile(r"::(error|warning|notice) ([^\n]*?)::(.*)")


def commands(report: Report) -> list[tuple[str, dict[str, str], str]]:
    found = []
    for line in render_github(report).split("\n"):
        match = COMMAND.fullmatch(line)
        assert match, line
        found.append((match[1], dict(pair.split("=", 1) for pair in match[2].split(",")), match[3]))
    return found


def test_an_annotation_on_the_line() -> None:
    lost = Finding(Verdict.LOST, "`f` is not called", "a,b:c.py", 12, "C.f", "201", "convert", "ours has it")
    (first, last) = commands(Report("gate", findings=(lost,)))
    assert first == (
        "error",
        {"file": "a%2Cb%3Ac.py", "line": "12", "title": "lost 201/convert"},
        "C.f: `f` is not called. ours has it. Do: replant.",
    )
    assert last[0] == "notice" and last[2] == "1 error"


def test_the_ten_that_matter_first() -> None:
    noise = [Finding(Verdict.SIBLING, f"m{n}", "p.py", n) for n in range(1, 15)]
    red = [Finding(Verdict.NOT_JUDGED, "no base"), Finding(Verdict.LOST, "x", "z.py", 1), Finding(Verdict.UNPARSABLE, "y", "y.py", 1)]
    found = commands(Report("gate", findings=(*noise, *red)))
    assert [(level, properties["title"]) for level, properties, _ in found[:4]] == [
        ("error", "unparsable"), ("error", "lost"), ("error", "not-judged"), ("warning", "sibling"),
    ]  # fmt: skip
    assert len(found) == 11 and "the first 10 of 17" in found[-1][2]


def test_a_note_is_no_annotation() -> None:
    assert len(commands(Report("gate", findings=(Finding(Verdict.LOST, "x", level=Level.NOTE),)))) == 1


def test_hostile_text_forges_nothing() -> None:
    """What the runner reads back is one command a line, with our properties and no others."""
    for _, properties, data in commands(hostile.report()):
        assert set(properties) <= {"file", "line", "title"}
        assert all(char.isprintable() for char in data)
        assert not re.search(r"[:,]", "".join(properties.values()))


def test_a_half_without_a_verdict_is_red_though_nothing_was_found():
    report = Report("gate", ledger=(LedgerRow(Verdict.NOT_JUDGED, "a.py", "f"),))
    assert commands(report) == [("error", {"title": "stackctl gate"}, "1 not judged")]


def test_plain_text_in_a_log_is_no_command_either():
    """`stackctl verify` as text, in a step of somebody's workflow."""
    from stackctl.reports.text import render_text

    finding = Finding(Verdict.LOST, "m\n::error::x", "::add-mask::x", 1, "\n::error::y", evidence="::error::z", action="::error::w")
    assert not [line for line in render_text(Report("gate", findings=(finding,))).splitlines() if line.lstrip().startswith("::")]
