"""One file's text: what is decoded is encoded to the same bytes, and lines are Python's own."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackctl.trees.source import Source, SourceError

TEXT = st.text(st.sampled_from("ab é中\t\x0c\x0b\x1c\x85\u2028\n\r#'\"\\"), max_size=40)


@given(TEXT, st.booleans())
def test_bytes_come_back(text, bom):
    data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    try:
        source = Source.decode(data)
    except SourceError:
        return
    assert source.encode() == data and "".join(source.lines) == source.text


@given(TEXT)
def test_lines_are_counted_as_python_counts_them(text):
    code = "".join(f"x{index} = 1{end}" for index, end in enumerate(re.findall(r"\r\n|\r|\n", text)))
    source = Source(code)
    assert len(source.lines) == len(ast.parse(code).body)


@pytest.mark.parametrize(("data", "encoding"), [
    (b"# coding: latin-1\nx = '\xe9'\n", "iso-8859-1"), (b"#!x\n# vim: set fileencoding=cp1252 :\n\x80\n", "cp1252"), (b"", "utf-8"),
    (b"# coding: shift_jis\nx = '\x83\x65'\n", "shift_jis"), (b"\xef\xbb\xbf# coding: utf-8\n", "utf-8"),
])  # fmt: skip
def test_encodings(data, encoding):
    source = Source.decode(data)
    assert source.encoding == encoding and source.encode() == data


@pytest.mark.parametrize("data", [
    b"\xff", b"# coding: none\n", b"# coding: utf-7\nx = '+AGE-'\n", b"# coding: unicode_escape\n'\\x41'\n", b"# coding: rot13\n", b"# coding: undefined\n",
    b"\xef\xbb\xbf# coding: latin-1\n", "x".encode("utf-16"),
])  # fmt: skip
def test_what_cannot_be_decoded_or_given_back(data):
    with pytest.raises(SourceError, match="cannot be decoded"):
        Source.decode(data)


@pytest.mark.parametrize(("text", "line"), [("x = 1\ny = (\n", 2), ("x\0", 0), ("(" * 5000, None), ("-" * 100_000 + "1", None), ("if x:\ny", 2)])
def test_what_does_not_parse(text, line):
    with pytest.raises(SourceError, match="does not parse") as caught:
        Source(text).module  # noqa: B018
    assert line is None or caught.value.line == line


@pytest.mark.parametrize(("text", "newline"), [("", "\n"), ("a", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("a\nb\n\r\n", "\n")])
def test_the_newline_of_a_file(text, newline):
    assert Source(text).newline == newline


def test_columns_are_of_characters():
    source = Source("é = 中 + a\n")
    name = source.module.body[0].value.right
    assert source.column(1, name.col_offset) == source.text.index("a")
