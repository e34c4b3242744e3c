"""What is outside an edit stays byte for byte: newlines, tabs, form feeds, encodings, comments, odd spacing."""

from __future__ import annotations

import ast
import difflib
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from tests.plants.planting import bed

BEFORE = '''\
"""A module.  "Quoted" and 'quoted'."""

# one comment
from __future__ import annotations

import os
import sys  # two  spaces

from pkg.helpers import off

X = {'a' : 1,
     "b":2}   # odd spacing


def deco(f):
    return f


class A(object):

    # about go
    @deco
    async def go(self, a, b):
        """Doc."""
        x = [ 1,2 ]

        # about the call
        y = self.f(a, b)  # trailing
        if x : y = 1; z = 2

        def inner():
            return self.g( x )
        return y,  inner

    if X:
        def other(self):
            return 'it''s'
    else:
        def other(self): return "no"

    last = 1
# end of file
'''


@dataclass(frozen=True)
class Case:
    """One plant and the lines that it takes from BEFORE and puts there."""

    kind: str
    options: dict[str, Any]
    host: str
    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = field(default=())


CASES = {
    "reroute": Case("reroute", {"call": "self.f", "through": "self._off"}, "pkg.mod:A.go",
                    ("        y = self.f(a, b)  # trailing",), ("        y = await self._off(self.f, a, b)  # trailing",)),
    "argument": Case("argument", {"call": "self.f", "keyword": "k", "value": "1"}, "pkg.mod:A.go",
                     ("        y = self.f(a, b)  # trailing",), ("        y = self.f(a, b, k=1)  # trailing",)),
    "argument in a nested function": Case("argument", {"call": "self.g", "position": 0, "value": "own({value})"}, "pkg.mod:A.go.inner",
                                          ("            return self.g( x )",), ("            return self.g( own(x) )",)),
    "statement after": Case("statement", {"code": "ours()", "after": "y = self.f(a, b)"}, "pkg.mod:A.go", (), ("        ours()",)),
    "statement before": Case("statement", {"code": "ours()", "before": "y = self.f(a, b)"}, "pkg.mod:A.go", (), ("        ours()",)),
    "statement at the end of a module": Case("statement", {"code": "ours()", "end": True}, "pkg.mod:", (), ("ours()",)),
    "definition": Case("definition", {"code": "def ours(self):\n    return 1", "after": "go"}, "pkg.mod:A", (),
                       ("", "    def ours(self):", "        return 1")),
    "definition after a branch": Case("definition", {"code": "def ours(self):\n    return 1", "after": "other"}, "pkg.mod:A", (),
                                      ("", "    def ours(self):", "        return 1")),
    "definition in a module": Case("definition", {"code": "def ours():\n    return 1", "after": "deco"}, "pkg.mod:", (),
                                   ("", "", "def ours():", "    return 1")),
    "property": Case("property", {"name": "tok", "getter": "1", "after": "go"}, "pkg.mod:A", (),
                     ("", "    @property", "    def tok(self):", "        return 1")),
    "import": Case("import", {"code": "import re"}, "pkg.mod:", (), ("import re",)),
    "rename": Case("rename", {"old": "y", "new": "why"}, "pkg.mod:A.go",
                   ("        y = self.f(a, b)  # trailing", "        if x : y = 1; z = 2", "        return y,  inner"),
                   ("        why = self.f(a, b)  # trailing", "        if x : why = 1; z = 2", "        return why,  inner")),
    "tombstone": Case("tombstone", {"code": "x = [1, 2]"}, "pkg.mod:A.go", ("        x = [ 1,2 ]",)),
}  # fmt: skip


def mixed(text: str) -> str:
    """The text with each of Python's three newlines in turn."""
    ends = itertools.cycle(["\n", "\r\n", "\r\n", "\n", "\r"])
    return "".join(line[:-1] + next(ends) for line in text.splitlines(keepends=True))


def odd(text: str) -> str:
    """Form feeds and white space where Python allows them."""
    return text.replace("\nclass A", "\n\x0c\nclass A").replace("\n# end", "\n  \t\n\x0c# end").replace("last = 1", "last = 1 \t")


