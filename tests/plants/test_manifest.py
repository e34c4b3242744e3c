"""Reading a stack: every mistake is named with file and line, all together, with the right word for a wrong one."""

from __future__ import annotations

import re

import pytest

from stackctl.model.errors import StackctlError
from stackctl.plants.manifest import ManifestError, load_stack
from stackctl.plants.stacks import find_stack
from tests.support import write_files

PLANT = """
[[plant]]
id = "a"
kind = "statement"
host = "pkg.mod:go"
after = "x()"
code = "y()"
"""
ENTRY = """number = 1
title = "One"
disposition = "permanent"
reason = "because"
"""
EDIT = "--- a/x.txt\n+++ b/x.txt\n@@ -1,2 +1,3 @@\n one\n+ours\n two\n"


def stack(folder, entry=ENTRY + PLANT, files=None, toml='name = "s"\n', slug="001-one"):
    """A stack with one entry; `files` are relative to its root."""
    write_files(folder, {"stack.toml": toml, f"entries/{slug}/entry.toml": entry, **(files or {})})
    return folder


def problems(folder) -> list[str]:
    """Each problem as `file:line: message`, the file relative to the stack."""
    with pytest.raises(ManifestError) as caught:
        load_stack(folder)
    assert re.match(r"\d+ problems? in the stack's declarations\n", str(caught.value))
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def plant(**keys) -> str:
    """One plant's table; `None` leaves a key out, a tuple is put in as it is."""
    table = {"id": "a", "kind": "statement", "host": "pkg.mod:go", "after": "x()", "code": "y()", **keys}
    rows = [f"{key} = {value[0] if isinstance(value, tuple) else _toml(value)}" for key, value in table.items() if value is not None]
    return "\n[[plant]]\n" + "\n".join(rows) + "\n"


