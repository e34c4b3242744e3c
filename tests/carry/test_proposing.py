"""What a person is asked: a whole text per unit, or upstream's own code; and nothing where neither is there."""

from __future__ import annotations

import ast

import pytest

from stackctl.carry.merge3 import compose
from stackctl.carry.proposing import DROP, PLANT, UNDECIDED, Elsewhere, Similar, proposals
from tests.carry.test_merge3 import text


def asked(base: str, ours: str, theirs: str, elsewhere: Elsewhere | None = None):
    """The proposals, each checked: its unit waits, and what is planted by agreeing parses and settles the unit."""
    base, ours, theirs = map(text, (base, ours, theirs))
    made = compose(base, ours, theirs)
    found = proposals(base, ours, theirs, made, elsewhere=elsewhere)
    for each in found:
        halves = [half for half in made.halves if half.unit == each.unit]
        assert halves and not any(half.settled for half in halves)
        if each.kind == PLANT:
            agreed = compose(base, ours, theirs, ventured=frozenset(half.pair for half in halves))
            ast.parse(agreed.text)
            assert not any(half.pair in {h.pair for h in halves} for half in agreed.halves if not half.settled)
    return made, found


def agreed(base: str, ours: str, theirs: str) -> str:
    """The text with every unit's proposal agreed to."""
    made, found = asked(base, ours, theirs)
    assert {each.kind for each in found} == {PLANT}
    pairs = frozenset(half.pair for half in made.halves if half.unit)
    return compose(text(base), text(ours), text(theirs), ventured=pairs).text


def test_one_keyword_with_two_values_ours_over_upstreams():
    base = "@jit(dynamic=True)\ndef f():\n    pass\n"
    theirs = base.replace("True)", "True, disable=npu())")
    assert agreed(base, base.replace("True)", "True, disable=True)"), theirs) == theirs.replace("npu()", "True")


def test_a_test_that_both_sides_edited_ours_over_upstreams():
    base = "def f(x):\n    if a and b:\n        return fast(x)\n    return slow(x)\n"
    theirs = base.replace("a and b", "a and c and d")
    assert agreed(base, base.replace("a and b", "False"), theirs) == theirs.replace("a and c and d", "False")
    _, (proposal,) = asked(base, base.replace("a and b", "False"), theirs)
    assert "`False` over upstream's `a and c and d` (it was `a and b`)" in proposal.evidence


def test_a_value_of_a_dict_that_both_sides_edited():
    base = "def f(c):\n    return {\n        'a': c.t.a,\n        'b': c.t.b,\n    }\n"
    ours, theirs = base.replace("c.t.a", "mine"), base.replace("c.t.a", "c.a").replace("c.t.b", "c.b")
    assert agreed(base, ours, theirs) == theirs.replace("c.a", "mine")


def test_a_statement_between_neighbours_of_which_one_went_into_a_new_block():
    base = "def f(x):\n    y = g(x)\n    if flag:\n        h(y)\n    return y\n"
    ours = base.replace("    if flag", "    y = y / size\n    if flag")
    theirs = "def f(x):\n    with scope():\n        y = g(x)\n    if fuse:\n        h(y)\n    return y\n"
    assert agreed(base, ours, theirs) == theirs.replace("    if fuse", "    y = y / size\n    if fuse")


def test_a_wrapper_goes_innermost_where_upstream_put_a_condition_around():
    base = "def f(x):\n    y = 1\n    g(x, y)\n    return y\n"
    ours = base.replace("    g(x, y)\n", "    if have:\n        g(x, y)\n    else:\n        mine(x)\n")
    theirs = base.replace("    g(x, y)\n", "    if jit:\n        j(x)\n    else:\n        g(x, y)\n")
    assert agreed(base, ours, theirs) == theirs.replace(
        "        g(x, y)\n", "        if have:\n            g(x, y)\n        else:\n            mine(x)\n"
    )


def test_a_wrapper_around_a_whole_block_that_grew():
    base = "if hip:\n    from m import a\n    from m import b\n\nc = 1\n"
    ours = base.replace("    from m import a\n    from m import b\n", "    try:\n        from m import a\n        from m import b\n    except ImportError:\n        pass\n")
    theirs = base.replace("import a", "import a as _a").replace("import b\n", "import b as _b\n\n    def a(x):\n        return _a(x)\n")
    result = agreed(base, ours, theirs)
    (block,) = ast.parse(result).body[0].body
    assert isinstance(block, ast.Try) and len(block.body) == 3


