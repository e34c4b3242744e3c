"""What text must hold to hold a piece of code: if `holds` says no, no parse would find it."""

from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import inspect
import tarfile
import types
import typing
import unicodedata
from pathlib import Path

import pytest

from stackctl.model.stack import Stack
from stackctl.plants.module import holds, words
from stackctl.plants.view import View
from stackctl.trees.release import Release
from tests.plants.planting import MemoryTree

MODULES = (argparse, ast, asyncio.base_events, inspect, tarfile, typing)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_module_holds_the_words_of_each_of_its_statements(module: types.ModuleType):
    text = inspect.getsource(module)
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    assert len(statements) > 400
    assert [ast.unparse(node) for node in statements if not holds(text, words(ast.unparse(node)))] == []


@pytest.mark.parametrize(("text", "code"), [
    ("f(b=c, *d)", "f(*d, b=c)"),
    ("f(\n    # why not g(x)\n    b,\n)", "f(b)"),
    ("f \\\n (b)", "f(b)"),
    ("(self . a)[(b)]", "self.a[b]"),
    ("x = f('a' 'b', c)", "x = f('ab', c)"),
    ("x = f'{a}' f'{b.c}'", "x = f'{a}{b.c}'"),
    ("if a:\n    b\nelse:\n    if c: d", "if a:\n    b\nelif c:\n    d"),
    ("from a . b import d, c", "from a.b import d, c"),
    ("def f(a, /, b: c = d, *e): g", "def f(a, /, b: c=d, *e):\n    g"),
    ("a\t#é\r\n", "a"),
    ("f(  # b\r  c)", "f(c)"),
])  # fmt: skip
def test_layout_does_not_matter(text: str, code: str):
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(code))
    assert holds(text, words(code))


@pytest.mark.parametrize(("text", "code"), [
    ("f(a)\ng(b)", "f(b)"),
    ("x = 1  # f(b)", "f(b, c)"),
    ("run()\n# later\nother(job)", "run(job)"),
    ("prefix_run(job)", "run(job)"),
    ("import a\nimport b", "import a.b"),
])  # fmt: skip
def test_names_that_stand_apart_are_not_the_code(text: str, code: str):
    assert not holds(text, words(code))


@pytest.mark.parametrize(("data", "lacks"), [
    ("ﬁle(x)".encode(), False),  # a ligature: to Python the name is `file`
    ("# …\nfile(x)".encode(), False),
    ("# …\nfile(y)".encode(), True),
    ("# coding: latin-1\n# \xe9\nfile(x)".encode("latin-1"), False),
    ("# coding: latin-1\n# \xe9\nfile(y)".encode("latin-1"), True),
    (b"# \xe9\nfile(y)", False),  # cannot be decoded: nothing can be said of it
])  # fmt: skip
def test_a_file_lacks_code(data: bytes, lacks: bool):
    view = View(MemoryTree({"m.py": data}), Stack("made up", Path(), ()), Release("0.5.23"))
    assert view.lacks("m.py", words("file(x)")) is lacks
    assert "ﬁle" != unicodedata.normalize("NFKC", "ﬁle") == "file"
