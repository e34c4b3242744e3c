"""Scenario files: what is read, and everything that is wrong at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackctl.model.errors import StackctlError
from stackctl.smoke.running import Wish, spec_of, turns
from stackctl.smoke.scenario import find_scenarios, load_scenario
from tests.support import ROOT

CHECKS = ROOT / "checks" / "smoke"
GOOD = """
title = "t"
load = "mixed"
runs = 2
flags = ["--a"]
environment = { X = "1", Y = "1" }
[[arm]]
name = "on"
environment = { X = "2" }
[[arm]]
name = "off"
tree = "released"
[[case]]
name = "one"
flags = ["--b"]
environment = { Y = "3" }
[[case]]
name = "two"
arms = ["on"]
runs = 1
[[claim]]
metric = "m"
arm = "on"
against = "off"
at_most = 0.5
"""


def scenario(tmp_path: Path, text: str):
    path = tmp_path / "s.toml"
    path.write_text(text)
    return load_scenario(path)


def test_the_stacks_own_scenarios_are_in_order():
    found = {path.stem: load_scenario(path) for path in CHECKS.glob("*.toml")}
    assert {"endpoints", "mixed", "ttft", "borrow", "order", "soak"} <= found.keys()
    assert all(len(one.arms) > 1 or one.load == "soak" for one in found.values())
    default = [one.name for one in find_scenarios(CHECKS, ())]
    assert sorted(default) == ["borrow", "endpoints", "mixed", "order", "ttft"]
    for one in found.values():  # a comparison is worth nothing where this may change by itself
        assert one.engines == ("gpu",) or one.environment["SGLANG_PARALLEL_PROMPT_ENCODE"] in "01"


def test_arms_alternate_and_every_second_round_goes_backwards(tmp_path):
    made = [(turn.case.name, turn.arm.name, turn.index) for turn in turns(scenario(tmp_path, GOOD), Wish())]
    assert made == [("one", "on", 1), ("one", "off", 1), ("one", "off", 2), ("one", "on", 2), ("two", "on", 1)]
    again = turns(scenario(tmp_path, GOOD), Wish(), {(made[0][0], made[0][1])})
    first = [index for case, arm, index in made if (case, arm) == made[0][:2]]
    assert [(turn.case.name, turn.arm.name, turn.index) for turn in again] == [(*made[0][:2], len(first) + index) for index in first]
    fewer = turns(scenario(tmp_path, GOOD), Wish(arms=("off",), runs=1))
    assert [(turn.case.name, turn.arm.name) for turn in fewer] == [("one", "off")]
    with pytest.raises(StackctlError, match="no run is left"):
        turns(scenario(tmp_path, GOOD), Wish(cases=("three",)))


def test_the_narrower_setting_wins(tmp_path):
    found = scenario(tmp_path, GOOD)
    on, off = (spec_of(found, turn) for turn in turns(found, Wish(runs=1))[:2])
    assert (on.planted, on.flags, dict(on.environment)) == (True, ("--a", "--b"), {"X": "2", "Y": "3"})
    assert (off.planted, dict(off.environment)) == (False, {"X": "1", "Y": "3"})


def test_every_problem_is_told_at_once(tmp_path):
    broken = GOOD.replace('tree = "released"', 'tree = "other"\nflag = []').replace('arms = ["on"]', 'arms = ["no"]')
    broken = broken.replace('against = "off"\nat_most = 0.5', 'against = "of"').replace('X = "2"', "X = 2").replace("runs = 2", "runs = 0")
    with pytest.raises(StackctlError) as error:
        scenario(tmp_path, broken)
    for words in (
        "unknown key 'flag', did you mean 'flags'?", "not one of planted, released", "case two: no arm 'no'", "no arm 'of'",
        "says nothing", "environment X: a variable is a string", "runs must be at least 1",
    ):  # fmt: skip
        assert words in error.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "title is missing"),
        ("title = 1\nload = 'x'\narm = 3", "arm has the wrong type"),
        ("title = 'a'\nload = 'x'\narm = [1]", "not a table"),
        ("title = 'a'\nload = 'x'\n[[arm]]\nname='a'\n[[arm]]\nname='a'", "arm 'a' is there twice"),
        ("title = 'a'\nload = 'x'\nruns = true\n[[arm]]\nname='a'", "runs has the wrong type"),
        ("title = ", "cannot be read"),
    ],
)
def test_what_is_no_scenario(tmp_path, text, words):
    with pytest.raises(StackctlError, match=words):
        scenario(tmp_path, text)


def test_a_name_that_is_almost_one(tmp_path):
    (tmp_path / "mixed.toml").write_text(GOOD)
    with pytest.raises(StackctlError) as error:
        find_scenarios(tmp_path, ("mixd",))
    assert error.value.hint == "did you mean mixed?"
