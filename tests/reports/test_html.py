"""The page: no text breaks out of it, and only its own script runs. In Markdown neither."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from stackctl.reports.html import render_html
from stackctl.reports.restart_markdown import code, render_restart_markdown
from tests.reports.made_up import made_up

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "{{sections}} {{policy}}",
    "]](javascript:alert(1)) [x](javascript:alert(1)) ![x](http://example.invalid/x.png)",
    "| a | b |\n|---|---|\n| `` ` ``` |",
    "`` ` ``` <b>",
    "\n\n# head\n\n- [x] done\n<div>",
    "--> <!-- ]]> \u202etxt.exe\u2066 \x1b[31m \x00",
    "&lt;b&gt; &#60;b&#62; &amp;",
    "<https://example.invalid> [r]: http://example.invalid",
    "***b*** ~~s~~ __u__",
]
OWN = {
    "html",
    "head",
    "meta",
    "link",
    "title",
    "style",
    "body",
    "a",
    "header",
    "h1",
    "small",
    "dl",
    "dt",
    "dd",
    "nav",
    "ul",
    "li",
    "div",
    "input",
    "select",
    "option",
    "button",
    "span",
    "main",
    "p",
    "section",
    "h2",
    "h3",
    "label",
    "pre",
    "code",
    "b",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "footer",
    "dialog",
    "kbd",
    "form",
    "script",
}


class Reader(HTMLParser):
    """The tags, their attributes and the texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def shape(page: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(tag, tuple(attributes)) for tag, attributes in Reader(page).tags]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_element_and_no_attribute(text):
    page = render_html(made_up(10, 3, text))
    assert shape(page) == shape(render_html(made_up(10, 3, "plain words")))
    assert {tag for tag, _ in shape(page)} <= OWN
    kept = "".join(char if char.isprintable() else "\ufffd" for char in text)
    assert any(kept in each for each in Reader(page).texts)  # said as it is, not lost


def test_the_page_asks_for_nothing_and_runs_only_its_own_script():
    page = render_html(made_up())
    found = Reader(page)
    policy = next(
        attributes["content"]
        for tag, attributes in found.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert not [
        attributes
        for _, attributes in found.tags
        if "src" in attributes or "style" in attributes or any(name.startswith("on") for name in attributes)
    ]
    assert {attributes["href"][0] for _, attributes in found.tags if "href" in attributes} <= {"#", "d"}
    assert "http" not in "".join(page.split("http-equiv"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_no_markdown(text):
    plain, hostile = (
        MarkdownIt("commonmark")
        .enable("table")
        .enable("strikethrough")
        .parse(render_restart_markdown(made_up(3, 2, each)))
        for each in ("plain", text)
    )
    assert [token.type for token in hostile] == [token.type for token in plain]
    inside = {child.type for token in hostile for child in token.children or ()}
    assert inside <= {"text", "strong_open", "strong_close", "code_inline", "softbreak"}, inside


@pytest.mark.parametrize("text", ["a", "`", "a`b", "``", "` ``", "a\n`b"])
def test_a_code_span_holds(text):
    (token,) = [
        child
        for each in MarkdownIt("commonmark").parse(f"x {code(text)} y")
        for child in each.children or ()
        if child.type == "code_inline"
    ]
    assert token.content.strip() == text.replace("\n", " ").strip()
