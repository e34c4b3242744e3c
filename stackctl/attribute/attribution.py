"""Compare the runs of two trees: which failures are the merge's, which were there before, which come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stackctl.attribute.runs import Run
from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Verdict
from stackctl.reports.markdown import escape

_BAD = frozenset({"failed", "error"})
THE_MERGES = ("merge", "new")
_SAYS = {
    "merge": "passed on base and fails on merged",
    "new": "is not on base and fails on merged",
    "before": "fails on both",
    "flake": "does not always fail",
    "mended": "failed on base and passes on merged",
    "gone": "passed on base and is not on merged",
}


@dataclass(frozen=True)
class Attributed:
    """One test that is not simply green: a word, and its outcomes on both trees, run by run ("-": it was not there)."""

    test: str
    word: str
    base: tuple[str, ...]
    merged: tuple[str, ...]


def repeated(once: Callable[[], Run], other: Callable[[], Run], times: int) -> tuple[list[Run], list[Run]]:
    """Run both trees; if any test fails on either, run all again: order is often the cause of a flake."""
    base, merged = [once()], [other()]
    for _ in range(times - 1):
        if (
            not any(_BAD & set(run.outcomes.values()) for run in (base[0], merged[0]))
            or base[-1].problem
            or merged[-1].problem
        ):
            break
        base.append(once())
        merged.append(other())
    return base, merged


def attribute(base: Sequence[Run], merged: Sequence[Run]) -> list[Attributed]:
    """A row for each test that is not green on both trees in every run."""
    tests = sorted({test for run in (*base, *merged) for test in run.outcomes})
    rows = [
        _row(test, [run.outcomes.get(test, "-") for run in base], [run.outcomes.get(test, "-") for run in merged])
        for test in tests
    ]
    return [row for row in rows if row.word]


def _row(test: str, base: list[str], merged: list[str]) -> Attributed:
    return Attributed(test, _word(set(base), set(merged)), tuple(base), tuple(merged))


def _word(base: set[str], merged: set[str]) -> str:
    if any(side & _BAD and side - _BAD for side in (base, merged)):
        return "flake"
    if merged & _BAD:
        return "before" if base & _BAD else "new" if base == {"-"} else "merge"
    if base & _BAD:
        return "gone" if merged == {"-"} else "mended"
    return "gone" if merged == {"-"} else ""


def attribution_report(base: Sequence[Run], merged: Sequence[Run], refs: tuple[str, str], selected: bool = True) -> Report:
    """The comparison as a report: what is the merge's is of error level; a run that cannot be judged is not clean.

    `selected` is False where no tests were asked for, but only the definition of done.
    """
    rows = attribute(base, merged)
    findings = [_finding(row) for row in rows if row.word in THE_MERGES]
    for ref, runs in zip(refs, (base, merged), strict=True):
        findings += [
            Finding(Verdict.NOT_JUDGED, f"the tests of {ref} could not be run", evidence=problem)
            for problem in dict.fromkeys(run.problem for run in runs)
            if problem
        ]
    findings += _nothing(base, merged) if selected else []
    summary = {
        "base": refs[0],
        "merged": refs[1],
        "runs": len(merged) if selected else 0,
        "before": [run.figures for run in base] if selected else [],
        "after": [run.figures for run in merged] if selected else [],
        "words": dict(Counter(row.word for row in rows)),
        "tests": [asdict(row) for row in rows],
        "absent": {refs[0]: list(base[0].absent), refs[1]: list(merged[0].absent)},
    }
    return Report("attribute", (), (), tuple(findings), summary)


def _nothing(base: Sequence[Run], merged: Sequence[Run]) -> list[Finding]:
    """A selection that runs nothing has shown nothing: a misspelt path was green."""
    absent = [path for path in base[0].absent if path in merged[0].absent]
    found = [Finding(Verdict.NOT_JUDGED, f"{path} is on neither tree", evidence="the selection names it") for path in absent]
    ran = any(run.outcomes or run.problem for run in (*base, *merged))
    return found or ([] if ran else [Finding(Verdict.NOT_JUDGED, "no test was run", evidence="the selection holds none on either tree")])


def _finding(row: Attributed) -> Finding:
    path, _, name = row.test.partition("::")
    evidence = f"base {', '.join(row.base)}; merged {', '.join(row.merged)}"
    return Finding(
        Verdict.UNDECIDED,
        f"{row.test} {_SAYS[row.word]}",
        path,
        0,
        name.replace("::", "."),
        evidence=evidence,
        action="review",
    )


def render_attribution(report: Report) -> str:
    """The comparison as Markdown, which is plain enough for a terminal."""
    summary = report.summary
    words = ", ".join(f"{count} {word}" for word, count in summary["words"].items())
    unjudged = any(finding.kind is Verdict.NOT_JUDGED for finding in report.findings)
    said = words or ("not judged" if unjudged else "nothing differs" if summary["runs"] else "the definition of done alone")
    lines = [f"## stackctl attribute: {said}", "", *_figures(report)]
    for word, says in _SAYS.items():
        rows = [row for row in summary["tests"] if row["word"] == word]
        lines += ["", f"### {word}: {says} ({len(rows)})", ""] if rows else []
        lines += [
            f"- {escape(row['test'])}: base {', '.join(row['base'])}; merged {', '.join(row['merged'])}" for row in rows
        ]
    if held := summary.get("done"):
        lines += ["", "### definition of done", "", *map(_held, held)]
    return "\n".join(lines)


def _figures(report: Report) -> Iterator[str]:
    summary = report.summary
    if summary["runs"]:
        yield f"- before ({escape(summary['base'])}): {', '.join(summary['before'])}"
        yield f"- after ({escape(summary['merged'])}): {', '.join(summary['after'])}"
    for ref, paths in summary["absent"].items():
        if paths:
            yield f"- not on {escape(ref)}: {escape(', '.join(paths))}"
    for finding in report.findings:
        if finding.kind is Verdict.NOT_JUDGED:
            yield f"- **not judged** {escape(finding.message)}: {escape(finding.evidence)}"


def _held(item: Mapping[str, Any]) -> str:
    figures = f"{item['before']} before, {item['after']} after, must be {item['must']}"
    return f"- **{item['result']}** {escape(item['title'])}: {figures} {escape(item['problem'])}".rstrip()
