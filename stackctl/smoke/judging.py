"""Verdicts on a scenario's claims: medians and spread of the runs, ratios between arms."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from stackctl.smoke.scenario import Claim, Scenario

PASSED, FAILED, NOT_JUDGED, REPORTED = "passed", "failed", "not-judged", "reported"


@dataclass(frozen=True)
class Spread:
    """A metric over the runs of one arm and case."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]

    def overlaps(self, other: Spread, tolerance: float = 0.0) -> bool:
        """Whether the two ranges meet, each widened by `tolerance` of its median."""
        slack = tolerance * (self.median + other.median)
        return self.low - slack <= other.high and other.low - slack <= self.high


@dataclass(frozen=True)
class RunResult:
    """One run of one arm and case. A run that others disturbed is `quiet` False; its figures are kept and not used."""

    arm: str
    case: str
    index: int
    metrics: dict[str, float]
    problems: tuple[str, ...]
    answers: dict[str, str]
    skipped: dict[str, str]
    foreign_cpu: float
    quiet: bool
    server_cpu_s: float
    seconds: float
    samples: str


@dataclass(frozen=True)
class Judged:
    """What became of one claim on one metric of one case."""

    text: str
    verdict: str
    case: str
    metric: str
    arm: str
    value: float | None = None
    against: str | None = None
    other: float | None = None
    ratio: float | None = None
    why: str = ""


Figures = dict[tuple[str, str, str], Spread]  # by arm, case, metric


