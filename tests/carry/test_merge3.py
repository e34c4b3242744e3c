"""Rules that carry a half, and traps that must not: each on a small made-up module."""

from __future__ import annotations

import ast
import textwrap

import pytest

from stackctl.carry.merge3 import ADOPTED, CARRIED, by_lines, compose
from stackctl.carry.world import World


def text(code: str) -> str:
    return textwrap.dedent(code).lstrip("\n")


def merged(base: str, ours: str, theirs: str, **world: object) -> str:
    """The composed text; every half must be settled."""
    made = compose(text(base), text(ours), text(theirs), World(**world))
    assert [half for half in made.halves if not half.settled] == []
    ast.parse(made.text)
    return made.text


def refused(base: str, ours: str, theirs: str) -> list[str]:
    """Why halves wait for a person. Upstream's text must stand untouched."""
    made = compose(text(base), text(ours), text(theirs))
    reasons = [half.evidence for half in made.halves if not half.settled]
    assert reasons
    assert made.text == text(theirs)
    return reasons


FUNCTION = """
def run(x):
    a = first(x)
    return last(a)
"""


def test_what_git_merges_is_taken_as_git_merges_it():
    base = "a = 1\n\n\nb = 2\n\n\nc = 3\n"
    made = compose(base, base.replace("a = 1", "a = 10"), base.replace("c = 3", "c = 30"))
    assert made.text == "a = 10\n\n\nb = 2\n\n\nc = 30\n"
    assert [half.exact for half in made.halves] == [True]


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        pytest.param('L = [\n    "a",\n]\n', 'L = [\n    "a",\n    "ours",\n]\n', 'L = [\n    "a",\n    "theirs",\n]\n',
                     'L = [\n    "a",\n    "theirs",\n    "ours",\n]\n', id="elements"),
        pytest.param('L = {"a", "b"}\n', 'L = {"a", "ours", "b"}\n', 'L = {"a", "theirs", "b"}\n', 'L = {"a", "theirs", "ours", "b"}\n', id="one-line"),
        pytest.param("f(a, k=1)\n", "f(a, k=1, ours=2)\n", "f(a, k=1, theirs=3)\n", "f(a, k=1, theirs=3, ours=2)\n", id="keywords"),
        pytest.param("x = a and b\n", "x = a and b and ours\n", "x = a and c\n", "x = a and c and ours\n", id="operands"),
        pytest.param("x = f(a, g(b))\n", "x = f(ours, g(b))\n", "x = f(a, g(theirs))\n", "x = f(ours, g(theirs))\n", id="expressions"),
        pytest.param('D = {\n    "a": 1,\n}\n', 'D = {\n    "a": 1,\n    "o": 2,\n}\n', 'D = {\n    "a": 1,\n    "t": 3,\n}\n',
                     'D = {\n    "a": 1,\n    "t": 3,\n    "o": 2,\n}\n', id="items"),
        pytest.param("import os\nfrom m import a\n", "import os\nfrom m import a, ours\n", "import os\nfrom m import a, theirs\n",
                     "import os\nfrom m import a, theirs, ours\n", id="imports"),
        pytest.param("from m import a\nfrom n import b\n", "from m import a\nfrom o import c\nfrom n import b\n", "from m import a\n",
                     "from m import a\nfrom o import c\n", id="import-beside-a-removed-one"),
    ],
)  # fmt: skip
def test_both_sides_edit_one_statement(base, ours, theirs, result):
    assert merged(base, ours, theirs) == result


def test_elements_bring_their_comments():
    base, theirs = 'L = [\n    "a",\n]\n', 'L = [\n    "a",\n    "theirs",\n]\n'
    ours = 'L = [\n    "a",\n    # why\n    "ours",\n]\n'
    assert merged(base, ours, theirs) == 'L = [\n    "a",\n    "theirs",\n    # why\n    "ours",\n]\n'


def test_branches_are_a_union_before_the_shared_else():
    base = "if a:\n    x()\nelse:\n    z()\n"
    ours = "if a:\n    x()\nelif ours:\n    o()\nelse:\n    z()\n"
    theirs = "if a:\n    x()\nelif theirs:\n    t()\nelse:\n    z()\n"
    assert merged(base, ours, theirs) == "if a:\n    x()\nelif theirs:\n    t()\nelif ours:\n    o()\nelse:\n    z()\n"


