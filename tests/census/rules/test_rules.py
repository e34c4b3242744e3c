"""What no longer fits in the merged tree: one broken example a rule, and the whole one beside it."""

import pytest

from tests.census.merging import audit, errors, said_in


def pair(base, ours, theirs, merged, whole=None):
    """The findings on a broken merge; the controls, and the whole merge if given, must be clean."""
    assert errors(audit(base, ours, base, ours)) == []
    assert errors(audit(base, base, theirs, theirs)) == []
    if whole is not None:
        assert errors(audit(base, ours, theirs, whole)) == []
    return said_in(audit(base, ours, theirs, merged))


def test_a_module_that_moved_is_imported_under_its_old_name():
    base = {"pkg/__init__.py": "", "pkg/old.py": "def f():\n    return 1\n"}
    ours = {**base, "pkg/mine.py": "def g():\n    from pkg.old import f\n    return f()\n"}
    theirs = {"pkg/__init__.py": "", "pkg/new.py": base["pkg/old.py"]}
    merged = {**theirs, "pkg/mine.py": ours["pkg/mine.py"]}
    whole = {**theirs, "pkg/mine.py": ours["pkg/mine.py"].replace("old", "new")}
    assert pair(base, ours, theirs, merged, whole) == {("unresolved", "pkg/mine.py", "g")}


def test_a_name_that_left_a_module():
    base = {"a.py": "def f():\n    return 1\n"}
    ours = {**base, "b.py": "from a import f\nx = f()\n"}
    theirs = {"a.py": "def g():\n    return 1\n"}
    assert pair(base, ours, theirs, {**theirs, "b.py": ours["b.py"]}) == {("unresolved", "b.py", "")}


def test_what_the_fork_broke_itself_is_not_the_merges_doing():
    base = {"a.py": "def f():\n    return 1\n", "b.py": "from a import f\nx = f()\n"}
    ours = {**base, "a.py": "def _f():\n    return 1\n"}
    theirs = {**base, "c.py": "y = 1\n"}
    assert errors(audit(base, ours, theirs, {**ours, "c.py": "y = 1\n"})) == []


def test_a_use_whose_import_went():
    base = "import json\nimport os\n\n\ndef f():\n    return json.dumps(1)\n\n\ndef g():\n    return os.sep\n"
    ours = base + "\n\ndef h():\n    return json.loads('1')\n"
    theirs = base.replace("import json\n", "").replace("json.dumps(1)", "'1'")
    merged = theirs + "\n\ndef h():\n    return json.loads('1')\n"
    assert pair(base, ours, theirs, merged) == {("unresolved", "m.py", "h")}


def test_an_attribute_of_a_module():
    base = {"tools.py": "def old():\n    return 1\n", "m.py": "import tools\n"}
    ours = {**base, "m.py": "import tools\n\n\ndef f():\n    return tools.old()\n"}
    theirs = {**base, "tools.py": "def new():\n    return 1\n"}
    merged = {**ours, "tools.py": theirs["tools.py"]}
    assert pair(base, ours, theirs, merged) == {("unresolved", "m.py", "f")}


@pytest.mark.parametrize(
    "patch",
    [
        "with mock.patch.object(moe, 'get_group', None):\n        assert moe",
        "with mock.patch('moe.get_group', None):\n        assert moe",
        "monkeypatch.setattr(moe, 'get_group', None)",
    ],
)
def test_a_patch_target_that_is_gone(patch):
    base = {"groups.py": "def get_group():\n    return 1\n", "moe.py": "from groups import get_group\n\n\ndef pad():\n    return get_group()\n"}
    test = f"from unittest import mock\nimport moe\n\n\ndef test_pad(monkeypatch):\n    {patch}\n"
    ours = {**base, "test_m.py": test}
    theirs = {**base, "moe.py": "import groups\n\n\ndef pad():\n    return groups.get_group()\n"}
    assert pair(base, ours, theirs, {**theirs, "test_m.py": test}) == {("unresolved", "test_m.py", "test_pad")}


def test_an_attribute_that_moved_off_self():
    base = "class R:\n    def __init__(self, a):\n        self.size = a.size\n\n    def run(self):\n        return 1\n"
    ours = base + "\n    def mine(self):\n        return self.size\n"
    theirs = base.replace("self.size = a.size", "self.ps = a")
    merged = theirs + "\n    def mine(self):\n        return self.size\n"
    assert pair(base, ours, theirs, merged) == {("unresolved", "m.py", "R.mine")}


