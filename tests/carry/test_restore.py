"""What the audit found lost comes back as it was, and nothing else moves."""

import pytest

from stackctl.carry.restore import restore, restore_audit
from stackctl.carry.transplant import transplant
from tests.census.merging import audit, errors, trees

BASE = '''"""A module."""

import os
from typing import (
    Any,
    List,
)

KNOWN = {
    "a": 1,
    "b": 2,
}


class Router:
    """Sends."""

    limit = 3

    def send(self, request):
        code = self.post(request)   # odd   spacing
        return code

    def post(self, request, tries=2):
        if request.ok:
            log(request)
        return call(
            request,
            tries=tries,
        )


def last(x):
    return x
'''
THEIRS = BASE.replace("limit = 3", "limit = 3\n    wait = 1").replace("def last(x):\n    return x", "def last(x, y=0):\n    return x + y")
EDITS = {
    "statement": ("        return code\n", "        # say so\n        self.note( code )\n        return code\n"),
    "definition": ("    def post(", "    @traced\n    def note(self, code):\n        # why\n        self.last = code\n\n    def post("),
    "keyword": ("            tries=tries,\n", "            tries=tries,\n            across=self.world,\n"),
    "keyword on one line": ("self.post(request)", "self.post(request, tries=5)"),
    "import": ("import os\n", "import os\nimport sys\n"),
    "import of a name": ("    Any,\n", "    Any,\n    Dict,\n"),
    "element": ('    "b": 2,\n', '    "b": 2,\n    # ours\n    "c": 3,\n'),
    "branch": ("            log(request)\n", "            log(request)\n        elif request.late:\n            drop(request)\n"),
    "around": ("            log(request)\n", "            with lock:\n                log(request)\n"),
    "decorator": ("    def send(", "    @timed\n    def send("),
    "parameter": ("tries=2):", "tries=2, world=None):"),
    "base": ("class Router:", "class Router(Base):"),
    "removal": ("    limit = 3\n", ""),
}


@pytest.mark.parametrize("name", EDITS)
def test_it_comes_back_byte_for_byte(name):
    ours = BASE.replace(*EDITS[name])
    whole = THEIRS.replace(*EDITS[name])
    assert ours != BASE and whole != THEIRS
    broken = trees(BASE, ours, THEIRS, THEIRS)
    assert errors(audit(BASE, ours, THEIRS, whole)) == []
    assert restore(broken)["m.py"].decode() == whole


def test_a_whole_file_comes_back():
    new = "def f():\n    return 1\n"
    assert restore(trees({"m.py": BASE}, {"m.py": BASE, "n.py": new}, {"m.py": THEIRS}, {"m.py": THEIRS})) == {"n.py": new.encode()}


def test_upstreams_lost_line_comes_back():
    ours = BASE.replace(*EDITS["statement"])
    merged = THEIRS.replace(*EDITS["statement"]).replace("    wait = 1\n", "")
    assert restore(trees(BASE, ours, THEIRS, merged))["m.py"].decode() == THEIRS.replace(*EDITS["statement"])


def test_both_edits_of_one_line_meet():
    base, ours, theirs = (f"def f(x):\n    return step(x{more})\n" for more in ("", ", across=w", ", trace=t"))
    after = restore(trees(base, ours, theirs, theirs)).get("m.py", b"").decode()
    assert "across=w" in after and "trace=t" in after
    assert errors(audit(base, ours, theirs, after)) == []


def test_newlines_are_kept():
    ours = BASE.replace(*EDITS["statement"])
    four = [text.replace("\n", "\r\n") for text in (BASE, ours, THEIRS, THEIRS)]
    assert restore(trees(*(t.encode() for t in four)))["m.py"].decode() == THEIRS.replace(*EDITS["statement"]).replace("\n", "\r\n")


def test_what_has_no_place_is_left_and_named():
    base = "def f(x):\n    a = 1\n    return a\n\n\ndef g():\n    return 2\n"
    ours = base.replace("    a = 1\n", "    a = 1\n    b = a\n")
    theirs = "def g():\n    return 2\n"
    found = restore_audit(audit(base, ours, theirs, theirs))
    assert found.changes == {}
    assert [(left.path, left.symbol) for left in found.left] == [("m.py", "f")]


def test_a_token_edit_is_carried_over():
    assert list(transplant("f(a, b)", "f(a, b, k=1)", "f(a, c, b)", {0})) == ["f(a, c, b, k=1)"]
    assert list(transplant("f(a)", "f(b)", "g(c)", {0})) == []


def test_the_decorator_of_a_setter_comes_back():
    base = "class A:\n    def g(self):\n        return 1\n"
    more = "\n    @property\n    def x(self):\n        return self._x\n\n    @x.setter\n    def x(self, v):\n        self._x = v\n"
    ours = base + more
    merged = base + more.replace("    @x.setter\n", "")
    assert restore(trees(base, ours, base, merged))["m.py"].decode() == ours


def test_our_branch_stays_last_before_the_else():
    base = "def f(k):\n    if k == 1:\n        one()\n    else:\n        rest()\n"
    ours = base.replace("    else:", "    elif k == 2:\n        mine()\n    else:")
    theirs = base.replace("    else:", "    elif k == 3 and soon:\n        three(k)\n        more()\n    else:")
    whole = theirs.replace("    else:", "    elif k == 2:\n        mine()\n    else:")
    assert restore(trees(base, ours, theirs, theirs))["m.py"].decode() == whole


def test_a_line_of_ours_that_follows_upstreams_renames_is_not_put_back_as_ours_has_it():
    base = "import world\n\n\nclass Layer:\n    def __init__(self, kind):\n        self.size = world.size()\n        self.kind = kind\n"
    ours = base.replace("        self.kind", "        self.copied = self.copy(kind)\n        self.real = world.size()\n        self.kind")
    theirs = base.replace("world.size()", "world.get().size")
    merged = ours.replace("world.size()", "world.get().size")
    harmed = merged.replace("        self.copied = self.copy(kind)\n", "")
    assert restore(trees(base, ours, theirs, harmed))["m.py"].decode() == merged


def test_a_definition_comes_back_above_the_line_that_upstream_changed_below_it():
    """Below upstream's new import it was another order, and without its blank lines another layout (ngram_worker.py)."""
    base = "import os\n\nfrom scores import old_scores\nfrom workers import Worker\n"
    shim = "def rebuild(mask, size):\n    # the kernel is not there yet\n    return plain(mask, size)\n\n\n"
    ours = base.replace("from scores", shim + "from scores")
    theirs = base.replace("import old_scores", "import new_scores")
    merged = ours.replace("import old_scores", "import new_scores")
    harmed = merged.replace(shim, "")
    assert restore(trees(base, ours, theirs, harmed))["m.py"].decode() == merged