def _toml(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\u{ord(char):04x}" if char in '"\\' or ord(char) < 32 else char for char in value) + '"'
    return repr(value)


def test_a_sound_stack_loads(tmp_path):
    loaded = load_stack(stack(tmp_path))
    assert [(entry.name, [each.id for each in entry.plants]) for entry in loaded.entries] == [("001-one", ["a"])]


def test_all_are_told_together_in_order_of_file_and_line(tmp_path):
    stack(tmp_path, "number = 7\ntitel = 1\ndisposition = 'submited'\n[[plant]]\nid = 'X'\nkind = 'reroot'\n", {
        "entries/002-two/entry.toml": "number = \n", "entries/readme.txt": "", "patches/stray.patch": "", "entries/Bad_Name/entry.toml": "",
        "entries/003-none/x.py": "",
    }, toml='nam = "s"\n')  # fmt: skip
    assert problems(tmp_path) == [
        "entries/001-one/entry.toml:1: number is 7, the folder says 1",
        "entries/001-one/entry.toml:1: an entry needs a title",
        "entries/001-one/entry.toml:2: unknown key 'titel'; did you mean 'title'?",
        "entries/001-one/entry.toml:3: 'submited' is not a disposition; did you mean 'submitted'?",
        "entries/002-two/entry.toml:1: is not TOML: Invalid value (at line 1, column 10)",
        "entries/003-none/entry.toml:1: the entry has no manifest",
        "entries/Bad_Name:1: an entry's folder is named NNN-slug, as 201-preprocess-executor",
        "entries/readme.txt:1: only folders belong in entries/",
        "patches/stray.patch:1: no plant uses this file",
        "stack.toml:1: unknown key 'nam'; did you mean 'name'?",
        "stack.toml:1: a stack needs a name",
    ]


HEADS = [
    ("carry", {"reason": "r"}, "disposition carry requires remove_when"),
    ("carry", {"remove_when": "r"}, "disposition carry requires reason"),
    ("permanent", {}, "disposition permanent requires reason"),
    ("submitted", {}, "disposition submitted requires url"),
    ("backport", {}, "disposition backport requires commit"),
    ("candidate", {}, "disposition candidate requires reason"),
    ("blocked", {}, "disposition blocked requires blocked_by"),
    ("superseded", {"evidence": "e"}, "disposition superseded requires superseded_by"),
    ("superseded", {"superseded_by": "e"}, "disposition superseded requires evidence"),
    ("retired", {}, "disposition retired requires reason"),
    ("permenant", {}, "'permenant' is not a disposition; did you mean 'permanent'?"),
    ("", {}, "an entry needs a disposition"),
]


@pytest.mark.parametrize(("word", "keys", "message"), HEADS)
def test_what_a_disposition_requires(word, keys, message, tmp_path):
    rows = "".join(f"{key} = '{value}'\n" for key, value in keys.items())
    stack(tmp_path, f"number = 1\ntitle = 'One'\ndisposition = '{word}'\n{rows}{PLANT}")
    assert problems(tmp_path) == [f"entries/001-one/entry.toml:3: {message}"]


TOP = [
    ("number = true", "number must be a whole number"),
    ("number = '1'", "number must be a whole number"),
    ("title = 3", "title must be text"),
    ("title = 'One\\ntwo'", None),
    ('title = "One\\ntwo"', "the title must be one line"),
    ("requires = [2]", "requires names entry 2, which is not in the stack"),
    ("requires = ['2']", "requires holds '2', where a whole number is wanted"),
    ("requires = [[2]]", "requires holds [2], where a whole number is wanted"),
    ("requires = [true]", "requires holds True, where a whole number is wanted"),
    ("requires = 2", "requires must be a list"),
    ("excludes = [3]", "excludes names entry 3, which is not in the stack"),
    ("upstream = [1]", "upstream holds 1, where text is wanted"),
    ("watch = [{}]", "watch holds {}, where text is wanted"),
    ("adopted_by = { x = 'pkg.mod:f' }", "adopted_by holds 'pkg.mod:f', where a list is wanted"),
    ("adopted_by = { x = ['pkg.mod'] }", "adopted_by names 'pkg.mod', which is not module:Class.function"),
    ("adopted_by = { x = [1] }", "adopted_by names 1, which is not module:Class.function"),
    ("partial = 'yes'", "partial must be true or false"),
    ("plant = 'x'", "plant must be a list"),
    ("plant = ['x']", "a plant is a table: [[plant]]"),
    ("plant = []", "an entry without a [[plant]] can be neither planted nor missed"),
    ("requries = []", "unknown key 'requries'; did you mean 'requires'?"),
]


@pytest.mark.parametrize(("row", "message"), TOP)
def test_the_keys_of_an_entry(row, message, tmp_path):
    key = row.partition(" ")[0]
    kept = "".join(line for line in ENTRY.splitlines(keepends=True) if not line.startswith(key))
    stack(tmp_path, f"{kept}{row}\n{'' if key == 'plant' else PLANT}")
    if message is None:
        load_stack(tmp_path)
        return
    found = problems(tmp_path)
    assert any(message in problem for problem in found), found
    assert all(re.match(r"entries/001-one/entry\.toml:\d+: ", problem) for problem in found)


PLANTS = [
    ({"id": "Upper"}, "a plant needs an id of small letters, digits and dashes, not 'Upper'"),
    ({"id": "a\n"}, "a plant needs an id of small letters, digits and dashes, not 'a\\n'"),
    ({"id": ("[1]",)}, "a plant needs an id of small letters, digits and dashes, not [1]"),
    ({"id": None}, "a plant needs an id of small letters, digits and dashes, not None"),
    ({"kind": None}, "a plant needs a kind"),
    ({"kind": "statment"}, "no plant kind 'statment'; did you mean 'statement'?"),
    ({"kind": 3}, "kind must be text"),
    ({"cod": "z()"}, "kind statement has no key 'cod'; did you mean 'code'?"),
    ({"code": None}, "kind statement needs code: one statement"),
    ({"code": 3}, "code must be text"),
    ({"code": "y("}, "code is not Python"),
    ({"code": "# only"}, "code matches nothing: it holds no code"),
    ({"code": "y(); z()"}, "code must be one statement"),
    ({"after": None}, "give one of after, before and end"),
    ({"before": "z()"}, "give one of after, before and end"),
    ({"after": "if x"}, "after 'if x' is not a statement or a header"),
    ({"host": None}, "host '' is not module:Class.function"),
    ({"host": "pkg.mod"}, "host 'pkg.mod' is not module:Class.function"),
    ({"host": "pkg/mod:go"}, "host 'pkg/mod:go' is not module:Class.function"),
    ({"host": "../x:go"}, "host '../x:go' is not module:Class.function"),
    ({"host": "pkg.mod:go\n"}, "is not module:Class.function"),
    ({"releases": "newest"}, "'newest' is not a range of releases such as '>=0.5.21,<0.5.24'"),
    ({"releases": "0.5.21"}, "'0.5.21' is not a range of releases"),
    ({"releases": ">=0.5.23,<0.5.22"}, "no release is in '>=0.5.23,<0.5.22'"),
    ({"adopted_with": "executor"}, "the entry's adopted_by has no key 'executor'"),
    ({"unit": 3}, "unit must be text"),
    ({"kind": "import", "after": None, "code": "x = 1", "host": "pkg.mod:"}, "code must be one import statement"),
    ({"kind": "import", "after": None, "code": "import os"}, "an import's host is a module: end it with a colon"),
    ({"kind": "definition", "after": None, "code": "x = 1"}, "code must be one definition, or several of one name"),
    ({"kind": "rename", "after": None, "code": None, "old": "a b", "new": "c"}, "'a b' is not a name"),
    ({"kind": "rename", "after": None, "code": None, "old": "class", "new": "c"}, "'class' is not a name"),
    ({"kind": "rename", "after": None, "code": None, "old": "c", "new": "c"}, "old and new are the same"),
    ({"kind": "rename", "after": None, "code": None, "old": "c", "new": "d", "count": 0}, "count is 1 or more"),
    ({"kind": "argument", "after": None, "code": None, "call": "f", "value": "1"}, "give either position or keyword"),
    ({"kind": "argument", "after": None, "code": None, "call": "f", "value": "1", "position": -1}, "position counts from 0"),
    ({"kind": "argument", "after": None, "code": None, "call": "f", "value": "1", "keyword": "1x"}, "keyword '1x' is not a name"),
    ({"kind": "argument", "after": None, "code": None, "call": "f", "value": "(", "position": 0}, "value '(' is not an expression"),
    ({"kind": "argument", "after": None, "code": None, "call": "f(", "value": "1", "position": 0}, "call is not Python"),
    ({"kind": "argument", "after": None, "code": None, "call": "x = 1", "value": "1", "position": 0}, "call is not one expression"),
    ({"kind": "reroute", "after": None, "code": None, "call": "f", "through": "g", "host": "pkg.mod:"}, "a reroute's host is a function"),
    ({"kind": "reroute", "after": None, "code": None, "call": "f", "through": "g", "count": 0}, "count is 1 or more"),
    ({"kind": "reroute", "after": None, "code": None, "call": "f", "through": "g", "enclosing": "x"}, 'enclosing is "call" or "comprehension"'),
    ({"kind": "reroute", "after": None, "code": None, "call": "f", "through": "g", "late": ("{a = '('}",)}, "late gives 'a' = '('"),
    ({"kind": "reroute", "after": None, "code": None, "call": "f", "through": "g", "keywords": ("{a = 1}",)}, "keywords gives 'a' = 1"),
    ({"kind": "reroute", "after": None, "code": None, "call": "f", "through": "g", "also": ("[1]",)}, "also holds 1, where text is wanted"),
    ({"kind": "property", "after": None, "code": None, "name": "a b", "getter": "1"}, "name 'a b' is not a name"),
    ({"kind": "property", "after": None, "code": None, "name": "a", "getter": "1", "doc": '"""'}, "do not make a property"),
    ({"kind": "tombstone", "after": None}, None),
    ({"kind": "tombstone", "after": None, "host": None}, "code needs a host; text and pattern have paths instead"),
    ({"kind": "tombstone", "after": None, "code": "a()\nb()"}, "code must be one statement"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None}, "give one of code, text and pattern"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None, "pattern": "("}, "pattern '(' is not a regular expression"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None, "pattern": "x*"}, "this matches everything, an empty file too"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None, "text": "  "}, "this matches everything, an empty file too"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None, "text": "x", "paths": ("['../x']",)}, "paths holds '../x', which matches no file of a tree"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None, "text": "x", "paths": ("['/x']",)}, "paths holds '/x', which matches no file of a tree"),
    ({"kind": "tombstone", "after": None, "code": None, "host": None, "text": "x", "paths": ("[1]",)}, "paths holds 1, which matches no file of a tree"),
]  # fmt: skip
PATHS = ["../x", "/x", "a/../../x", ".git/config", "a/.GIT/hooks/post-commit", "a\\b", "a//b", "./a", "a/", "\0", "x\0y"]
PLANTS += [({"kind": "file", "after": None, "code": None, "host": None, "path": path}, "leaves the tree's root or is not a plain relative path") for path in PATHS]
PLANTS += [({"kind": "hunk", "after": None, "code": None, "host": None, "patch": path}, "is not a file name in patches/") for path in ("../x.patch", "a/b", "..")]