STYLES = {
    "lf": lambda text: text.encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "cr": lambda text: text.replace("\n", "\r").encode(),
    "mixed": lambda text: mixed(text).encode(),
    "bom": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "tabs": lambda text: text.replace("    ", "\t").encode(),
    "form feeds": lambda text: odd(text).encode(),
    "no newline at the end": lambda text: text.removesuffix("\n").encode(),
    "latin-1": lambda text: f"# -*- coding: latin-1 -*-\n{text}".replace("two  spaces", "d\xe9j\xe0 vu").encode("latin-1"),
    "not ascii": lambda text: text.replace("x = [ 1,2 ]", "x = [ 1,2 ]; s = '\U0001f600\u4e2d'").replace("self.f(a, b)", "self.f(a, b)").encode(),
    "shebang": lambda text: f"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Licence\n{text}".encode(),
}


def rows(data: bytes) -> list[bytes]:
    """Lines with their ends, as Python counts them."""
    return data.replace(b"\r\n", b"\x00").replace(b"\r", b"\x01").replace(b"\x00", b"\r\n\xff").replace(b"\n", b"\n\xff").replace(
        b"\n\xff\xff", b"\n\xff").replace(b"\x01", b"\r\xff").split(b"\xff")  # fmt: skip


def outside(before: bytes, after: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines that went and those that came."""
    old, new = rows(before), rows(after)
    gone, came = [], []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += old[i:j]
            came += new[k:m]
    return gone, came


def bare(lines: list[bytes]) -> list[str]:
    return [line.rstrip(b"\r\n").decode("latin-1").replace("\t", "    ") for line in lines]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", CASES)
def test_only_the_edit_differs(name, style, tmp_path):
    case = CASES[name]
    before = STYLES[style](BEFORE)
    planted = bed(tmp_path, case.kind, case.options, before, case.host, stock=before)
    if style == "not ascii" and name == "tombstone":
        with pytest.raises(Unplantable, match="shares its line"):
            planted.do_plant()
        return
    planted.do_plant()
    after = planted.read()
    gone, came = outside(before, after)
    if style == "no newline at the end" and name == "statement at the end of a module":
        pass  # "last = 1" is followed by a comment line, so it has its newline
    assert Counter(bare(gone)) == Counter(case.gone), came  # which of two empty lines is new, no one can say
    assert Counter(bare(came)) == Counter(case.new)
    _has_the_newlines_around_it(style, came)
    assert planted.judge().verdict is Verdict.INTACT
    planted.do_plant()
    assert planted.read() == after


def _has_the_newlines_around_it(style, came):
    ends = {"crlf": b"\r\n", "bom": b"\r\n", "cr": b"\r"}
    wanted = ends.get(style)
    for line in came:
        assert wanted is None and style != "lf" or line.endswith(wanted or b"\n"), line
        assert wanted != b"\r" or b"\n" not in line


def test_a_file_without_newline_at_its_end_gets_one_only_where_ours_follows(tmp_path):
    planted = bed(tmp_path, "statement", {"code": "ours()", "end": True}, b"import os\r\nx = 1", "pkg.mod:")
    planted.do_plant()
    assert planted.read() == b"import os\r\nx = 1\r\nours()\r\n"


@pytest.mark.parametrize("head", ["#!/usr/bin/python\n", "# coding: latin-1\n# caf\xe9\n", "# Licence\n#\n# more\n"])
@pytest.mark.parametrize("body", ["import sys\n", "x = 1\n", "from __future__ import annotations\nimport sys\n"])
def test_an_import_never_goes_above_what_begins_the_file(head, body, tmp_path):
    planted = bed(tmp_path, "import", {"code": "import os"}, (head + body).encode("latin-1"))
    planted.do_plant()
    data = planted.read()
    assert data.startswith(head.encode("latin-1"))
    assert ast.parse(data).body[-2 if "sys" not in body else 0]
    assert data.index(b"import os") > data.find(b"__future__")


def test_what_only_looks_like_a_comment_is_no_place_for_a_statement(tmp_path):
    text = 'def go():\n    s = """\n    # not a comment"""\n    a()\n'
    planted = bed(tmp_path, "statement", {"code": "ours()", "before": "a()"}, text, "pkg.mod:go")
    planted.do_plant()
    assert planted.read().decode() == text.replace("    a()", "    ours()\n    a()")


def test_a_string_over_lines_is_planted_as_it_is(tmp_path):
    code = 'def ours(self):\n    """Doc\n    goes on."""\n    return """\nfirst\n  second\n"""\n'
    planted = bed(tmp_path, "definition", {"code": code}, "class A:\n    x = 1\n", "pkg.mod:A")
    planted.do_plant()
    assert planted.judge().verdict is Verdict.INTACT
    space: dict[str, Any] = {}
    exec(planted.read(), space)
    assert space["A"]().ours() == "\nfirst\n  second\n"
    assert b"\n        goes on." in planted.read()


ONE_LINERS = [
    ("statement", {"code": "ours()", "after": "a()"}, "def go(): a()\n", "pkg.mod:go"),
    ("statement", {"code": "ours()", "after": "a()"}, "def go():\n    if x: a()\n    b()\n", "pkg.mod:go"),
    ("statement", {"code": "ours()", "after": "a()"}, "def go():\n    a(); b()\n", "pkg.mod:go"),
    ("statement", {"code": "ours()", "before": "b()"}, "def go():\n    a(); b()\n", "pkg.mod:go"),
    ("definition", {"code": "def ours(self):\n    pass"}, "class A: x = 1\n", "pkg.mod:A"),
    ("tombstone", {"code": "a()"}, "def go():\n    a(); b()\n", "pkg.mod:go"),
    ("tombstone", {"code": "b()"}, "def go():\n    a(); b()\n", "pkg.mod:go"),
    ("tombstone", {"code": "a()"}, "def go():\n    if x: a()\n    else: b()\n", "pkg.mod:go"),
    ("tombstone", {"code": "a()"}, "def go():\n    for x in y:\n        a()\n", "pkg.mod:go"),
]


@pytest.mark.parametrize(("kind", "options", "text", "host"), ONE_LINERS)
def test_a_line_that_is_shared_is_refused_and_left(kind, options, text, host, tmp_path):
    refused = bed(tmp_path, kind, options, text, host)
    with pytest.raises(Unplantable):
        refused.do_plant()
    assert refused.view.changes == {}


def test_a_branch_on_one_line_goes_with_its_only_statement(tmp_path):
    planted = bed(tmp_path, "tombstone", {"code": "a()"}, "def go():\n    if x: a()\n    b()\n", "pkg.mod:go")
    with pytest.raises(Unplantable):
        planted.do_plant()


CONDITIONS = [
    "        if self.f(a, b):\n            pass\n",
    "        if a:\n            pass\n        elif self.f(a, b):\n            pass\n        else:\n            pass\n",
    "        while self.f(a, b):\n            break\n",
    "        if x: self.f(a, b)\n",
    "        q = 1; self.f(a, b); r = 2\n",
    "        with self.f(a, b) as z, y:\n            pass\n",
    "        for q in self.f(a, b):\n            pass\n",
    "        z = (self.f(a, b)).attr[0] ** 2\n",
    "        z = self.f(a, b)[0]\n",
    "        z = {**self.f(a, b)}\n",
    "        return f'{self.f(a, b)}'\n",
    "        match self.f(a, b):\n            case 1:\n                pass\n",
    "        z = \\\n            self.f(a, b)\n",
    "        z = self.f(\n            a,  # one\n            b,\n        )\n",
    "        z = self.f(a, b) if self else None\n",
    "        assert self.f(a, b), 'no'\n",
    "        del self.f(a, b)[0]\n",
    "        try:\n            self.f(a, b)\n        except E:\n            pass\n        finally:\n            pass\n",
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("site", CONDITIONS)
@pytest.mark.parametrize(("kind", "options"), [
    ("reroute", {"call": "self.f", "through": "self._off"}), ("argument", {"call": "self.f", "keyword": "k", "value": "[1]"}),
])  # fmt: skip
def test_a_call_in_any_place(kind, options, site, newline, tmp_path):
    """Either planted with nothing else touched, or refused with nothing touched at all."""
    text = f"class A:\n    async def go(self, a, b):\n        pass\n{site}        done()\n".replace("\n", newline)
    planted = bed(tmp_path, kind, options, text, "pkg.mod:A.go")
    try:
        planted.do_plant()
    except Unplantable:
        assert "f'{" in site  # libcst does not look into f-strings
        assert planted.view.changes == {}
        return
    after = planted.read().decode()
    assert planted.judge().verdict is Verdict.INTACT
    assert after.startswith(f"class A:{newline}    async def go(self, a, b):{newline}        pass{newline}")
    assert after.endswith(f"        done(){newline}")
    assert newline == "\n" or after.count("\n") == after.count("\r\n")
    planted.do_plant()
    assert planted.read().decode() == after


# Generated modules: statements of every shape around one site.

NAMES = st.sampled_from(["a", "b", "été", "x1", "self.y", "中"])
SIMPLE = st.sampled_from([
    "pass", "a = 1", "b: int = 2", "x = ( 1,\n  2 )", "s = '''one\n# two\n  three'''", "print('a' 'b')", "a = b; b = a", "del a[0]",
    "assert a, 'été'", "# only a comment", "", "x = [i for i in b]  # why", "\x0c", "return", "lambda: 0", "a += 1 ;", "y = '\\\n'",
])  # fmt: skip
BLOCKS = st.sampled_from(["if a:", "for i in b:", "while a :", "with a as b:", "try:", "async with a:", "def nested(x = 1):", "class C:"])


def _indented(rows_: list[str], by: str) -> list[str]:
    return [by + row for row in rows_]


@st.composite
def suites(draw, depth: int = 0):
    """A suite as rows; a row may hold line breaks of its own (in brackets, in strings)."""
    found: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        if depth < 2 and draw(st.booleans()) and draw(st.booleans()):
            head = draw(BLOCKS)
            found += [head, *_indented([*draw(suites(depth + 1)), "pass"], "    ")]
            if head == "try:":
                found += ["except E as e :", "    pass"]
        else:
            found.append(draw(SIMPLE))
    return found


@st.composite
def modules(draw, site: str):
    """A class with an async method in which `site` stands once, and its newlines."""
    body = [*draw(suites()), site, *draw(suites())]
    if draw(st.booleans()):
        body = ["if a:", *_indented(["pass", *body], "    ")]
    head = draw(st.sampled_from(["", '"""Doc."""\n', "# été\nimport os\n", "import os\n\nimport sys\n", "@deco\n"]))
    text = head + "class A:\n" + "".join(f"{row}\n" for row in _indented(["async def go(self, a):", *_indented([*body, "pass"], "    ")], "    "))
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    newline = draw(st.sampled_from(["\n", "\r\n", "mixed"]))
    return mixed(text) if newline == "mixed" else text.replace("\n", newline)


QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture])
GENERATED = [
    ("reroute", {"call": "self.f", "through": "self._off"}, "y = self.f(a, été)  # site", "pkg.mod:A.go"),
    ("reroute", {"call": "self.f", "through": "self._off"}, "return self.f(a, key = {'中': 1})", "pkg.mod:A.go"),
    ("argument", {"call": "self.f", "position": 0, "value": "own({value})"}, "z = [self.f( a ), 2]", "pkg.mod:A.go"),
    ("statement", {"code": "ours()", "after": "site()"}, "site()  # été", "pkg.mod:A.go"),
    ("statement", {"code": "ours()", "before": "if site:"}, "if site:\n            pass", "pkg.mod:A.go"),
    ("definition", {"code": "def ours(self):\n    return 1\n"}, "site()", "pkg.mod:A"),
    ("import", {"code": "import json"}, "site()", "pkg.mod:"),
    ("rename", {"old": "site", "new": "ours"}, "été = site(site.x)", "pkg.mod:A.go"),
    ("tombstone", {"code": "site()"}, "site()", "pkg.mod:A.go"),
]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(("kind", "options", "site", "host"), GENERATED, ids=[f"{g[0]}-{i}" for i, g in enumerate(GENERATED)])
def test_generated_modules(kind, options, site, host, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bed")

    @QUICK
    @given(modules(site))
    def check(text):
        if not _parses(text):
            return
        before = text.encode()
        planted = bed(folder, kind, options, before, host, stock=before)
        try:
            planted.do_plant()
        except Unplantable as error:
            raise AssertionError(f"refused: {error.message}") from error
        after = planted.read()
        assert planted.judge().verdict is Verdict.INTACT
        gone, came = outside(before, after)
        marks = (b"site", b"self.f", b"pass")
        extra = [line for line in gone if line.strip() and not any(mark in line for mark in marks)]
        if not before.endswith((b"\n", b"\r")):  # the last line got its newline
            extra = [line for line in extra if line + b"\n" not in came and line + b"\r\n" not in came and line + b"\r" not in came]
        assert extra == []
        snapshot = planted.view.snapshot()
        planted.do_plant()
        assert planted.view.snapshot() == snapshot
        if kind in ("definition", "statement", "import"):
            planted.kind.uproot(planted.plant, planted.entry, planted.view)
            restored = planted.read()
            ended = before.endswith((b"\n", b"\r"))
            assert restored == before if ended else restored.rstrip(b"\r\n") == before.rstrip(b"\r\n")

    check()


def test_a_site_inside_another_ends(tmp_path):
    """With stock at hand each rewrite made the other differ from upstream's again, for ever."""
    text = "class A:\n    async def go(self, a):\n        return self.f(self.f(a))\n"
    planted = bed(tmp_path, "reroute", {"call": "self.f", "through": "self._off", "count": 2}, text, "pkg.mod:A.go", stock=text)
    with pytest.raises(Unplantable, match="inside another"):
        planted.do_plant()
