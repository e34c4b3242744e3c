"""The halves of one file."""

from textwrap import dedent

import pytest

from stackctl.facts.statements import read_facts
from stackctl.trees.source import Source, SourceError


def facts(text):
    return read_facts(Source(dedent(text)))


def said(text):
    return {(f.host, f.kind, f.text) for f in facts(text)}


def test_a_definition_says_its_parts():
    found = said("""
        class A(Base, metaclass=M):
            \"\"\"Words   about
            it.\"\"\"
            @cached
            async def f(self, x: int = 3, *rest, k=None, **more) -> str:
                return x
    """)
    assert {
        ("", "definition", "class A"), ("A", "base", "Base"), ("A", "base", "metaclass=M"), ("A", "docstring", "Words about it."),
        ("A", "definition", "async def f"), ("A.f", "decorator", "@cached"), ("A.f", "parameter", "x"), ("A.f", "default", "x=3"),
        ("A.f", "annotation", "x: int"), ("A.f", "parameter", "*rest"), ("A.f", "default", "k=None"), ("A.f", "parameter", "**more"),
        ("A.f", "annotation", "-> str"), ("A.f", "statement", "return x"),
    } <= found  # fmt: skip


def test_imports_are_one_per_name():
    found = said("import a.b as c, d\nfrom ..x import (y, z as w)\n")
    assert found == {
        ("", "import", "import a.b as c"), ("", "import", "import d"), ("", "import", "from ..x import y"),
        ("", "import", "from ..x import z as w"),
    }  # fmt: skip


def test_literals_are_one_per_element():
    found = {(k, t) for _, k, t in said("T = {'a': 1, **d, 'b': {'c': [1]}}\nL = frozenset({'x', 'y'})\n")}
    assert {
        ("element", "T['a'] = 1"), ("element", "T has **d"), ("element", "T['b'] = {}"), ("element", "T['b']['c'] = []"),
        ("element", "T['b']['c'] has 1"), ("element", "L has 'x'"), ("element", "L has 'y'"), ("statement", "T = {}"),
    } <= found  # fmt: skip


def test_branches_are_the_way_to_a_statement():
    found = {f.text: f.under for f in facts("""
        def f(a):
            if a == 1:
                one()
            elif a == 2:
                two()
            else:
                rest()
            try:
                risky()
            except (E, F) as e:
                caught()
            else:
                fine()
            finally:
                last()
            match a:
                case {"k": v} if v:
                    matched()
    """)}  # fmt: skip
    assert found["one()"] == ("if a == 1",)
    assert found["two()"] == ("if a == 2",)
    assert found["rest()"] == ("else of if a == 1",)
    assert found["risky()"] == ("try",)
    assert found["caught()"] == ("except (E, F) as e",)
    assert found["fine()"] == ("else of try",)
    assert found["last()"] == ("finally",)
    assert found["matched()"] == ("match a", "case {'k': v} if v")


@pytest.mark.parametrize("other", ["x = f( 1,\n   'a' )  # why\n", 'x = (f(1, "a",))\n', "x = \\\n  f(1, 'a')\n"])
def test_formatting_does_not_count(other):
    assert said(other) == said("x = f(1, 'a')\n")


def test_pass_and_ellipsis_are_nothing():
    assert said("class A:\n    pass\n") == said("class A:\n    ...\n")


def test_odd_but_legal():
    assert said("x = 1\ry = 2\r\n") == said("x = 1\ny = 2\n")
    assert ("A", "statement", "k = 1") in said("class A:\n\x0c    k = 1\n")
    assert ("g", "statement", "return 1 if b else 2") in said("def g(b):\n    return 1if b else 2\n")


def test_what_does_not_parse_says_so():
    with pytest.raises(SourceError, match="does not parse"):
        facts("def f(:\n")