@pytest.mark.parametrize(("keys", "message"), PLANTS)
def test_the_keys_of_a_plant(keys, message, tmp_path):
    stack(tmp_path, ENTRY + plant(**keys))
    if message is None:
        load_stack(tmp_path)
        return
    found = problems(tmp_path)
    assert any(message in problem for problem in found), found
    lines = {int(re.match(r"entries/001-one/entry\.toml:(\d+): ", problem)[1]) for problem in found}
    assert min(lines) >= 5  # in the plant's own table


def test_a_mistake_is_told_on_its_own_line(tmp_path):
    stack(tmp_path, ENTRY + PLANT + plant(id="b", after="if x"))
    assert problems(tmp_path) == ["entries/001-one/entry.toml:15: plant b: after 'if x' is not a statement or a header"]
    stack(tmp_path, ENTRY + PLANT + plant(id="a"))
    assert problems(tmp_path) == ["entries/001-one/entry.toml:13: two plants have the id 'a'"]


FILE = plant(kind="file", host=None, after=None, code=None, path="pkg/new.py")


def test_files_that_are_missing_unused_or_elsewhere(tmp_path):
    stack(tmp_path, ENTRY + FILE, {"entries/001-one/files/stray.py": ""})
    assert problems(tmp_path) == [
        "entries/001-one/entry.toml:6: plant a: files/pkg/new.py is not there",
        "entries/001-one/files/stray.py:1: no plant uses this file",
    ]