def test_one_branch_test_with_two_bodies():
    base = "def f(x):\n    y = g(x)\n    return y\n"
    ours = base.replace("    return", "    if not y:\n        return mine(x)\n    return")
    theirs = base.replace("    return", "    if not y:\n        return None\n    return")
    assert agreed(base, ours, theirs) == ours


def test_t1_the_import_and_what_asks_for_it_are_one_unit_and_the_proposal_says_that_it_may_never_fire():
    base = "from old import f\n\n\ndef g(x):\n    if a:\n        h(x)\n    else:\n        f(x)\n    return x\n"
    ours = base.replace("from old import f\n", "try:\n    from old import f\nexcept ImportError:\n    f = None\n")
    ours = ours.replace("    else:\n        f(x)\n", "    elif f is not None:\n        f(x)\n    else:\n        mine(x)\n")
    theirs = base.replace("from old", "from lazy").replace("f(x)\n    return", "f(x, 1)\n    return")
    made, (proposal,) = asked(base, ours, theirs)
    assert made.text == theirs, "without the guard the fallback is dead code: it is left out with it"
    assert len({half.unit for half in made.halves}) == 1
    assert "may never fire" in proposal.evidence and "a test of its own" in proposal.evidence


def test_an_edit_that_git_cuts_into_pieces_is_left_out_whole():
    base = "def g(x):\n    if a:\n        h(x)\n    else:\n        f(\n            x,\n        )\n    return x\n"
    ours = base.replace("    else:\n        f(\n            x,\n        )\n", "    elif b:\n        f(\n            x,\n        )\n    else:\n        one(x)\n        mine(\n            x,\n        )\n        two(x)\n")
    theirs = base.replace("h(x)\n    else:", "h(x)\n    elif b:\n        k(x)\n    else:")
    made, _ = asked(base, ours, theirs)
    assert made.text == theirs and not any(half.settled for half in made.halves)


def test_t5_a_name_that_upstream_now_binds_too_is_never_planted():
    base = "def load(w):\n    a = 1\n    for n in w:\n        p = n\n        put(p)\n    return a\n"
    ours = base.replace("    a = 1\n", "    m = ours_map(w)\n    a = 1\n").replace("        put(p)", "        if m:\n            q(m)\n        put(p)")
    theirs = base.replace("    for n", "    m = their_map(w)\n    for n").replace("put(p)", "put(p, m)")
    made, found = asked(base, ours, theirs)
    assert made.text == theirs
    assert [each.kind for each in found] == [DROP] and "their_map" in found[0].text


def test_t11_a_guard_on_a_flag_that_is_gone_is_not_planted():
    base = "class S:\n    def f(self, x):\n        if self.nan and nan(x):\n            x = fix(x)\n        return x\n\n    def __init__(self, o):\n        self.nan = o\n"
    ours = base.replace("        return x", "        if self.nan and inf(x):\n            x = fix(x)\n        return x")
    theirs = "class S:\n    def f(self, x):\n        probe(x)\n        return x\n\n    def __init__(self, o):\n        self.o = o\n"
    made, (proposal,) = asked(base, ours, theirs)
    assert made.text == text(theirs)
    assert proposal.kind == UNDECIDED and "reads self.nan, which upstream's file no longer has" in proposal.evidence


def test_t3_equal_places_mean_that_nothing_is_planted():
    base = "def f(x):\n    y = 1\n    z = g(y)\n    return z\n"
    theirs = "def f(x):\n    if x:\n        y = 2\n        z = g(y)\n    else:\n        y = 3\n        z = g(y)\n    return z\n"
    _, found = asked(base, base.replace("    z = g(y)", "    z = g(y, 1)"), theirs)
    assert PLANT not in {each.kind for each in found}


