"""Merges in Git: two parents, criss-cross bases, every merge after a point, attribution."""

import json

import pytest
from click.testing import CliRunner

from stackctl.census.merges import merge_of, merges_since
from stackctl.cli.audit import command
from stackctl.cli.common import Settings
from stackctl.model.errors import StackctlError
from tests.support import commit_files, git, repository_of, write_files

BASE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


def run(*arguments):
    result = CliRunner().invoke(command, [*arguments, "--format", "json"], obj=Settings(quiet=True), standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.return_value, json.loads(result.stdout)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))


def lossy_merge(folder):
    """A fork's merge of upstream that drops the fork's line."""
    repository = repository_of(folder, {"m.py": BASE})
    git(folder, "branch", "upstream")
    commit_files(folder, {"m.py": BASE.replace("return 1", "return h(1)")}, "Hold one\n\nStack-Entry: 201\n")
    commit_files(folder, {"n.py": "x = 1\n"}, "patch 202: the other")
    git(folder, "checkout", "--quiet", "upstream")
    commit_files(folder, {"m.py": BASE.replace("return 2", "return 3")}, "upstream")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-commit", "upstream")
    write_files(folder, {"m.py": BASE.replace("return 2", "return 3")})
    git(folder, "commit", "--quiet", "--all", "-m", "merge upstream")
    return repository


def test_a_merge_commit_is_enough(tmp_path):
    repository = lossy_merge(tmp_path / "r")
    code, report = run("--repo", str(tmp_path / "r"), "--merge", "HEAD")
    assert code == 1
    assert [(f["kind"], f["path"], f["symbol"], f["entry"]) for f in report["findings"]] == [("lost", "m.py", "f", "201")]
    rows = {row["entry"]: row["kind"] for row in report["entries"]}
    assert rows == {"201": "absent", "202": "whole"}
    assert report["summary"]["bases"] == repository.merge_bases("HEAD^1", "HEAD^2")


def test_four_sides_by_name_and_a_folder_among_them(tmp_path):
    lossy_merge(tmp_path / "r")
    write_files(tmp_path / "merged", {"m.py": BASE, "n.py": "x = 1\n"})
    git(tmp_path / "r", "tag", "base", "main^1~2")
    code, report = run("--repo", str(tmp_path / "r"), "--base", "base", "--ours", "main^1", "--theirs", "upstream", "--merged", str(tmp_path / "merged"))
    assert code == 1
    assert {f["kind"] for f in report["findings"]} == {"lost", "upstream-lost"}


def test_every_merge_after_a_point(tmp_path):
    repository = lossy_merge(tmp_path / "r")
    assert len(merges_since(repository, "HEAD^1")) == 1
    code, report = run("--repo", str(tmp_path / "r"), "--since", "HEAD^1")
    assert code == 1 and report["findings"]


def test_a_commit_with_one_parent_is_refused(tmp_path):
    repository = repository_of(tmp_path / "r", {"m.py": BASE})
    with pytest.raises(StackctlError, match="not two"):
        merge_of(repository, "HEAD")


def test_criss_cross_bases_amount_to_one(tmp_path):
    folder = tmp_path / "r"
    repository = repository_of(folder, {"m.py": BASE})
    git(folder, "branch", "other")
    one = BASE.replace("return 1", "return 10")
    two = BASE.replace("return 2", "return 20")
    both = one.replace("return 2", "return 20")
    commit_files(folder, {"m.py": one}, "one")
    git(folder, "checkout", "--quiet", "other")
    commit_files(folder, {"m.py": two}, "two")
    first, second = git(folder, "rev-parse", "main"), git(folder, "rev-parse", "other")
    git(folder, "merge", "--quiet", "-m", "x1", first)
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "-m", "x2", second)
    commit_files(folder, {"m.py": both + "\n\ndef mine():\n    return 3\n"}, "mine")
    git(folder, "checkout", "--quiet", "other")
    commit_files(folder, {"o.py": "y = 1\n"}, "other goes on")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "-m", "criss-cross", "other")
    found = merge_of(repository, "HEAD")
    assert len(found.bases) == 2
    assert found.base.read("m.py").decode() == both
    code, report = run("--repo", str(folder), "--merge", "HEAD")
    assert code == 0
    assert len(report["summary"]["bases"]) == 2


def test_a_half_named_way_is_bad_usage():
    result = CliRunner().invoke(command, ["--base", "a"], obj=Settings(quiet=True))
    assert result.exit_code == 2