@pytest.mark.parametrize("source", ["../../secret", "/etc/passwd", "link", "nul\0"])
def test_a_source_outside_the_entry(source, tmp_path):
    write_files(tmp_path, {"secret": "s"})
    root = stack(tmp_path / "stack", ENTRY + plant(kind="file", host=None, after=None, code=None, path="new.py", source=source))
    (tmp_path / "stack" / "entries" / "001-one" / "link").symlink_to(tmp_path / "secret")
    found = [problem for problem in problems(root) if "link:1:" not in problem]
    assert len(found) == 1
    assert "is outside the entry" in found[0] or "is not a file name" in found[0] or "is not there" in found[0]


PATCHES = [
    ("nothing here", "holds no hunk"),
    (EDIT.replace("+ours", "ours"), "is not a unified diff"),
    (EDIT.replace("b/x.txt", "b/../x.txt"), "leaves the tree's root"),
    (EDIT.replace("b/x.txt", "/etc/x.txt"), "leaves the tree's root"),
    (EDIT.replace("b/x.txt", "b/.git/config"), "leaves the tree's root"),
    (EDIT.replace("b/x.txt", '"b/\\056\\056/x.txt"'), "leaves the tree's root"),
    ("--- a/x\n+++ b/x\n@@ -1,0 +2 @@\n+ours\n", "without lines of context, which matches nothing"),
    ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "renames 'y'"),
    ("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n", "holds a binary 'x'"),
    ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n", "is not a unified diff"),
]


@pytest.mark.parametrize(("text", "message"), PATCHES)
def test_patches(text, message, tmp_path):
    stack(tmp_path, ENTRY + plant(kind="hunk", host=None, after=None, code=None, patch="p.patch"), {"patches/p.patch": text})
    found = problems(tmp_path)
    assert any(message in problem for problem in found), found
    assert all(problem.startswith("entries/001-one/entry.toml:8: plant a: p.patch ") for problem in found)


def test_a_patch_that_is_not_there(tmp_path):
    stack(tmp_path, ENTRY + plant(kind="hunk", host=None, after=None, code=None, patch="p.patch"))
    assert problems(tmp_path) == ["entries/001-one/entry.toml:8: plant a: p.patch: No such file or directory"]


def test_a_number_taken_twice(tmp_path):
    stack(tmp_path, files={"entries/0001-other/entry.toml": ENTRY + PLANT})
    assert problems(tmp_path) == ["entries/001-one/entry.toml:1: number 1 is taken by 001-other"]