def summarize(runs: Iterable[RunResult]) -> Figures:
    """Median and range of every metric over the quiet runs; where none was quiet the metric is missing."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for run in runs:
        if run.quiet:
            for metric, value in run.metrics.items():
                values.setdefault((run.arm, run.case, metric), []).append(value)
    return {key: Spread(statistics.median(found), min(found), max(found), tuple(found)) for key, found in values.items()}


def judge(scenario: Scenario, runs: Sequence[RunResult]) -> list[Judged]:
    """Every claim on every case and metric that it speaks of. A claim that meets no metric is not judged."""
    figures = summarize(runs)
    counts = summarize(_as_quiet(runs))
    judged: list[Judged] = []
    for claim in scenario.claims:
        cases = [case.name for case in scenario.cases if fnmatchcase(case.name, claim.case)]
        for case in cases:
            judged += _judge_case(scenario, claim, case, figures, counts)
    return judged


def _as_quiet(runs: Iterable[RunResult]) -> Iterator[RunResult]:
    """Counts of faults do not get better in a quiet room: for them every run counts."""
    from dataclasses import replace

    return (replace(run, quiet=True) for run in runs)


def _judge_case(scenario: Scenario, claim: Claim, case: str, figures: Figures, counts: Figures) -> Iterator[Judged]:
    source = counts if claim.equals is not None else figures
    known = sorted(metric for arm, of, metric in counts if arm == claim.arm and of == case and fnmatchcase(metric, claim.metric))
    if not known and not claim.report and _is_due(scenario, claim, case):
        yield Judged(_text(claim, claim.metric), NOT_JUDGED, case, claim.metric, claim.arm, against=claim.against, why="no run measured it")
    for metric in known:
        own = source.get((claim.arm, case, metric))
        other = source.get((claim.against or "", case, metric))
        yield _judged(claim, case, metric, own, other)


def _is_due(scenario: Scenario, claim: Claim, case: str) -> bool:
    """Whether both arms run in this case at all."""
    arms = next(one.arms for one in scenario.cases if one.name == case)
    return not arms or all(name in arms for name in (claim.arm, claim.against) if name)


def _judged(claim: Claim, case: str, metric: str, own: Spread | None, other: Spread | None) -> Judged:
    text = _text(claim, metric)
    if own is None or (claim.against and other is None):
        verdict = REPORTED if claim.report else NOT_JUDGED  # what is only told leaves nothing open
        return Judged(text, verdict, case, metric, claim.arm, against=claim.against, why="the machine was never quiet enough")
    ratio = round(own.median / other.median, 4) if other and other.median else None
    verdict, why = _verdict(claim, own, other)
    if claim.report:
        verdict = REPORTED
    return Judged(
        text, verdict, case, metric, claim.arm, own.median, claim.against, other.median if other else None, ratio, why or claim.why,
    )  # fmt: skip


def _verdict(claim: Claim, own: Spread, other: Spread | None) -> tuple[str, str]:
    if claim.equals is not None:
        bad = [value for value in own.values if value != claim.equals]
        return (FAILED, f"{bad[0]:g} in {len(bad)} of {len(own.values)} runs") if bad else (PASSED, "")
    if claim.within_spread and other is not None:
        return (PASSED, "") if own.overlaps(other, claim.tolerance) else (FAILED, f"{_range(own)} and {_range(other)} do not meet")
    scale = 1.0 if other is None else other.median
    if claim.at_most is not None and own.median > max(claim.at_most * scale, claim.floor):
        return _beyond(claim, own, other, own.low <= max(claim.at_most * (other.high if other else 1.0), claim.floor))
    if claim.at_least is not None and own.median < claim.at_least * scale:
        return _beyond(claim, own, other, own.high >= claim.at_least * (other.low if other else 1.0))
    return PASSED, ""


def _beyond(claim: Claim, own: Spread, other: Spread | None, possible: bool) -> tuple[str, str]:
    """A median beyond the limit is a failure, unless the runs differ so much that the limit lies among them."""
    ranges = _range(own) + (f" against {_range(other)}" if other else "")
    return (NOT_JUDGED, f"{ranges}: the runs differ too much to tell") if possible else (FAILED, ranges)


def too_spread(judged: Iterable[Judged]) -> set[tuple[str, str]]:
    """The (case, arm) whose runs differ too much to tell: as many runs more may tell, on a machine whose speed drifts."""
    open_ones = [one for one in judged if one.verdict == NOT_JUDGED and one.value is not None]
    return {(one.case, arm) for one in open_ones for arm in (one.arm, one.against) if arm is not None}


def _range(spread: Spread) -> str:
    return f"{spread.median:g} [{spread.low:g} to {spread.high:g}]"


def _text(claim: Claim, metric: str) -> str:
    """The claim as a sentence."""
    subject = f"{metric} of {claim.arm}"
    times = f" times that of {claim.against}" if claim.against else ""
    if claim.equals is not None:
        return f"{subject} is {claim.equals:g}"
    if claim.within_spread:
        return f"{subject} is within the runs' spread of {claim.against}"
    limits = [f"{word} {limit:g}{times}" for word, limit in (("at most", claim.at_most), ("at least", claim.at_least)) if limit is not None]
    return f"{subject} is {' and '.join(limits)}" if limits else f"{subject}{f' beside {claim.against}' if claim.against else ''}"


def same_answers(scenario: Scenario, runs: Sequence[RunResult]) -> list[str]:
    """Answers that differ between arms, or between runs of one: sentences, each once."""
    problems: list[str] = []
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for run in runs:
        if scenario.arm(run.arm).control:
            continue
        for name, value in run.answers.items():
            arm, known = first.setdefault((run.case, name), (run.arm, value))
            sentence = f"{run.case}: the answer to {name} differs between {arm} and {run.arm}"
            if value != known and sentence not in problems:
                problems.append(sentence)
    return problems


def problems_of(scenario: Scenario, runs: Sequence[RunResult]) -> list[str]:
    """What is wrong in itself, in any arm that is no control."""
    found: list[str] = []
    for run in runs:
        if not scenario.arm(run.arm).control:
            found += [text for text in (f"{run.case}, {run.arm}: {problem}" for problem in run.problems) if text not in found]
    return found


def overall(problems: Sequence[str], judged: Sequence[Judged], ran: bool) -> str:
    """The scenario's verdict: one failure fails it, else one claim that could not be judged leaves it open."""
    if problems or any(one.verdict == FAILED for one in judged):
        return FAILED
    if not ran or any(one.verdict == NOT_JUDGED for one in judged):
        return NOT_JUDGED
    return PASSED