def test_a_branch_with_a_test_that_upstream_put_there_too_is_a_stop():
    base = "if a:\n    x()\nelse:\n    z()\n"
    ours, theirs = (base.replace("else:", f"elif b:\n    {word}()\nelse:") for word in ("ours", "theirs"))
    assert "same test" in refused(base, ours, theirs)[0]


def test_functions_are_a_union_after_upstreams():
    base = "def a():\n    pass\n\n\ndef z():\n    pass\n"
    ours, theirs = (base.replace("def z", f"def {word}():\n    pass\n\n\ndef z") for word in ("ours", "theirs"))
    result = merged(base, ours, theirs)
    assert [node.name for node in ast.parse(result).body] == ["a", "theirs", "ours", "z"]


def test_class_constants_are_a_union():
    base = "class E:\n    A = 1\n    Z = 2\n"
    ours, theirs = (base.replace("    Z", f"    {word} = 3\n    Z") for word in ("OURS", "THEIRS"))
    assert merged(base, ours, theirs) == "class E:\n    A = 1\n    THEIRS = 3\n    OURS = 3\n    Z = 2\n"


def test_statements_on_unrelated_names_are_a_union():
    ours, theirs = (FUNCTION.replace("    return", f"    {word} = g(x)\n    return") for word in ("ours", "theirs"))
    assert "    theirs = g(x)\n    ours = g(x)\n    return" in merged(FUNCTION, ours, theirs)


def test_statements_on_the_same_names_are_a_stop():
    ours = FUNCTION.replace("    return", "    a = ours(a)\n    return")
    theirs = FUNCTION.replace("    return", "    a = theirs(a)\n    return")
    assert refused(FUNCTION, ours, theirs)


def test_a_decorators_keyword_is_set_beside_new_neighbours():
    base = "@jit(dynamic=True)\ndef f():\n    pass\n"
    theirs = "def new():\n    pass\n\n\n" + base
    assert merged(base, base.replace("True)", "True, disable=hip())"), theirs) == theirs.replace(
        "True)", "True, disable=hip())"
    )


def test_upstreams_text_goes_inside_our_wrapper():
    base = "def f(x):\n    y = g(x)\n    return y\n"
    ours = "def f(x):\n    if special:\n        y = mine(x)\n    else:\n        y = g(x)\n    return y\n"
    assert merged(base, ours, base.replace("g(x)", "g(x, new=1)")) == ours.replace("g(x)", "g(x, new=1)")


def test_upstreams_expression_goes_inside_ours():
    base = "def f():\n    rank = get_rank()\n    return rank\n"
    ours = base.replace("get_rank()", "given if given is not None else get_rank()")
    theirs = base.replace("get_rank()", "parallel().rank")
    assert "rank = given if given is not None else parallel().rank" in merged(base, ours, theirs)


def test_a_wrapper_on_both_sides_is_a_decision():
    base = "def f(x):\n    y = g(x)\n    return y\n"
    ours = base.replace("    y = g(x)\n", "    if ours:\n        y = g(x)\n    else:\n        y = 0\n")
    theirs = base.replace("    y = g(x)\n", "    if theirs:\n        y = g(x)\n    else:\n        y = 1\n")
    assert refused(base, ours, theirs)


def test_comments_of_upstream_give_way_to_our_code():
    base = "def f(x):\n    # one\n    y = g(x)\n"
    made = compose(base, base.replace("g(x)", "ours(x)"), base.replace("    # one\n", ""))
    assert made.text == "def f(x):\n    y = ours(x)\n" or "y = ours(x)" in made.text
    assert all(half.settled for half in made.halves)


def test_removed_comments_of_ours_give_way_to_upstreams_code():
    base = "def f(x):\n    # one\n    y = g(x)\n"
    theirs = "def f(x):\n    # one\n    # two\n    y = g(x, 1)\n"
    assert merged(base, base.replace("    # one\n", ""), theirs) == theirs


def test_an_edit_follows_its_statement_within_the_host():
    base = "def f(x):\n    flag = all(x)\n    y = g(x)\n    return y\n"
    theirs = "def f(x):\n    y = g(x)\n    z = h(y)\n    flag = all(x)\n    return z\n"
    assert merged(base, base.replace("all(x)", "all(x[1:])"), theirs) == theirs.replace("all(x)", "all(x[1:])")