def test_a_host_that_is_gone_is_told_with_its_release_and_the_code_most_like_it():
    base = "def f(x):\n    return g(x)\n\n\ndef other(x):\n    return x\n"
    there = Elsewhere(lambda code: Similar(7, "def f2(x): ...", 0.8, "f2", "new.py"), lambda host: "gone since v2")
    _, (proposal,) = asked(base, base.replace("g(x)", "g(x, 1)"), "def other(x):\n    return x + 0\n", there)
    assert "gone since v2" in proposal.evidence and "new.py:7 in f2" in proposal.evidence
    assert proposal.kind == UNDECIDED and "def f2(x): ..." in proposal.text, "what is alike may be where it went"


def test_a_host_that_is_gone_with_nothing_like_it_is_to_be_left_out():
    base = "def f(x):\n    return g(x)\n\n\ndef other(x):\n    return x\n"
    there = Elsewhere(lambda code: None, lambda host: "gone since v2")
    _, (proposal,) = asked(base, base.replace("g(x)", "g(x, 1)"), "TABLE = {1: 2, 3: 4}\n", there)
    assert proposal.kind == DROP and "gone since v2; nothing like it" in proposal.evidence


def test_a_host_that_is_gone_with_what_ours_reads_is_to_be_left_out():
    base = "FLAG = 1\n\n\ndef f(x):\n    alpha = g(x)\n    beta = h(alpha)\n    return beta\n"
    theirs = "def f2(x):\n    alpha = g(x)\n    beta = h(alpha)\n    return beta + 1\n"
    found = Similar(1, theirs.strip(), 0.9, "f2")
    _, (proposal,) = asked(base, base.replace("g(x)", "g(x, FLAG)"), theirs, Elsewhere(lambda code: found))
    assert proposal.kind == DROP and "f2" in proposal.evidence


def test_statements_that_are_merely_alike_are_shown_and_nothing_is_proposed():
    base = "def f(a, n):\n    size = compute(a, n, 1)\n    check(size)\n    return size\n"
    ours = base.replace("compute(a, n, 1)", "compute(a, n, 1, exact=True)")
    theirs = base.replace("    size = compute(a, n, 1)\n", "    if n:\n        size = compute_fast(a, n, 1)\n    else:\n        size = compute_slow(a, n, 1)\n")
    made, (proposal,) = asked(base, ours, theirs)
    assert made.text == text(theirs) and proposal.kind == UNDECIDED and "compute_fast" in proposal.text


def test_that_both_sides_import_a_name_is_no_reason_to_leave_ours_out():
    base = "def f(x):\n    a = 1\n    b = 2\n    return x\n"
    ours = base.replace("    a = 1\n", "    from p.ours import Attention\n    a = Attention(1)\n")
    theirs = base.replace("    b = 2\n", "    from p.theirs import Attention\n    b = Attention(2)\n")
    made, found = asked(base, ours, theirs)
    assert made.text == theirs and {each.kind for each in found} == {UNDECIDED}


def test_with_nothing_to_show_nothing_is_proposed():
    base = "def f(a):\n    alpha(a)\n    beta(a)\n    return a\n"
    theirs = "def f(a):\n    for each in a.items():\n        yield each.one, each.two\n"
    made, found = asked(base, base.replace("beta(a)", "beta(a, a)"), theirs)
    assert not found and any(half.unit for half in made.halves)


@pytest.mark.parametrize("kind", [PLANT, DROP])
def test_another_text_is_another_question(kind):
    from stackctl.carry.proposing import Proposal

    assert Proposal(1, kind, "why", "a").digest == Proposal(2, kind, "else", "a").digest
    assert Proposal(1, kind, "why", "a").digest != Proposal(1, kind, "why", "b").digest


def test_an_import_that_is_not_known_to_work_comes_along_in_a_proposal():
    base = "import torch.fast as F\n\n\ndef f(x):\n    a = 1\n    b = 2\n    return F.relu(x)\n"
    ours = base.replace("a = 1", "a = F.gelu(x)")
    theirs = base.replace("import torch.fast as F\n\n\n", "").replace("F.relu(x)", "x")
    _, (found,) = asked(base, ours, theirs)
    assert found.kind == PLANT and "import torch.fast as F" in found.text
    assert "comes along: whether it can still be imported is not known" in found.evidence
    assert agreed(base, ours, theirs) == "import torch.fast as F\n" + theirs.replace("a = 1", "a = F.gelu(x)")
