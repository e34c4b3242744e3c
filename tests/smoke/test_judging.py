"""Verdicts: medians, ratios, spread, noise."""

from __future__ import annotations

import pytest

from stackctl.smoke.judging import (
    FAILED,
    NOT_JUDGED,
    PASSED,
    REPORTED,
    judge,
    overall,
    problems_of,
    same_answers,
    summarize,
    too_spread,
)
from stackctl.smoke.scenario import Arm, Claim
from tests.smoke.made_up import run, scenario

TENTH = Claim("p99", "on", against="off", at_most=0.1)


def verdicts(claim: Claim, on: list[float], off: list[float], quiet: bool = True) -> list[str]:
    runs = [run("on", n, p99=value, quiet=quiet) for n, value in enumerate(on)]
    runs += [run("off", n, p99=value, quiet=quiet) for n, value in enumerate(off)]
    return [one.verdict for one in judge(scenario(claim), runs)]


@pytest.mark.parametrize(
    ("claim", "on", "off", "verdict"),
    [
        (TENTH, [9, 10, 30], [100, 110, 90], PASSED),  # the median counts, not the outlier
        (TENTH, [20, 21, 22], [100, 110, 90], FAILED),
        (TENTH, [8, 21, 22], [100, 110, 90], NOT_JUDGED),  # the limit lies among the runs
        (Claim("p99", "on", against="off", at_least=1.0), [5, 5, 5], [6, 6, 6], FAILED),
        (Claim("p99", "on", against="off", at_least=1.0), [5, 5, 7], [6, 6, 6], NOT_JUDGED),
        (Claim("p99", "on", against="off", at_most=0.1, floor=15), [12, 12], [50, 50], PASSED),
        (Claim("p99", "on", equals=0), [0, 0, 1], [], FAILED),  # one fault is a fault, whatever the median says
        (Claim("p99", "on", equals=0), [0, 0, 0], [], PASSED),
        (Claim("p99", "on", at_most=3), [4, 4], [], FAILED),
        (Claim("p99", "on", against="off", within_spread=True), [1, 3], [2, 4], PASSED),
        (Claim("p99", "on", against="off", within_spread=True), [1, 2], [3, 4], FAILED),
        (Claim("p99", "on", against="off", within_spread=True, tolerance=0.1), [10, 11], [12, 13], PASSED),
        (Claim("p99", "on", against="off", within_spread=True, tolerance=0.1), [10, 11], [16, 17], FAILED),
        (Claim("p99", "on", against="off", at_most=0.1, report=True), [50], [50], REPORTED),
        (Claim("p98", "on", equals=0), [1], [1], NOT_JUDGED),  # a claim that meets nothing is not kept
    ],
)
def test_a_claim(claim, on, off, verdict):
    assert verdicts(claim, on, off) == [verdict]


def test_runs_that_differ_too_much_are_made_again_and_no_others():
    open_claim = Claim("p99", "on", against="off", at_least=1.0)
    runs = [run(arm, n, p99=value) for arm, values in {"on": [5, 5, 7], "off": [6, 6, 6]}.items() for n, value in enumerate(values)]
    assert too_spread(judge(scenario(open_claim, Claim("p98", "on", equals=0)), runs)) == {("all", "on"), ("all", "off")}
    runs += [run("on", n, p99=8) for n in (3, 4, 5)] + [run("off", n, p99=6) for n in (3, 4, 5)]
    judged = judge(scenario(open_claim), runs)
    assert [one.verdict for one in judged] == [PASSED] and too_spread(judged) == set()


def test_a_disturbed_run_tells_nothing_of_time_and_everything_of_faults():
    assert verdicts(TENTH, [50], [50], quiet=False) == [NOT_JUDGED]
    assert verdicts(Claim("p99", "on", equals=0), [3], [], quiet=False) == [FAILED]
    assert summarize([run("on", p99=1.0, quiet=False)]) == {}


def test_a_pattern_speaks_of_every_metric():
    runs = [run(arm, gap_chat=value, gap_score=value, other=1) for arm, value in (("on", 1.0), ("off", 20.0))]
    found = judge(scenario(Claim("gap_*", "on", against="off", at_most=0.1)), runs)
    assert [(one.metric, one.verdict, one.ratio) for one in found] == [("gap_chat", PASSED, 0.05), ("gap_score", PASSED, 0.05)]


def test_answers_are_the_same_in_every_arm_but_a_control():
    arms = (Arm("on"), Arm("off"), Arm("broken", control=True))
    runs = [run("on", answers={"chat": "a"}), run("off", answers={"chat": "b"}), run("broken", answers={"chat": "c"}, problems=("bad",))]
    assert same_answers(scenario(arms=arms), runs) == ["all: the answer to chat differs between on and off"]
    assert problems_of(scenario(arms=arms), runs) == []
    assert problems_of(scenario(), [run("on", problems=("p",)), run("on", 2, problems=("p",))]) == ["all, on: p"]


def test_one_failure_outweighs_what_was_not_judged():
    bad, unknown, good = (judge(scenario(Claim("x", "on", equals=0)), [run("on", **m)])[0] for m in ({"x": 1}, {"y": 1}, {"x": 0}))
    assert overall([], [bad, unknown], True) == FAILED
    assert overall([], [good, unknown], True) == NOT_JUDGED
    assert overall([], [good], True) == PASSED
    assert overall(["problem"], [good], True) == FAILED
    assert overall([], [], False) == NOT_JUDGED  # what was not run has not passed
