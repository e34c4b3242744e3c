"""Markdown: as many rows and cells as were written, whatever the text; under the limit of a job summary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Verdict
from stackctl.reports.markdown import escape, render_markdown
from tests.reports import hostile


def cells(text: str) -> list[str]:
    """The text of every cell, as a reader of GitHub's Markdown sees it."""
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(text)
    inside = [token for before, token in zip(tokens, tokens[1:]) if before.type in ("td_open", "th_open")]
    for token in inside:
        assert {child.type for child in token.children} <= {"text", "text_special", "code_inline", "html_inline"}, token.content
        assert {child.content for child in token.children if child.type == "html_inline"} <= {"<!-- -->"}, token.content
    return ["".join(map(shown, token.children)) for token in inside]


def shown(token) -> str:
    """What a reader sees; backticks stand for the look of code."""
    return {"code_inline": f"`{token.content}`", "html_inline": ""}.get(token.type, token.content)


def test_hostile_text_stays_in_its_cell() -> None:
    text = render_markdown(hostile.report())
    found = cells(text)
    assert len(found) == 6 + 5 + (6 + 5) * len(hostile.TEXTS)
    assert "</script><script>alert(1)</script>" in found
    assert "`code` ``two`` *bold* _it_ #head ~~gone~~ $x$ \\" in found
    kinds = {token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text)}
    assert not kinds & {"html_block", "fence", "code_block", "bullet_list_open"}


TEXT = st.text(st.sampled_from(list("`|\\_*@<>&#~$[]()!ab .\n\u202e\x1b")) | st.characters(), max_size=40)


@given(TEXT)
def test_any_text_stays_one_cell_and_is_read_as_it_was(text) -> None:
    """Whatever stands between backticks, bars and backslashes."""
    finding = Finding(Verdict.LOST, text, "a.py", 1)
    (row,) = [found[i : i + 6] for found in [cells(render_markdown(Report("gate", findings=(finding,))))] for i in (6,)]
    plain = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    seen = " ".join(row[4].split())
    assert len(row) == 6 and seen.replace("` `", "``").replace(" ", "") == plain.replace("` `", "``").replace(" ", "")


def test_code_is_code_and_names_are_no_people() -> None:
    text = escape("`self._x` is @ops, see __init__.py and http_server.py")
    assert text == "`self._x` is @<!-- -->ops, see \\_\\_init\\_\\_.py and http_server.py"
    assert escape("a `b|c` d") == "a \\`b\\|c\\` d" and escape("a@b `x") == "a@b \\`x"


def test_a_summary_fits() -> None:
    noise = [Finding(Verdict.SIBLING, "é" * 1_500, "p.py", n) for n in range(2_000)]
    lost = Finding(Verdict.LOST, "gone", "q.py", 1)
    text = render_markdown(Report("gate", findings=(*noise, lost)))
    assert len(text.encode()) < 1_048_576
    assert text.splitlines()[4].startswith("| error | lost | q.py:1 ")
    assert "more rows do not fit here" in text


def test_a_clean_run() -> None:
    assert render_markdown(Report("gate")) == "## stackctl gate: clean"
