"""Rules: what they match, how they are tried, and this fork's own ones on a planted release."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackctl.census.checks import Rule, check_rules, load_rules, try_rules
from stackctl.model.report import Finding
from stackctl.plants.manifest import ManifestError
from stackctl.trees.release import Release
from tests.census.merging import MemoryTree
from tests.support import ROOT, planted_tree, write_files

HEAD = 'title = "No hop"\npaths = ["srv/**/*.py"]\n'
GOOD = '[[good]]\ncode = "await self._run(f)"\n'
BAD = '[[bad]]\ncode = "loop.run_in_executor(None, f)"\n'
RULE = HEAD + 'code = "$L.run_in_executor(None, $$$REST)"\nexpect = "absent"\n' + GOOD + BAD
HERE = Release("0.5.23")


def rules(folder: Path, *texts: str) -> list[Rule]:
    write_files(folder, {f"checks/rules/r{n}.toml": text for n, text in enumerate(texts)})
    return load_rules(folder)


def found(folder: Path, text: str, files: dict[str, str], release: Release = HERE) -> list[Finding]:
    return check_rules(rules(folder, text), MemoryTree("tree", files), release)


def places(findings: list[Finding]) -> list[tuple[str, int, str]]:
    return [(finding.path, finding.line, finding.symbol) for finding in findings]


FILES = {
    "srv/a.py": "class A:\n    async def f(self):\n        await loop.run_in_executor(\n            None, self.f)\n",
    "srv/deep/er/b.py": "x = 1\n\nget().run_in_executor(None, g)\nloop.run_in_executor(pool, f)\n",
    "other/c.py": "loop.run_in_executor(None, f)\n",
}


def test_code_that_must_be_absent(tmp_path):
    assert places(found(tmp_path, RULE, FILES)) == [("srv/a.py", 3, "A.f"), ("srv/deep/er/b.py", 3, "")]


def test_files_left_out(tmp_path):
    assert places(found(tmp_path, RULE.replace("paths", 'exclude = ["srv/deep/**"]\npaths'), FILES)) == [("srv/a.py", 3, "A.f")]


@pytest.mark.parametrize(("what", "count"), [
    ('text = "run_in_executor(None"', 1), ('pattern = "run_in_executor\\\\(\\\\s*None"', 2), ('pattern = "^loop"', 1),
])  # fmt: skip
def test_text_and_patterns(tmp_path, what, count):
    text = RULE.replace('code = "$L.run_in_executor(None, $$$REST)"', what)
    assert len(found(tmp_path, text, FILES)) == count


@pytest.mark.parametrize(("expect", "wrong"), [
    ('expect = "present"', False), ("count = 2", False), ("count = 3", True), ("count = 1", True), ("count = 0", True),
])  # fmt: skip
def test_counts(tmp_path, expect, wrong):
    findings = found(tmp_path, RULE.replace('expect = "absent"', expect), FILES)
    assert bool(findings) is wrong
    if expect == "count = 3":
        assert "2 places match, 3 wanted" in findings[0].message
        assert "srv/a.py:3, srv/deep/er/b.py:3" in findings[0].evidence


def test_what_must_be_there_and_is_not(tmp_path):
    (finding,) = found(tmp_path, RULE.replace("absent", "present"), {"srv/a.py": "x = 1\n"})
    assert finding.path == "srv/a.py" and "0 places match, at least 1 wanted" in finding.message


def test_severity(tmp_path):
    assert {str(f.severity) for f in found(tmp_path, 'severity = "note"\n' + RULE, FILES)} == {"note"}


@pytest.mark.parametrize(("limits", "due"), [
    ('since = "0.5.23"', True), ('since = "0.5.24"', False), ('until = "0.5.23"', False), ('until = "0.5.24"', True),
    ('since = "0.5.22"\nuntil = "0.5.22.post1"', False),
])  # fmt: skip
def test_releases(tmp_path, limits, due):
    assert bool(found(tmp_path, f"{limits}\n{RULE}", FILES)) is due


def test_paths_that_match_no_file(tmp_path):
    (finding,) = found(tmp_path, RULE, {"x.py": ""})
    assert finding.path == "checks/rules/r0.toml" and "can match nothing here" in finding.message


def test_files_that_are_not_text(tmp_path):
    files = {"srv/a.py": b"\0run_in_executor(None", "srv/b.py": b"# \xff\nloop.run_in_executor(None, f)\n", "srv/c.py": "def (:\nl.run_in_executor(None, f)"}
    assert [finding.path for finding in found(tmp_path, RULE, files)] == ["srv/b.py"]  # the audit names c.py: unparsable


# Their own examples


def tried(folder: Path, text: str) -> list[str]:
    return [f"{finding.line}: {finding.message}" for finding in try_rules(rules(folder, text))]


def test_a_rule_in_order(tmp_path):
    assert tried(tmp_path, RULE) == []


def test_examples_that_do_not_hold(tmp_path):
    swapped = RULE.replace("good", "x").replace("bad", "good").replace("[[x]]", "[[bad]]")
    assert tried(tmp_path, swapped) == [
        "7: rule r0: good example trips it: 1 matches", "5: rule r0: bad example does not trip it: 0 matches",
    ]  # fmt: skip


@pytest.mark.parametrize(("gone", "message"), [(GOOD, "has no good example"), (BAD, "nothing shows that it can match")])
def test_a_rule_without_examples(tmp_path, gone, message):
    (said,) = tried(tmp_path, RULE.replace(gone, ""))
    assert message in said


def test_a_pattern_that_matches_nothing(tmp_path):
    """ast-grep takes half a call without a word, and matches it nowhere."""
    (said,) = tried(tmp_path, RULE.replace("$L.run_in_executor(None, $$$REST)", "run_in_executor(None"))
    assert "bad example does not trip it" in said


def test_a_count_in_examples(tmp_path):
    text = HEAD + 'text = "f("\ncount = 2\n[[good]]\ncode = "f()"\ntimes = 2\n[[bad]]\ncode = "f()"\n'
    assert tried(tmp_path, text) == []


@pytest.mark.parametrize(("old", "new", "message"), [
    ('title = "No hop"\n', "", "title is missing"),
    ('paths = ["srv/**/*.py"]', "paths = []", "paths is missing"),
    ('paths = ["srv/**/*.py"]', "paths = [1]", "paths are texts, not 1"),
    ('code = "$L.run_in_executor(None, $$$REST)"\n', "", "one of code, pattern and text"),
    ('expect = "absent"', 'text = "x"\nexpect = "absent"', "one of code, pattern and text"),
    ('expect = "absent"', "", "what to expect"),
    ('expect = "absent"', 'expect = "gone"', "what to expect"),
    ('expect = "absent"', 'expect = "absent"\ncount = 0', "what to expect"),
    ('expect = "absent"', 'expect = "absent"\nseverity = "fatal"', "severity is error, warning, note"),
    ('expect = "absent"', 'expect = "absent"\nsince = "soon"', "since: 'soon' is not a release"),
    ('expect = "absent"', 'expcet = "absent"', "did you mean 'expect'?"),
    ('code = "$L.run_in_executor(None, $$$REST)"', 'pattern = "("', "pattern is no pattern"),
    ('code = "$L.run_in_executor(None, $$$REST)"', 'code = " "', "code is no pattern: No AST root"),
    ("[[good]]", "[[good]]\ncdoe = 1", "unknown key 'cdoe'"),
])  # fmt: skip
def test_what_is_wrong_with_a_rule_is_named(tmp_path, old, new, message):
    assert old in RULE
    with pytest.raises(ManifestError) as error:
        rules(tmp_path, RULE.replace(old, new, 1))
    assert message in str(error.value) and "r0.toml:" in str(error.value)


def test_all_rules_are_named_at_once(tmp_path):
    with pytest.raises(ManifestError) as error:
        rules(tmp_path, "title = 1\n", "x = \n", RULE)
    assert {problem.path.name for problem in error.value.problems} == {"r0.toml", "r1.toml"}


# This fork's own


def test_our_rules_hold_on_their_examples():
    assert try_rules(load_rules(ROOT)) == []


@pytest.mark.releases
def test_our_rules_hold_on_a_planted_release_and_not_on_stock(tmp_path):
    from stackctl.trees.git import Repository
    from stackctl.trees.tree import FolderTree, GitTree

    ours = load_rules(ROOT)
    assert check_rules(ours, FolderTree(planted_tree("0.5.23", tmp_path)), HERE) == []
    stock = check_rules(ours, GitTree(Repository(tmp_path / "repo"), "v0.5.23"), HERE)
    assert len({finding.message.split(":")[0] for finding in stock}) == len(ours)
