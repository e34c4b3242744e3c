"""The baseline: what it excuses, until when, and what is wrong with its own lines."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from stackctl.census.baseline import excuse, load_baseline
from stackctl.model.fingerprint import fingerprint
from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict
from stackctl.plants.manifest import ManifestError

TODAY = datetime.date(2026, 11, 29)
LOST = Finding(Verdict.LOST, "`f` is not called", "a.py", 12, "C.f", "201", "one", "ours has it")
TWIN = Finding(Verdict.LOST, "`g` is not called", "a.py", 13, "C.f", "201", "two")
LINE = '[[known]]\nkind = "lost"\npath = "a.py"\nsymbol = "C.f"\nreason = "why"\nexpires = 2026-11-29\n'


def baseline(folder: Path, text: str):
    path = folder / "baseline.toml"
    path.write_text(text)
    return load_baseline(path)


def told(folder: Path, text: str, *findings: Finding, today: datetime.date = TODAY) -> list[tuple[str, Level, int]]:
    return [(str(f.kind), f.severity, f.line) for f in excuse(findings, baseline(folder, text), "b.toml", today)]


def test_it_excuses_up_to_its_day(tmp_path):
    assert told(tmp_path, LINE, LOST) == [("lost", Level.NOTE, 12)]
    assert told(tmp_path, LINE, LOST, today=TODAY + datetime.timedelta(1)) == [
        ("lost", Level.ERROR, 12), ("stale-baseline", Level.ERROR, 1),
    ]  # fmt: skip


def test_the_reason_is_told(tmp_path):
    (finding,) = excuse([LOST], baseline(tmp_path, LINE), "b.toml", TODAY)
    assert finding.evidence == "ours has it; known until 2026-11-29: why"


def test_a_fingerprint_excuses_one_of_two(tmp_path):
    text = f'[[known]]\nfingerprint = "{fingerprint(TWIN)}:1"\nreason = "why"\nexpires = 2027-01-01\n'
    assert told(tmp_path, text, LOST, TWIN) == [("lost", Level.ERROR, 12), ("lost", Level.NOTE, 13)]


@pytest.mark.parametrize("change", [('"lost"', '"altered"'), ("a.py", "b.py"), ("C.f", "C")])
def test_another_finding_is_not_excused(tmp_path, change):
    assert told(tmp_path, LINE.replace(*change), LOST) == [("lost", Level.ERROR, 12), ("stale-baseline", Level.WARNING, 1)]


def test_nothing_is_called_unused_where_something_was_not_judged(tmp_path):
    unjudged = Finding(Verdict.NOT_JUDGED, "no base")
    assert told(tmp_path, LINE, unjudged) == [("not-judged", Level.WARNING, 0)]


@pytest.mark.parametrize(("text", "line", "message"), [
    (LINE.replace('reason = "why"\n', ""), 1, "reason is missing"),
    (LINE.replace('"why"', '""'), 1, "reason is missing"),
    (LINE + "\n" + LINE.replace("expires = 2026-11-29\n", ""), 8, "expires is missing"),
    (LINE.replace("2026-11-29", '"soon"'), 1, "expires must be a date"),
    (LINE.replace("2026-11-29", "2026-11-29T10:00:00"), 1, "expires must be a date"),
    (LINE.replace("symbol", "symbl"), 1, "did you mean 'symbol'?"),
    (LINE.replace('path = "a.py"\n', ""), 1, "name the finding"),
    (LINE.replace('"lost"', '"losst"'), 1, "'losst' is not a verdict"),
    (LINE.replace('"lost"', '"not-judged"'), 1, "'not-judged' is not a verdict that can be excused"),
    ("known = 3\n", 1, "known must be a list"),
    ("known = [3]\n", 1, "unknown key"),
    ("[[known]]\nkind = \n", 2, "is not TOML"),
    ("[[knwon]]\n", 1, "did you mean 'known'?"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, line, message):
    with pytest.raises(ManifestError) as error:
        baseline(tmp_path, text)
    problem = error.value.problems[0]
    assert problem.path == tmp_path / "baseline.toml" and problem.line == line and message in str(error.value)


def test_every_problem_at_once(tmp_path):
    with pytest.raises(ManifestError) as error:
        baseline(tmp_path, LINE.replace("reason", "raeson") + "\n" + LINE.replace("lost", "x"))
    assert len(error.value.problems) == 3