def test_a_parent_that_reads_what_the_child_never_sets():
    base = {"parent.py": "class Parent:\n    def __init__(self):\n        self.head = 1\n\n    def go(self):\n        return self.head\n"}
    child = "from parent import Parent\n\n\nclass Child(Parent):\n    def __init__(self):\n        self.head = 2\n"
    theirs = {"parent.py": base["parent.py"].replace("self.head = 1", "self.head = 1\n        self.tied = 0").replace("return self.head", "return self.head + self.tied")}
    assert pair(base, {**base, "child.py": child}, theirs, {**theirs, "child.py": child}) == {("unresolved", "child.py", "Child")}
    calls = child.replace("self.head = 2", "super().__init__()\n        self.head = 2")
    assert errors(audit(base, {**base, "child.py": calls}, theirs, {**theirs, "child.py": calls})) == []


def test_a_call_of_what_upstream_changed():
    base = {"lib.py": "def step(x):\n    return x\n"}
    ours = {**base, "m.py": "from lib import step\n\n\ndef f():\n    return step(1)\n"}
    theirs = {"lib.py": "def step(x, group):\n    return x\n"}
    whole = {**theirs, "m.py": ours["m.py"].replace("step(1)", "step(1, None)")}
    assert pair(base, ours, theirs, {**theirs, "m.py": ours["m.py"]}, whole) == {("signature", "m.py", "f")}


def test_upstreams_call_of_what_we_changed():
    base = {"lib.py": "def step(x, y):\n    return x\n", "m.py": "from lib import step\n"}
    ours = {**base, "lib.py": "def step(x):\n    return x\n"}
    theirs = {**base, "m.py": "from lib import step\n\n\ndef f():\n    return step(1, 2)\n"}
    assert pair(base, ours, theirs, {**theirs, "lib.py": ours["lib.py"]}) == {("signature", "m.py", "f")}


def test_an_override_that_its_caller_outgrew():
    base = {"back.py": "class Back:\n    def replay(self, n):\n        return self._meta(n)\n\n    def _meta(self, n):\n        return n\n"}
    dev = "from back import Back\n\n\nclass Dev(Back):\n    def _meta(self, n):\n        return 2\n"
    theirs = {"back.py": base["back.py"].replace("self._meta(n)", "self._meta(n, capture=True)").replace("_meta(self, n)", "_meta(self, n, capture=False)")}
    assert pair(base, {**base, "dev.py": dev}, theirs, {**theirs, "dev.py": dev}) == {("signature", "dev.py", "Dev._meta")}


def test_an_override_of_nothing():
    base = "class Edit:\n    def can(self, t):\n        return t\n\n    def go(self, t):\n        return self.can(t)\n"
    ours = base + "\n\nclass Dev(Edit):\n    def can(self, t):\n        return not t\n"
    theirs = "def can(t):\n    return t\n\n\nclass Edit:\n    def go(self, t):\n        return can(t)\n"
    merged = theirs + "\n\nclass Dev(Edit):\n    def can(self, t):\n        return not t\n"
    assert ("host-gone", "m.py", "Dev.can") in pair(base, ours, theirs, merged)


@pytest.mark.parametrize(
    "test",
    [
        "def test_f():\n    assert f(SimpleNamespace(a=1))\n",
        "def test_f():\n    fake = SimpleNamespace(a=1)\n    assert f(fake)\n",
        "def test_f():\n    fakes = {n: SimpleNamespace(a=n) for n in (1, 2)}\n    assert f(fakes[1])\n",
        "class Fake:\n    def __init__(self):\n        self.a = 1\n\n\ndef test_f():\n    assert f(Fake())\n",
    ],
)
def test_a_stand_in_that_fell_behind(test):
    base = {"lib.py": "def f(x):\n    return x.a\n"}
    test = "from types import SimpleNamespace\nfrom lib import f\n\n\n" + test
    theirs = {"lib.py": "def f(x):\n    return x.a + x.b\n"}
    found = pair(base, {**base, "test_m.py": test}, theirs, {**theirs, "test_m.py": test})
    assert found == {("stale-stub", "test_m.py", "test_f")}


def test_an_object_made_without_its_constructor():
    base = {"lib.py": "class R:\n    def __init__(self, a):\n        self.a = a\n        self.b = a\n\n    def go(self):\n        return self.a\n"}
    test = "from lib import R\n\n\ndef test_go():\n    r = R.__new__(R)\n    r.a = 1\n    assert r.go()\n"
    theirs = {"lib.py": base["lib.py"].replace("return self.a", "return self.a + self.b")}
    assert pair(base, {**base, "test_m.py": test}, theirs, {**theirs, "test_m.py": test}) == {("stale-stub", "test_m.py", "test_go")}


