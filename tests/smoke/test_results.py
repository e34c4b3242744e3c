"""The record of a run: its schema, reading it again, two beside each other, plots."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest

from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Exit
from stackctl.reports.smoke import read_smoke
from stackctl.smoke import plots, results
from stackctl.smoke.compare import compare_folders
from stackctl.smoke.report import exit_code, summary
from stackctl.smoke.scenario import Claim
from tests.smoke.made_up import record, run, scenario

CLAIM = Claim("p99", "on", against="off", at_most=0.5)


def good(on: float = 1.0, off: float = 4.0):
    return record(scenario(CLAIM), [run(arm, n, p99=value + n / 10) for n in (1, 2, 3) for arm, value in (("on", on), ("off", off))])


def valid(result) -> bool:
    return jsonschema.Draft202012Validator(results.schema()).is_valid(result)


def test_the_schema_is_one_and_a_result_keeps_to_it():
    jsonschema.Draft202012Validator.check_schema(results.schema())
    jsonschema.validate(good(), results.schema())
    jsonschema.validate(good(on=9.0), results.schema())
    jsonschema.validate(record(scenario(CLAIM), []), results.schema())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.pop("hardware"),
        lambda r: r.update(extra=1),
        lambda r: r["runs"][0].pop("foreign_cpu"),
        lambda r: r["runs"][0]["metrics"].update(p99="fast"),
        lambda r: r.update(problems=["but it passed"]),  # a verdict that its own grounds belie
        lambda r: r.update(verdict="failed"),
        lambda r: r.update(runs=[]),
        lambda r: r["claims"][0].update(verdict="failed"),
        lambda r: r.update(started="yesterday"),
    ],
)
def test_what_is_no_result(spoil):
    result = copy.deepcopy(good())
    assert valid(result)
    spoil(result)
    assert not valid(result)


def test_reports_read_the_folder(tmp_path):
    results.write(tmp_path / "good", good())
    results.write(tmp_path / "bad", good(on=9.0))
    results.write(tmp_path / "none", record(scenario(CLAIM), []))
    words = {name: word for name, word, _ in read_smoke(tmp_path)}
    assert words == {"good/result.json": "passed", "bad/result.json": "failed", "none/result.json": "not-judged"}
    assert [one["verdict"] for one in results.read(tmp_path)] == ["failed", "passed", "not-judged"]
    with pytest.raises(StackctlError, match="holds no result"):
        results.read(tmp_path / "elsewhere")
    (tmp_path / "good" / results.RESULT).write_text("[]")
    with pytest.raises(StackctlError, match="is not a result"):
        results.read(tmp_path / "good")


def test_exit_codes_and_the_summary(tmp_path):
    done = [good(), good(on=9.0), record(scenario(CLAIM), [])]
    assert [exit_code(done[:1]), exit_code(done), exit_code([done[0], done[2]])] == [Exit.CLEAN, Exit.FINDINGS, Exit.NOT_JUDGED]
    text = summary(done[:2], tmp_path)
    assert "ok all: p99 of on is at most 0.5 times that of off: 1.2 against 4.2, 0.286 times" in text
    assert "NO all: p99 of on" in text and "smoke: failed" in text


def test_compare_tells_what_differs_by_more_than_the_spread(tmp_path):
    for name, on in (("left", 1.0), ("right", 3.0)):
        results.write(tmp_path / name, good(on=on))
    table = compare_folders(tmp_path / "left", tmp_path / "right")
    rows = [re.split(r"  +", line) for line in table.splitlines() if line.startswith("made-up")]
    assert rows == [["made-up", "all", "p99", "on", "1.2 [1.1 to 1.3]", "3.2 [3.1 to 3.3]", "2.67", "differs"]]
    assert "1 of 2 figures differ" in table
    assert len(compare_folders(tmp_path / "left", tmp_path / "right", everything=True).splitlines()) == len(table.splitlines()) + 1
    other = good() | {"scenario": "another"}
    results.write(tmp_path / "other", other)
    with pytest.raises(StackctlError, match="no figure in common"):
        compare_folders(tmp_path / "left", tmp_path / "other")


def test_plots_are_svg_for_light_and_dark(tmp_path):
    runs = [run(arm, n, p99=value) for n in (1, 2) for arm, value in (("on", 1.0), ("off", 90.0))]
    assert plots.draw(scenario(CLAIM, plots=("p9*", "nothing")), runs, tmp_path) == ["plots/p9all.svg"]
    svg = (tmp_path / "plots" / "p9all.svg").read_text()
    ElementTree.fromstring(svg)  # well-formed
    assert "prefers-color-scheme:dark" in svg and ">off<" in svg
    # every dark rule meets something that is drawn, and no ink is drawn in black that no rule knows
    for kind, colour in re.findall(r'\[style\*="(\w+): (#\w+)"\]', svg):
        if (kind, colour) != ("fill", plots.LINE):
            assert f"{kind}: {colour}" in svg.partition("</style>")[2]
    assert not re.search(r"(fill|stroke): (#000000|black)", svg)
