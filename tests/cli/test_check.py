"""`stackctl check rules` as a person runs it."""

from __future__ import annotations

import pytest

from tests.cli.hostile import Bench, bench
from tests.support import write_files

RULE = """title = "Nothing is printed"
code = "print($$$)"
paths = ["python/**/*.py"]
expect = "absent"
[[good]]
code = "log(x)"
[[bad]]
code = "print(x)"
"""


@pytest.fixture
def at(tmp_path) -> Bench:
    return bench(tmp_path)


def test_no_rules(at):
    ran = at.run("check", "rules")
    assert ran.code == 0 and ran.out == "check: clean\n0 rules, 0 examples\n" and "stackctl explain rule" in ran.err


def test_examples_alone(at):
    write_files(at.stack, {"checks/rules/no-print.toml": RULE})
    assert at.run("check", "rules").out == "check: clean\n1 rule, 2 examples\n"
    write_files(at.stack, {"checks/rules/no-print.toml": RULE.replace("log", "print")})
    ran = at.run("check", "rules")
    assert ran.code == 1 and "checks/rules/no-print.toml:5: rule: rule no-print: good example trips it" in ran.out


def test_on_a_tree(at):
    write_files(at.stack, {"checks/rules/no-print.toml": RULE})
    at.commit({"python/sglang/loud.py": "def f():\n    print(1)\n"})
    for where in (("--repo", at.repo, "--at", "HEAD"), ("--tree", at.repo)):
        ran = at.run("check", "rules", *where, "--format", "json")
        assert ran.code == 1 and ran.json["summary"]["due"] == ["no-print"]
        (finding,) = ran.json["findings"]
        assert (finding["path"], finding["line"], finding["symbol"]) == ("python/sglang/loud.py", 2, "f")


def test_a_rule_that_is_not_in_order(at):
    write_files(at.stack, {"checks/rules/x.toml": "title = 3\n"})
    ran = at.run("check", "rules")
    assert ran.code == 2 and "x.toml:1: title must be text" in ran.err


def test_both_trees(at):
    assert at.run("check", "rules", "--at", "HEAD", "--tree", at.repo).code == 2
