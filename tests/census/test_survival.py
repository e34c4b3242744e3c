"""What becomes of halves: each fault of a merge has its verdict, and a right merge has none."""

import pytest

from tests.census.merging import audit, errors, said, said_in

BASE = """
import os


class Router:
    limit = 3

    def send(self, request):
        return self.post(request)

    def post(self, request):
        if request.ok:
            log(request)
        return 200
"""


def change(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_merge_of_both_changes_is_clean():
    ours = change(BASE, ("return self.post(request)", "code = self.post(request)\n        self.note(code)\n        return code"))
    theirs = change(BASE, ("limit = 3", "limit = 3\n    wait = 1"))
    found = audit(BASE, ours, theirs, change(ours, ("limit = 3", "limit = 3\n    wait = 1")))
    assert said(found) == set()
    assert {str(row.verdict) for row in found.ledger} == {"intact"}


def test_a_lost_call_is_lost_at_its_host():
    ours = change(BASE, ("        return 200", "        note(request)\n        return 200"))
    theirs = change(BASE, ("limit = 3", "limit = 4"))
    assert said(audit(BASE, ours, theirs, theirs)) == {("lost", "Router.post")}


def test_a_lost_definition_is_one_finding():
    ours = BASE + "\n    def note(self, code):\n        self.codes = [code]\n        self.last = code\n"
    theirs = change(BASE, ("limit = 3", "limit = 4"))
    assert said(audit(BASE, ours, theirs, theirs)) == {("lost", "Router.note")}


def test_a_lost_file_is_one_finding():
    ours = {"m.py": BASE, "new.py": "def f():\n    return 1\n\n\ndef g():\n    return f()\n"}
    theirs = {"m.py": change(BASE, ("limit = 3", "limit = 4"))}
    assert said_in(audit({"m.py": BASE}, ours, theirs, theirs)) == {("lost", "new.py", "")}


@pytest.mark.parametrize(
    ("half", "whole", "symbol"),
    [
        ("return step(x)", "return step(x, across=world)", "f"),
        ("def f(x):", "def f(x, world=None):", "f"),
        ("def f(x):", "@traced\ndef f(x):", "f"),
        ("def f(x):", "def f(x: int):", "f"),
        ("class C:", "class C(Base):", "C"),
        ("from a import b", "from a import b, c", ""),
        ('KNOWN = ["a"]', 'KNOWN = ["a", "b"]', ""),
        ('TABLE = {"a": 1}', 'TABLE = {"a": 1, "b": 2}', ""),
        ("    if x:\n        g()", "    if x:\n        g()\n    elif y:\n        h()", "f"),
        ("    g(x)", "    with lock:\n        g(x)", "f"),
    ],
)
def test_every_kind_of_half_is_missed_when_it_is_gone(half, whole, symbol):
    base = f"from a import b\nKNOWN = ['a']\n\n\ndef other():\n    return 1\n\n\n{half}\n"
    base = {
        "return step(x)": "def other():\n    return 1\n\n\ndef f(x):\n    return step(x)\n",
        "def f(x):": "def other():\n    return 1\n\n\ndef f(x):\n    return x\n",
        "class C:": "def other():\n    return 1\n\n\nclass C:\n    k = 1\n",
        "    if x:\n        g()": "def other():\n    return 1\n\n\ndef f(x, y):\n    if x:\n        g()\n",
        "    g(x)": "def other():\n    return 1\n\n\ndef f(x):\n    g(x)\n",
    }.get(half, f"{half}\n\n\ndef other():\n    return 1\n")
    ours, theirs = change(base, (half, whole)), change(base, ("return 1", "return 2"))
    found = audit(base, ours, theirs, theirs)
    assert ("lost", symbol) in said(found)
    assert errors(audit(base, ours, theirs, change(ours, ("return 1", "return 2")))) == []


def test_both_edits_in_one_statement_are_reconciled():
    base = "def f(x):\n    return step(x)\n"
    ours, theirs = change(base, ("(x)\n", "(x, across=w)\n")), change(base, ("step(x)", "step(x, trace=t)"))
    ours = "def f(x):\n    return step(x, across=w)\n"
    found = audit(base, ours, theirs, "def f(x):\n    return step(x, across=w, trace=t)\n")
    assert said(found) == set()
    assert "reconciled" in {str(row.verdict) for row in found.ledger}


def test_one_of_both_edits_in_one_statement_is_lost():
    base = "def f(x):\n    return step(x)\n"
    ours, theirs = "def f(x):\n    return step(x, across=w)\n", "def f(x):\n    return step(x, trace=t)\n"
    assert said(audit(base, ours, theirs, theirs)) == {("lost", "f")}
    assert said(audit(base, ours, theirs, ours)) == {("upstream-lost", "f")}


def test_keeping_ours_where_both_replaced_one_expression_is_a_decision():
    base = "def f(x):\n    return step(size())\n"
    ours, theirs = "def f(x):\n    return step(0)\n", "def f(x):\n    return step(size_of())\n"
    assert errors(audit(base, ours, theirs, ours)) == []


def test_upstream_has_it_too():
    ours = change(BASE, ("limit = 3", "limit = 3\n    wait = 1"))
    found = audit(BASE, ours, ours, ours)
    assert {str(row.verdict) for row in found.ledger} == {"adopted"}


def test_upstream_adopted_a_superset():
    base = "def f(x):\n    return step(x, 1)\n"
    ours, theirs = "def f(x):\n    return step(x=x, n=1)\n", "def f(x):\n    return step(x=x, n=1, start=0)\n"
    found = audit(base, ours, theirs, theirs)
    assert said(found) == set()
    assert {str(row.verdict) for row in found.ledger} == {"adopted"}


def test_upstreams_new_line_is_missed():
    theirs = change(BASE, ("        return 200", "        count(request)\n        return 200"))
    ours = change(BASE, ("limit = 3", "limit = 4"))
    assert said(audit(BASE, ours, theirs, ours)) == {("upstream-lost", "Router.post")}


def test_a_base_line_that_nobody_removed_is_missed():
    ours = change(BASE, ("limit = 3", "limit = 4"))
    merged = change(ours, ("            log(request)\n", "            pass\n"))
    assert said(audit(BASE, ours, BASE, merged)) == {("upstream-lost", "Router.post")}


def test_what_we_removed_is_back():
    ours = change(BASE, ("        if request.ok:\n            log(request)\n", ""))
    theirs = change(BASE, ("limit = 3", "limit = 4"))
    assert said(audit(BASE, ours, theirs, theirs)) == {("resurrected", "Router.post")}


def test_a_line_of_no_side_is_unowned_and_no_error():
    found = audit(BASE, change(BASE, ("limit = 3", "limit = 4")), BASE, change(BASE, ("limit = 3", "limit = 4\n    odd = 1")))
    assert said(found) == {("unowned", "Router")}
    assert errors(found) == []


def test_one_of_two_twins_is_lost():
    base = "def a(d):\n    r = d.get(1)\n    return r\n\n\ndef b(d):\n    r = d.get(1)\n    return r\n"
    ours = base.replace("    return r", "    r = r or d.spare\n    return r")
    merged = change(ours, ("def b(d):\n    r = d.get(1)\n    r = r or d.spare\n", "def b(d):\n    r = d.get(1)\n"))
    assert said(audit(base, ours, base, merged)) == {("lost", "b")}


def test_the_same_statement_in_another_function_is_misplaced():
    base = "def a(d):\n    r = [d]\n    return r\n\n\ndef b(d):\n    r = [d]\n    return r\n"
    ours = base[: base.index("def b")] + "def b(d):\n    r = [d]\n    r.append('synced')\n    return r\n"
    merged = "def a(d):\n    r = [d]\n    r.append('synced')\n    return r\n\n\ndef b(d):\n    r = [d]\n    return r\n"
    assert said(audit(base, ours, base, merged)) == {("misplaced", "a")}


def test_a_statement_under_another_branch_is_misplaced():
    base = "def f(a, b):\n    if a:\n        g()\n    if b:\n        h()\n"
    ours = "def f(a, b):\n    if a:\n        g()\n        mine()\n    if b:\n        h()\n"
    merged = "def f(a, b):\n    if a:\n        g()\n    if b:\n        h()\n        mine()\n"
    assert said(audit(base, ours, base, merged)) == {("misplaced", "f")}


def test_a_branch_that_upstream_put_around_our_line_is_no_fault():
    base = "def f(a):\n    g(a)\n"
    ours = "def f(a):\n    g(a, quick=True)\n"
    theirs = "def f(a):\n    if a:\n        g(a)\n"
    assert errors(audit(base, ours, theirs, "def f(a):\n    if a:\n        g(a, quick=True)\n")) == []


def test_an_edited_header_does_not_misplace_what_is_below():
    base = "def f(v):\n    if v.a:\n        g()\n"
    found = audit(base, base, base, "def f(v):\n    if v.a and g():\n        g()\n")
    assert said(found) == {("unowned", "f")}


def test_both_added_the_same_binding():
    base = "class C:\n    a = 1\n    b = 2\n"
    ours, theirs = "class C:\n    a = 1\n    b = 2\n    c = 3\n", "class C:\n    a = 1\n    c = 3\n    b = 2\n"
    assert ("duplicated", "C") in said(audit(base, ours, theirs, "class C:\n    a = 1\n    c = 3\n    b = 2\n    c = 3\n"))


def test_the_same_text_under_two_new_branches_is_no_duplicate():
    base = "def f(k):\n    if k == 1:\n        x = 1\n"
    ours, theirs = base + "    elif k == 2:\n        x = 1\n", base + "    elif k == 3:\n        x = 1\n"
    merged = base + "    elif k == 3:\n        x = 1\n    elif k == 2:\n        x = 1\n"
    assert errors(audit(base, ours, theirs, merged)) == []


def test_a_lost_docstring_is_a_warning():
    base = "def f():\n    return 1\n"
    ours = 'def f():\n    """Why."""\n    return 1\n'
    found = audit(base, ours, "def f():\n    return 2\n", "def f():\n    return 2\n")
    assert said(found) == {("comment-lost", "f")}


def test_text_files_are_judged_by_lines():
    base, ours, theirs = "one\ntwo\n", "one\ntwo\nours\n", "one\ntwo\ntheirs\n"
    four = [{"notes.txt": text} for text in (base, ours, theirs, theirs)]
    assert said_in(audit(*four)) == {("lost", "notes.txt", "")}
    assert said_in(audit(*four[:3], {"notes.txt": ours})) == {("upstream-lost", "notes.txt", "")}


def test_python_that_does_not_parse_is_judged_by_lines_and_said_so():
    base = "def f(x):\n    return x ?? 1\n"
    ours = base.replace("1", "2")
    whole = audit(base, ours, base, ours)
    assert errors(whole) == []
    assert whole.summary()["judged_by_text"] == ["m.py"]
    assert ("lost", "f") in said(audit(base, ours, base, base))


def test_both_edits_of_one_long_text_are_reconciled():
    base = 'def test():\n    assert out() == (\n        "first line\\n"\n        "second line\\n"\n        "third line\\n"\n        "fourth line\\n"\n    )\n'
    ours, theirs = base.replace("first line", "first new line"), base.replace('        "third line\\n"\n', "")
    assert errors(audit(base, ours, theirs, ours.replace('        "third line\\n"\n', ""))) == []
    assert said(audit(base, ours, theirs, theirs)) == {("lost", "test")}


def test_a_token_that_everybody_kept_must_be_there():
    names = "from lib import step, walk\n\n\n"
    base, ours, merged = (f"{names}def f(a, k):\n    return {call}\n" for call in ("step(a, k=k)", "walk(a, k=k)", "walk(a)"))
    assert said(audit(base, ours, base, merged)) == {("altered", "f")}


def test_what_was_added_to_our_line_while_merging_is_told():
    base, ours, merged = (f"def f(a):\n    return {call}\n" for call in ("step(a)", "step(a, k=1)", "step(a, k=1, odd=2)"))
    found = audit(base, ours, base, merged)
    assert errors(found) == []
    assert said(found) == {("unowned", "f")}


def test_a_pin_that_both_sides_moved():
    base, ours, theirs = ("a==1.0\nb==2\n", "a==1.1\nb==2\n", "a==1.2\nb==2\n")
    four = [{"requirements.txt": text} for text in (base, ours, theirs, theirs)]
    assert errors(audit(*four)) == []
    assert errors(audit(four[0], four[2], four[1], four[1]))


def test_a_token_taken_from_a_line_that_everybody_has():
    base = "def f(x):\n    size: Checked[int, x] = 1\n    drop(int)\n"
    theirs = "def f(x):\n    size: Checked[int, x] = 1\n"
    merged = "def f(x):\n    size: Checked[x] = 1\n"
    assert said(audit(base, base, theirs, merged)) == {("upstream-lost", "f")}


def test_a_bare_star_is_a_half():
    base = "def f(x, *, k):\n    return x\n"
    assert said(audit(base, base, base, "def f(x, k):\n    return x\n")) == {("upstream-lost", "f")}


def test_an_else_that_ours_made_an_elif_holds_what_upstream_edits_below_it():
    base = "def f(a, s):\n    if a:\n        jit()\n    else:\n        run(s)\n"
    ours = "def f(a, s):\n    if a:\n        jit()\n    elif s is not None:\n        run(s)\n    else:\n        slow()\n"
    theirs, merged = base.replace("run(s)", "run(s, 1)"), ours.replace("run(s)", "run(s, 1)")
    assert errors(audit(base, ours, theirs, merged)) == []