def test_entries_that_exclude_each_other_and_are_both_on(tmp_path):
    two = ENTRY.replace("number = 1", "number = 2\ndefault = 'on'\nexcludes = [1]")
    stack(tmp_path, ENTRY.replace("title", "default = 'on'\ntitle") + PLANT, {"entries/002-two/entry.toml": two + PLANT})
    assert problems(tmp_path) == ["entries/002-two/entry.toml:1: on by default together with entries it excludes: [1]"]


@pytest.mark.parametrize(("data", "message"), [
    (b"\xff\xfe", "1: is not UTF-8: invalid start byte at byte 0"),
    (b"a = 1\nb == 2\n", "2: is not TOML"),
    (b"a = 1\na = 2\n", "2: is not TOML: Cannot overwrite a value"),
    (b"[[plant]]\nid = \"\"\"\nopen", "1: is not TOML: Unterminated string (at end of document)"),
    (b"\xef\xbb\xbfnumber = 1\n", "1: is not TOML"),
])  # fmt: skip
def test_what_is_no_toml(data, message, tmp_path):
    stack(tmp_path, data)
    found = problems(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(f"entries/001-one/entry.toml:{message}"), found


@pytest.mark.parametrize("source", ["../x", "/x", "a//b", ".git"])
def test_a_source_folder_outside_the_tree(source, tmp_path):
    stack(tmp_path, toml=f'name = "s"\nsource = "{source}"\n')
    assert problems(tmp_path) == [f"stack.toml:2: source {source!r} is not a folder below the tree's root"]


KIND = '''
from stackctl.plants.kind import Judgement, Kind, Option
from stackctl.model.verdict import Verdict

class Own(Kind):
    name = "own"
    summary = "a kind of the entry's own"
    host = "none"
    options = {"word": Option(str, "a word", required=True)}

    def judge(self, plant, entry, view):
        return Judgement(Verdict.INTACT)

    def plant(self, plant, entry, view):
        pass

KINDS = [Own()]
'''


def test_a_kind_of_the_entrys_own(tmp_path):
    own = plant(kind="own", host=None, after=None, code=None, word="w")
    root = stack(tmp_path, ENTRY + own, {"entries/001-one/rewrite.py": KIND})
    (entry,) = load_stack(root).entries
    stack(tmp_path, ENTRY + own, {"entries/001-one/rewrite.py": KIND + "# changed\n"})
    assert load_stack(root).entries[0].digest != entry.digest  # verdicts of the old code are not believed
    stack(tmp_path, ENTRY + own.replace("word", "wort"), {"entries/001-one/rewrite.py": KIND})
    assert problems(root) == [
        "entries/001-one/entry.toml:6: plant a: kind own needs word: a word",
        "entries/001-one/entry.toml:9: plant a: kind own has no key 'wort'; did you mean 'word'?",
    ]


@pytest.mark.parametrize(("code", "message"), [("1 / 0", "ZeroDivisionError"), ("def (", "SyntaxError"), ("KINDS = []", "no plant kind 'own'")])
def test_a_rewrite_that_fails(code, message, tmp_path):
    stack(tmp_path, ENTRY + plant(kind="own", host=None, after=None, code=None), {"entries/001-one/rewrite.py": code})
    found = problems(tmp_path)
    assert len(found) == 1 and message in found[0] and found[0].startswith("entries/001-one/entry.toml:8: "), found


def test_two_files_of_one_name_both_count_in_the_digest(tmp_path):
    other = FILE.replace('"a"', '"b"').replace("pkg/new.py", "other/new.py")
    files = {"entries/001-one/files/pkg/new.py": "1", "entries/001-one/files/other/new.py": "2"}
    digests = set()
    for name in (None, *files):
        (entry,) = load_stack(stack(tmp_path, ENTRY + FILE + other, files | ({name: "3"} if name else {}))).entries
        digests.add(entry.digest)
    assert len(digests) == 3


def test_the_stack_is_found_upwards(tmp_path):
    root = stack(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_stack(tmp_path / "a" / "b") == root.resolve()
    with pytest.raises(StackctlError, match="no stack.toml here or in a folder above"):
        find_stack(tmp_path.parent)
