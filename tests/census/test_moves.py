"""Halves are followed to where the other side moved their host."""

from tests.census.merging import audit, errors, said_in

CAP = "def cap(x):\n    y = int(x)\n    check(y)\n    return y\n"
OURS = CAP.replace("int(x)", "float(x)")


def test_a_function_moved_to_another_file_and_followed():
    base = {"logits.py": CAP + "\n\ndef use(x):\n    return cap(x)\n"}
    ours = {"logits.py": OURS + "\n\ndef use(x):\n    return cap(x)\n"}
    theirs = {"logits.py": "from softcap import cap\n\n\ndef use(x):\n    return cap(x)\n", "softcap.py": CAP}
    assert errors(audit(base, ours, theirs, {**theirs, "softcap.py": OURS})) == []
    lost = audit(base, ours, theirs, theirs)
    assert said_in(lost) == {("lost", "softcap.py", "cap")}


def test_a_file_renamed_by_upstream():
    base, ours = {"old.py": CAP}, {"old.py": OURS}
    theirs = {"new.py": CAP}
    assert errors(audit(base, ours, theirs, {"new.py": OURS})) == []
    assert said_in(audit(base, ours, theirs, theirs)) == {("lost", "new.py", "cap")}


def test_a_function_renamed_by_upstream():
    base = CAP + "\n\ndef other():\n    return 1\n"
    ours, theirs = base.replace("int(x)", "float(x)"), base.replace("def cap", "def clip")
    assert errors(audit(base, ours, theirs, theirs.replace("int(x)", "float(x)"))) == []
    assert said_in(audit(base, ours, theirs, theirs)) == {("lost", "m.py", "clip")}


def test_upstreams_edit_in_a_file_that_we_renamed():
    base, theirs, ours = {"old.py": CAP}, {"old.py": CAP.replace("check(y)", "check(y, 1)")}, {"new.py": CAP}
    assert errors(audit(base, ours, theirs, {"new.py": theirs["old.py"]})) == []
    assert said_in(audit(base, ours, theirs, ours)) == {("upstream-lost", "new.py", "cap")}


def test_a_file_that_upstream_deleted_takes_our_half_along():
    base, ours = {"a.py": CAP, "b.py": "x = 1\n"}, {"a.py": OURS, "b.py": "x = 1\n"}
    theirs = {"b.py": "x = 1\n"}
    assert said_in(audit(base, ours, theirs, theirs)) == {("host-gone", "a.py", "")}


def test_an_edit_made_again_where_upstream_moved_the_statement():
    names = "from plain import is_cuda, is_musa, is_npu\n\n\n"
    guard = "and (is_cuda() or is_musa() or is_npu())"
    base = {"args.py": names + "class A:\n    def pick(self):\n        if self.want and self.can():\n            self.go()\n"}
    ours = {"args.py": base["args.py"].replace("self.can()", f"self.can() {guard}")}
    theirs = {
        "args.py": names + "class A:\n    pass\n",
        "rules.py": names + "def pick(view):\n    if view.want and view.can():\n        view.go()\n",
    }
    merged = {**theirs, "rules.py": theirs["rules.py"].replace("view.can()", f"view.can() {guard}")}
    assert errors(audit(base, ours, theirs, merged)) == []


def test_a_new_file_of_ours_in_a_folder_that_upstream_renamed():
    base, theirs = {"old/a.py": CAP}, {"new/a.py": CAP}
    ours = {**base, "old/mine.py": CAP.replace("cap", "mine")}
    assert errors(audit(base, ours, theirs, {**theirs, "new/mine.py": ours["old/mine.py"]})) == []
    cut = ours["old/mine.py"].replace("    check(y)\n", "")
    assert said_in(audit(base, ours, theirs, {**theirs, "new/mine.py": cut})) == {("lost", "new/mine.py", "mine")}


def test_a_file_that_upstream_deleted_and_merged_keeps_is_one_finding():
    base, ours = {"a.py": CAP + "\n\ndef b():\n    return 1\n", "b.py": "x = 1\n"}, {"a.py": OURS + "\n\ndef b():\n    return 1\n", "b.py": "x = 1\n"}
    found = audit(base, ours, {"b.py": "x = 1\n"}, ours)
    assert said_in(found) == {("upstream-lost", "a.py", "")}
    assert len(found.findings) == 1
