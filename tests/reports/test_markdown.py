"""Markdown: as many rows and cells as were written, whatever the text; under the limit of a job summary."""

from __future__ import annotations

from markdown_it import MarkdownIt

from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Verdict
from stackctl.reports.markdown import render_markdown
from tests.reports import hostile


def cells(text: str) -> list[str]:
    """The text of every cell, as a reader of GitHub's Markdown sees it."""
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(text)
    inside = [token for before, token in zip(tokens, tokens[1:]) if before.type in ("td_open", "th_open")]
    for token in inside:
        assert {child.type for child in token.children} <= {"text", "text_special"}, token.content
    return ["".join(child.content for child in token.children) for token in inside]


def test_hostile_text_stays_in_its_cell() -> None:
    text = render_markdown(hostile.report())
    found = cells(text)
    assert len(found) == 6 + 5 + (6 + 5) * len(hostile.TEXTS)
    assert "</script><script>alert(1)</script>" in found
    assert "`code` ``two`` *bold* _it_ #head ~~gone~~ $x$ \\" in found
    kinds = {token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text)}
    assert not kinds & {"html_block", "fence", "code_block", "bullet_list_open"}


def test_a_summary_fits() -> None:
    noise = [Finding(Verdict.SIBLING, "é" * 1_500, "p.py", n) for n in range(2_000)]
    lost = Finding(Verdict.LOST, "gone", "q.py", 1)
    text = render_markdown(Report("gate", findings=(*noise, lost)))
    assert len(text.encode()) < 1_048_576
    assert text.splitlines()[4].startswith("| error | lost | q.py:1 ")
    assert "more rows do not fit here" in text


def test_a_clean_run() -> None:
    assert render_markdown(Report("gate")) == "## stackctl gate: clean"