def test_a_keyword_follows_its_call_into_a_new_nest():
    base = "def f(q):\n    a = Tower(q, quant=q)\n    b = Other(q, quant=q)\n    return a, b\n"
    theirs = "def f(q):\n    if first:\n        a = Tower(q, quant=q)\n    else:\n        a = None\n    b = Other(q, quant=q)\n    return a, b\n"
    assert merged(base, base.replace("Tower(q, quant=q)", "Tower(q, quant=None)"), theirs) == theirs.replace(
        "Tower(q, quant=q)", "Tower(q, quant=None)"
    )


def test_adoption_is_proven_by_a_superset_of_arguments():
    base = "class A(B):\n    def __init__(self, c, i):\n        super().__init__(c, i)\n"
    ours = base.replace("super().__init__(c, i)", "super().__init__(c, i=i)")
    theirs = base.replace("super().__init__(c, i)", "super().__init__(c=c, i=i, start=0)")
    made = compose(base, ours, theirs)
    assert {half.state for half in made.halves} == {ADOPTED} and made.text == theirs


def test_a_rename_of_upstreams_reaches_our_lines():
    base = "from p import size\n\n\ndef f():\n    a = size()\n    b = 1\n    c = 2\n    return a\n\n\ndef g():\n    return size()\n"
    ours = base.replace("    c = 2\n", "    c = 2\n    ours = size() + 1\n")
    theirs = base.replace("from p import size", "from p import par").replace("size()", "par().size")
    assert "    ours = par().size + 1\n" in merged(base, ours, theirs)


# The traps: a plausible rule that is silently wrong.


def test_t1_a_try_around_an_import_whose_module_changed_is_a_decision():
    base = "import a\nfrom old import f\n"
    ours = "import a\ntry:\n    from old import f\nexcept ImportError:\n    f = None\n"
    assert refused(base, ours, "import a\nfrom new import f\n")


def test_t2_what_upstream_has_behind_a_condition_is_not_adopted():
    base = "def f(self, c):\n    a(c)\n    return b(c)\n"
    ours = base.replace("    return", "    if self.fast:\n        return kernel(c, k=1)\n    return")
    theirs = base.replace("    return", "    if self.gfx95:\n        return kernel(c, k=1)\n    return")
    result = merged(base, ours, theirs)
    assert result.index("self.gfx95") < result.index("self.fast")


def test_t3_equal_candidates_mean_stop():
    base = "def f(x):\n    y = 1\n    z = g(y)\n    return z\n"
    theirs = "def f(x):\n    if x:\n        y = 2\n        z = g(y)\n    else:\n        y = 3\n        z = g(y)\n    return z\n"
    assert "2 statements" in refused(base, base.replace("    z = g(y)", "    z = g(y, 1)"), theirs)[0]


def test_t3_a_twin_in_another_host_is_never_taken():
    base = "def image(x):\n    return cat(x)\n\n\ndef video(x):\n    return cat(x)\n"
    theirs = "def image(x):\n    return cat(x)\n\n\ndef audio(x):\n    return 0\n"
    ours = "def image(x):\n    return cat(x)\n\n\ndef video(x):\n    return cat(x, frames=1)\n"
    assert refused(base, ours, theirs)


def test_t4_an_else_keeps_its_if():
    base = "def f(c, g):\n    if c.vision:\n        a = V(q=q)\n    if c.audio:\n        b = A(q=q)\n"
    ours = base.replace("A(q=q)", "A(q=None)")
    theirs = "def f(c, g):\n    if g.first:\n        if c.vision:\n            a = V(q=q)\n        if c.audio:\n            b = A(q=q)\n    else:\n        a = b = None\n"
    assert merged(base, ours, theirs) == theirs.replace("A(q=q)", "A(q=None)")


def test_t5_a_later_assignment_may_not_shadow_ours():
    base = "def f(x):\n    a = 1\n    c = 2\n    e = 3\n    return a\n"
    ours = base.replace("    c = 2\n", "    m = ours(x)\n    c = 2\n")
    theirs = base.replace("    e = 3\n", "    e = 3\n    m = theirs(x)\n")
    made = compose(base, ours, theirs)
    assert made.text == theirs and not made.halves[0].settled


TWIN = """
def low(q):
    start = 0
    return q[start:]


def high(q):
    big = q
    mid = q
    return low(big)
"""


def test_t6_and_t7_a_parameter_of_both_sides_takes_the_whole_feature_with_it():
    ours = TWIN.replace("def low(q):", "def low(q, window=None, swa=False):").replace(
        "start = 0", "start = window if swa else 0"
    )
    ours = ours.replace("big = q\n", "swa = q.swa\n    big = q\n").replace("low(big)", "low(big, window=q.w, swa=swa)")
    theirs = (
        TWIN.replace("def low(q):", "def low(q, window=-1):")
        .replace("start = 0", "start = window")
        .replace("low(big)", "low(big, window=q.size)")
    )
    reasons = refused(TWIN, ours, theirs)
    assert any("two meanings" in reason for reason in reasons)


