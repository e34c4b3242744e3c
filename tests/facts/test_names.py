"""What a module binds and uses."""

from textwrap import dedent

import pytest

from stackctl.facts.binding import read_names
from stackctl.facts.names import ModuleNames
from stackctl.trees.source import Source


def names(text) -> ModuleNames:
    return read_names(Source(dedent(text)))


@pytest.mark.parametrize(
    "text",
    [
        "def f(a, *b, c=1, **d):\n    return a, b, c, d\n",
        "x = [y for y in range(3) if y]\n",
        "def f():\n    def g():\n        return z\n    z = 1\n    return g\n",
        "def f():\n    global late\n    late = 1\n\ndef g():\n    return late\n",
        "try:\n    pass\nexcept E as e:\n    print(e)\nE = Exception\n",
        "if (n := 1):\n    print(n)\n",
        "def f(x):\n    return [m for y in x if (m := y)] + [m]\n",
        "class A:\n    k = 1\n    j = k\n",
        "match 1:\n    case [a, *b] | {'k': a, **b}:\n        print(a, b)\n",
        "import os.path\nprint(os.path)\n",
        "f = lambda a, *b: (a, b)\n",
        "with open('x') as fh:\n    print(fh)\n",
        "def f():\n    import m\n    return m.x\n",
    ],
)
def test_every_name_is_bound(text):
    import builtins

    assert [use.text for use in names(text).unbound if not hasattr(builtins, use.text)] == []


def test_a_name_that_nothing_binds():
    found = names("def f(a):\n    return a + b\n\nclass A:\n    k = 1\n    def m(self):\n        return k\n").unbound
    assert [(use.host, use.text) for use in found] == [("f", "b"), ("A.m", "k")]


def test_self_and_parameters():
    found = names("""
        class A:
            def f(self, x):
                self.a = x.one.two
                return self.b.c
    """)
    assert [use.text for use in found.self_sets] == ["a"]
    assert {use.text for use in found.self_reads} == {"b.c", "b"} or {use.text for use in found.self_reads} == {"b.c"}
    assert "one.two" in found.reads["A.f"]["x"]


def test_calls_and_patches():
    found = names("""
        import m
        from unittest import mock

        def t(monkeypatch):
            m.step(1, k=2, *a)
            mock.patch("pkg.mod.name")
            mock.patch.object(m, "attr")
            monkeypatch.setattr("pkg.other.thing", 1)
            m.direct = 1
    """)
    call = next(call for call in found.calls if call.callee == "m.step")
    assert (call.positional, call.keywords, call.open, call.bare) == (2, ("k",), True, True)
    assert {(p.target, p.name, p.quoted) for p in found.patches} == {
        ("pkg.mod", "name", True), ("m", "attr", False), ("pkg.other", "thing", True), ("m", "direct", False),
    }  # fmt: skip


def test_packed_and_unpacked_is_the_same():
    import marshal

    found = names("import a\n\nclass A(B):\n    x = 1\n    def f(self, y=1):\n        return self.x + y.z + a.b('--opt')\n")
    assert ModuleNames.unpack(marshal.loads(marshal.dumps(found.pack()))) == found