def test_a_definition_twice():
    base = "def f():\n    return 1\n"
    ours, theirs = base + "\n\ndef g():\n    return 2\n", "def g(x):\n    return 3\n\n\n" + base
    assert ("shadowed", "m.py", "g") in pair(base, ours, theirs, theirs + "\n\ndef g():\n    return 2\n")


def test_a_second_assignment_overwrites_the_first_unread():
    base = "def f():\n    return g()\n"
    ours, theirs = "def f():\n    m = a()\n    return g(m)\n", "def f():\n    m = b()\n    return g(m)\n"
    assert ("shadowed", "m.py", "f") in said_in(audit(base, ours, theirs, "def f():\n    m = a()\n    m = b()\n    return g(m)\n"))


def test_one_key_claimed_in_two_files():
    base = {"registry.py": "def reg(name, what):\n    return what\n", "core.py": "from registry import reg\n"}
    ours = {**base, "core.py": "from registry import reg\nreg('Text', 1)\n"}
    theirs = {**base, "text.py": "from registry import reg\nreg('Text', 2)\n"}
    assert pair(base, ours, theirs, {**ours, "text.py": theirs["text.py"]}) == {("duplicated", "core.py", "")}


def test_an_option_that_was_renamed():
    base = {"args.py": "def add(parser):\n    parser.add_argument('--fast-path')\n"}
    ours = {**base, "launch.py": "FLAGS = ['--fast-path', 'x']\n"}
    theirs = {"args.py": base["args.py"].replace("fast-path", "quick-path")}
    assert pair(base, ours, theirs, {**theirs, "launch.py": ours["launch.py"]}) == {("stale-name", "launch.py", "")}


def test_a_default_that_the_fork_relies_on():
    base = {"args.py": "class Args:\n    graph = 'off'\n"}
    ours = {**base, "run.py": "from args import Args\n\n\ndef run():\n    a = Args()\n    return a.graph\n"}
    theirs = {"args.py": "class Args:\n    graph = 'on'\n"}
    assert pair(base, ours, theirs, {**theirs, "run.py": ours["run.py"]}) == {("default-changed", "args.py", "Args")}


def test_a_new_twin_of_what_the_fork_guards():
    base = {"a.py": "import accel\n"}
    ours = {"a.py": "try:\n    import accel\nexcept ImportError:\n    accel = None\n"}
    theirs = {**base, "b.py": "import accel\n"}
    assert pair(base, ours, theirs, {**ours, "b.py": "import accel\n"}) == {("sibling", "b.py", "")}


def test_conflict_markers_in_code_and_docstrings():
    text = "def f():\n    return 1\n"
    marked = 'def f():\n    """Says.\n\n<<<<<<< HEAD\n    ours\n=======\n    theirs\n>>>>>>> main\n    """\n    return 1\n'
    assert ("marker", "m.py", "") in said_in(audit(text, text, text, marked))
    found = audit(text, text, text, "def f():\n<<<<<<< HEAD\n    return 1\n=======\n    return 2\n>>>>>>> main\n")
    assert {("marker", "m.py", ""), ("unparsable", "m.py", "")} <= said_in(found)


def test_a_comment_that_went_with_its_neighbour():
    base = "import os\n\n# keep this order\nfrom json import tool\nfrom json import decoder\n"
    ours = "import os\n\n# keep this order\nfrom json import decoder\n"
    assert said_in(audit(base, ours, base, "import os\nfrom json import decoder\n")) == {("comment-lost", "m.py", "")}


def test_what_a_lost_use_leaves_behind():
    base = {"m.py": "def f(x):\n    return x\n"}
    ours = {"m.py": "from kernel import fast\nFLAG_FAST = read()\n\n\ndef f(x):\n    if FLAG_FAST:\n        return fast(x)\n    return x\n", "kernel.py": "def fast(x):\n    return x\n"}
    merged = {"m.py": "FLAG_FAST = read()\n\n\ndef f(x):\n    return x\n", "kernel.py": ours["kernel.py"]}
    found = audit(base, ours, base, merged)
    left = {(f.path, f.message.partition(",")[0]) for f in found.findings if "still" in f.message}
    assert left == {("m.py", "`FLAG_FAST` is still bound here"), ("kernel.py", "this file is still there")}
    assert errors(audit(base, ours, base, ours)) == []