def test_t7_one_keyword_with_two_values_is_a_stop():
    assert "both sides decide k=" in refused("f(a, b=1)\n", "f(a, b=1, k=1)\n", "f(a, b=1, k=2)\n")[0]


def test_t10_a_decorator_follows_the_name_when_the_body_is_extracted():
    base = "@jit(dynamic=True)\ndef rope(q):\n    a = q + 1\n    return a\n"
    theirs = "def rope_eager(q):\n    a = q + 1\n    return a\n\n\n@jit(dynamic=True)\ndef rope(q):\n    return rope_eager(q)\n"
    assert merged(base, base.replace("True)", "True, disable=hip())"), theirs) == theirs.replace(
        "True)", "True, disable=hip())"
    )


def test_t11_nothing_is_put_beside_a_removed_anchor():
    base = "class S:\n    def f(self, x):\n        if self.nan and nan(x):\n            x = fix(x)\n        return x\n"
    ours = base.replace("        return x", "        if self.nan and inf(x):\n            x = fix(x)\n        return x")
    theirs = "class S:\n    def f(self, x):\n        return probe(x)\n"
    assert refused(base, ours, theirs)


def test_c3_a_name_that_upstreams_module_lost_takes_its_reader_along():
    base = "from p import size, other\n\n\ndef f():\n    a = 1\n    b = 2\n    return size()\n"
    ours = base.replace("    a = 1\n", "    a = 1 + size()\n")
    theirs = base.replace("from p import size, other", "from p import other").replace("return size()", "return 0")
    made = compose(base, ours, theirs)
    assert made.text == theirs and "size" in made.halves[0].evidence


PARALLEL = "from p.size import size, other\n\n\ndef f():\n    a = 1\n    b = 2\n    return size()\n"
PARALLEL_OURS = PARALLEL.replace("    a = 1\n", "    a = 1 + size()\n")
PARALLEL_THEIRS = PARALLEL.replace("size, other", "other").replace("return size()", "return 0")


def modules(*, now: str, moved: dict[str, str] | None = None) -> World:
    there = {"p.size": now.encode()} if moved is None else {new: now.encode() for new in moved.values()}
    had = {"p.size": b"def size(): ...\ndef other(): ...\n"}
    return World(moved or {}, there.get, had.get, frozenset({"p"}))


def test_an_import_that_upstream_took_out_comes_along_where_its_module_still_has_the_name():
    made = compose(PARALLEL, PARALLEL_OURS, PARALLEL_THEIRS, modules(now="def other(): ...\n\ndef size(): ...\n"))
    assert made.text == PARALLEL_OURS.replace("size, other", "other, size").replace("return size()", "return 0")
    (half,) = made.halves
    assert (half.state, half.exact) == (CARRIED, False)
    assert "`from p.size import size`, which upstream took out of this file, comes along: p.size still has size, at line 3" in half.how


def test_the_import_that_comes_along_is_of_the_module_where_it_is_now():
    world = modules(now="def size(): ...\n", moved={"p.size": "p.new.size"})
    theirs = PARALLEL_THEIRS.replace("from p.size import other\n", "import os\n")
    made = compose(PARALLEL, PARALLEL_OURS, theirs, world)
    assert made.text.startswith("import os\nfrom p.new.size import size\n") and "1 + size()" in made.text


@pytest.mark.parametrize("now", ["# size is gone\ndef other(): ...\n", "def other():\n    size = 1\n", "def size(:\n"])
def test_a_name_that_its_module_does_not_bind_does_not_come_along(now):
    made = compose(PARALLEL, PARALLEL_OURS, PARALLEL_THEIRS, modules(now=now))
    assert made.text == PARALLEL_THEIRS and "size" in made.halves[0].evidence and not made.halves[0].settled


@pytest.mark.parametrize(("all_of", "known"), [("def size(): ...\n", True), ("__all__ = []\ndef size(): ...\n", False)])
def test_a_name_that_its_module_has_by_importing_all_of_another(all_of, known):
    there = {"p.size": b"from p.common import *\n", "p.common": all_of.encode()}
    world = World(read=there.get, had=there.get, packages=frozenset({"p"}))
    assert world.still_has("from p.size import size") == ("p.common still has size, at line 1" if known else "")
    assert compose(PARALLEL, PARALLEL_OURS, PARALLEL_THEIRS, world).halves[0].settled is known


def test_no_import_comes_along_for_what_is_left_out():
    base = PARALLEL.replace("    b = 2\n", "    b = g(2)\n")
    ours = base.replace("    b = g(2)\n", "    t = size()\n    b = g(2, k=t)\n")
    theirs = PARALLEL_THEIRS.replace("    b = 2\n", "    b = g(2, k=3)\n")
    made = compose(base, ours, theirs, modules(now="def size(): ...\n"))
    assert made.text == theirs and not any(half.settled for half in made.halves)


def test_pythons_own_modules_come_along():
    base = "import math\n\n\ndef f(x):\n    a = 1\n    b = 2\n    return math.sin(x)\n"
    theirs = base.replace("import math\n\n\n", "").replace("math.sin(x)", "x")
    made = compose(base, base.replace("a = 1", "a = math.pi"), theirs, modules(now=""))
    assert made.text == "import math\n" + theirs.replace("a = 1", "a = math.pi") and made.halves[0].settled


def test_c8_an_import_that_the_new_release_lacks_is_not_carried():
    there = {"pkg.old": b"def f(): ..."}
    world = World(read=lambda module: None, had=there.get, packages=frozenset({"pkg"}))
    base = "def g():\n    return 1\n"
    made = compose(base, base.replace("    return", "    from pkg.old import f\n    f()\n    return"), base, world)
    assert made.text == base and "no pkg.old.f" in made.halves[0].evidence


def test_moved_modules_are_rewritten_on_our_lines():
    world = World(moved={"pkg.old": "pkg.new.old"})
    assert (
        world.rewritten("def f():\n    from pkg.old import g\n    from pkg.older import h\n")
        == "def f():\n    from pkg.new.old import g\n    from pkg.older import h\n"
    )


def test_both_sides_in_the_same_words_is_adopted():
    base = "a = 1\n"
    made = compose(base, "a = 2\n", "a = 2\n")
    assert made.text == "a = 2\n" and [half.state for half in made.halves] == [ADOPTED]


def test_what_is_not_python_is_merged_by_lines():
    base = "one\ntwo\nthree\nfour\n"
    made = by_lines(base, "ONE\ntwo\nthree\nFOUR\n", "one\ntwo\nthree\nvier\n")
    assert made.text == "ONE\ntwo\nthree\nvier\n" and [half.state for half in made.halves] == [CARRIED, "left out"]


def test_every_half_is_accounted_for():
    ours = TWIN.replace("start = 0", "start = 1").replace("mid = q", "mid = q + 1")
    made = compose(TWIN, ours, TWIN.replace("start = 0", "start = 2"))
    assert sorted(half.settled for half in made.halves) == [False, True]


def test_t8_a_branch_whose_siblings_upstream_changed_is_pointed_out():
    base = "def f(x):\n    if a:\n        y = p(x)\n    elif b:\n        y = q(x)\n    else:\n        y = r(x)\n    return y\n"
    ours = base.replace("    else:", "    elif hip:\n        y = torch(x)\n    else:")
    theirs = base.replace("def f(x)", "def f(x, scale)").replace("p(x)", "p(x, scale)").replace("q(x)", "q(x, scale)")
    made = compose(base, ours, theirs)
    (look,) = [half for half in made.halves if half.state == "look"]
    assert "edited 2 of the branches" in look.evidence and "scale" in look.evidence
    assert "y = torch(x)" in made.text and all(half.settled for half in made.halves)


def test_t12_an_operand_that_went_along_is_pointed_out():
    base = "import os\nok = cuda or musa or npu\n\n\ndef f():\n    pass\n"
    made = compose(base, base.replace("musa or npu", "npu or hip or rdna"), base.replace("pass", "return"))
    assert any("takes `musa` out" in half.evidence for half in made.halves if half.state == "look")


def test_a_binding_that_is_still_read_is_not_taken_out():
    base = "def f(x):\n    kind = x.kind\n    a = 1\n    b = 2\n    return g(kind)\n"
    ours = base.replace("    kind = x.kind\n", "").replace("g(kind)", "g(x)")
    made = compose(base, ours, base.replace("g(kind)", "h(kind, 1)"))
    assert made.text == base.replace("g(kind)", "h(kind, 1)")
    assert not any(half.settled for half in made.halves)
