"""Failures are attributed: the merge's, there before, flakes; in scratch worktrees that run no hook and no filter."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stackctl.attribute.attribution import attribute
from stackctl.attribute.done import load_done
from stackctl.attribute.runs import Run, Runner, run_pytest
from stackctl.attribute.scratch import scratch_worktree
from stackctl.cli.explain import page_of
from stackctl.cli.main import cli
from stackctl.model.errors import StackctlError
from tests.support import commit_files, git, repository_of, write_files

TESTS = """
import os, pathlib
from pkg.code import VALUE

def test_green(): pass
def test_value(): assert VALUE == 1
def test_always_red(): assert False
def test_flake():
    marks = pathlib.Path(os.environ["FLAKE_FOLDER"])
    marks.joinpath(str(len(list(marks.iterdir())))).touch()
    assert len(list(marks.iterdir())) % 4  # base runs at 1, 3, 5 and merged at 2, 4, 6
class TestInside:
    def test_skipped(self):
        import pytest
        pytest.skip("no GPU")
    def test_mended(self): assert VALUE == 2
def test_gone(): pass
"""
BASE = {
    "python/pkg/__init__.py": "",
    "python/pkg/code.py": "VALUE = 1\n",
    "test/test_a.py": TESTS,
    "test/test_b.py": "def test_b(): pass\n",
    "words.txt": "LATER\nLATER\n",
}
MERGED = {
    "python/pkg/code.py": "VALUE = 2\n",
    "test/test_a.py": TESTS.replace("def test_gone(): pass", "def test_new(): assert False"),
    "test/test_b.py": "import pkg.no_such\ndef test_b(): pass\n",
    "test/test_c.py": "def test_c(): pass\n",
    "words.txt": "LATER\n",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attribute")
    found = repository_of(folder / "repo", BASE)
    git(found.path, "tag", "base")
    commit_files(found.path, MERGED, "merged")
    git(found.path, "tag", "merged")
    write_files(folder, {"stack/stack.toml": 'name = "s"\n'})
    return found


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """Each run is a new process: the plugins of our own tests would cost it seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def flaking(tmp_path, monkeypatch):
    (tmp_path / "flakes").mkdir()
    monkeypatch.setenv("FLAKE_FOLDER", str(tmp_path / "flakes"))


def run(repository, *words: str, stack: Path | None = None):
    root = stack or repository.path.parent / "stack"
    return CliRunner().invoke(
        cli,
        [
            "--stack",
            str(root),
            "attribute",
            "--repo",
            str(repository.path),
            "--base",
            "base",
            "--merged",
            "merged",
            *words,
        ],
        standalone_mode=False,
    )


def test_whose_failures(repository, flaking):
    done = run(repository, "--format", "json", "--", "test/test_a.py", "test/test_b.py", "test/test_c.py")
    table = json.loads(done.stdout)
    assert {row["test"]: row["word"] for row in table["summary"]["tests"]} == {
        "test/test_a.py::test_value": "merge",
        "test/test_a.py::test_always_red": "before",
        "test/test_a.py::test_flake": "flake",
        "test/test_a.py::TestInside::test_mended": "mended",
        "test/test_a.py::test_gone": "gone",
        "test/test_a.py::test_new": "new",
        "test/test_b.py": "new",
        "test/test_b.py::test_b": "gone",
    }
    assert done.return_value == 1 and table["summary"]["runs"] == 3
    assert [row["path"] for row in table["findings"]] == ["test/test_a.py", "test/test_a.py", "test/test_b.py"]
    assert table["summary"]["before"][0] in ("5P/2F/1S", "4P/3F/1S") and table["summary"]["absent"]["base"] == [
        "test/test_c.py"
    ]


def test_green_is_run_once_and_clean(repository):
    done = run(repository, "--format", "json", "--", "test/test_a.py::test_green", "test/test_c.py")
    assert done.return_value == 0 and json.loads(done.stdout)["summary"]["runs"] == 1


def test_what_cannot_be_run_is_not_judged(repository, tmp_path):
    assert run(repository, "--", "--no-such-option").return_value == 2
    done = run(repository, "--python", str(tmp_path / "gone"), "--", "test/test_b.py")
    assert done.return_value == 2 and "cannot be run" in done.stdout and "**not judged**" in done.stdout
    slow = run_pytest(repository.path, ["test/test_c.py"], Runner(Path(sys.executable), timeout=0.01))
    assert "did not end" in slow.problem


@pytest.mark.parametrize(("selection", "said"), [
    (["test/misspelt.py"], "test/misspelt.py is on neither tree"),
    (["test/test_b.py", "test/misspelt.py"], "test/misspelt.py is on neither tree"),
    (["test/test_a.py", "-k", "nothing_is_called_so"], "no test was run"),
])  # fmt: skip
def test_a_selection_that_runs_nothing_is_not_green(repository, selection, said):
    """A misspelt path was "nothing differs", exit code 0."""
    done = run(repository, "--repeat", "1", "--", *selection)
    assert done.return_value in (1, 2) and said in done.stdout and "nothing differs" not in done.stdout


def test_a_worktree_runs_no_hook_and_no_filter_and_is_gone_after(repository, tmp_path):
    proof = tmp_path / "ran"
    write_files(
        repository.path,
        {".git/hooks/post-checkout": f"#!/bin/sh\ntouch {proof}\n", ".git/info/attributes": "*.txt filter=evil\n"},
    )
    (repository.path / ".git/hooks/post-checkout").chmod(0o755)
    git(repository.path, "config", "filter.evil.smudge", f"touch {proof}; cat")
    git(repository.path, "config", "filter.evil.process", f"touch {proof}")
    with scratch_worktree(repository, "base") as folder:
        assert (folder / "words.txt").read_text() == "LATER\nLATER\n"
        assert git(folder, "ls-files").splitlines() == sorted(BASE)
    assert not proof.exists() and not folder.exists()
    assert len(git(repository.path, "worktree", "list").splitlines()) == 1


def test_words():
    def word(base, merged):
        rows = attribute(
            [Run({"t": each} if each else {}) for each in base], [Run({"t": each} if each else {}) for each in merged]
        )
        return rows[0].word if rows else ""

    assert (
        word(["passed"], ["failed"]) == "merge"
        and word(["skipped"], ["error"]) == "merge"
        and word([None], ["failed"]) == "new"
    )
    assert (
        word(["error"], ["failed"]) == "before"
        and word(["failed"], ["passed"]) == "mended"
        and word(["failed"], [None]) == "gone"
    )
    assert (
        word(["passed", "passed"], ["failed", "passed"]) == "flake"
        and word(["passed", "failed"], ["failed", "failed"]) == "flake"
    )
    assert word(["passed"], ["passed"]) == word(["passed"], ["skipped"]) == word([None], ["passed"]) == ""


DONE = """
[[item]]
id = "later"
title = "leftover markers"
command = "git grep -h LATER -- words.txt"
figure = "lines"
must = "no-more"

[[item]]
id = "suite"
command = "python -m pytest -q test/test_a.py -k 'value or green'"
figure = '(\\d+) failed'

[[item]]
id = "lint"
figure = "lint"
must = "zero"

[[item]]
id = "none"
command = "no-such-program"
"""


def test_the_definition_of_done(repository, tmp_path):
    write_files(tmp_path, {"stack.toml": 'name = "s"\n', "checks/done.toml": DONE})
    done = run(repository, "--done", "--format", "json", stack=tmp_path)
    held = {
        row["id"]: (row["before"], row["after"], row["result"]) for row in json.loads(done.stdout)["summary"]["done"]
    }
    assert held == {
        "later": (2, 1, "held"),
        "suite": (0, 1, "broken"),
        "lint": (0, 0, "held"),
        "none": (None, None, "not judged"),
    }
    assert done.return_value == 1


def test_no_definition_of_done_is_said(repository):
    done = run(repository, "--done")
    assert isinstance(done.exception, StackctlError) and "done.toml" in str(done.exception) and "stackctl explain done" in str(done.exception)


def test_without_a_selection_no_figures_are_shown(repository, tmp_path):
    write_files(tmp_path, {"stack.toml": 'name = "s"\n', "checks/done.toml": '[[item]]\nid = "a"\ncommand = "true"\n'})
    done = run(repository, "--done", stack=tmp_path)
    assert done.return_value == 0 and done.stdout.startswith("## stackctl attribute: the definition of done alone\n") and "0P/0F" not in done.stdout


def test_the_page_shows_what_is_taken(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", page_of("done"), re.DOTALL)
    write_files(tmp_path, {"checks/done.toml": example})
    assert [item.figure for item in load_done(tmp_path)] == [r":(\d+)", "exit", "lint"]


def test_mistakes_in_the_definition_of_done(tmp_path):
    write_files(
        tmp_path,
        {
            "checks/done.toml": "[[item]]\nid = 'a'\ncomand = 'x'\nmust = 'grow'\nfigure = '('\n[[item]]\ncommand = 'x'\nfigure = 'ab'\n"
        },
    )
    with pytest.raises(StackctlError) as caught:
        load_done(tmp_path)
    said = str(caught.value)
    for words in (
        "no key 'comand'; did you mean 'command'?",
        "item 1 needs a command",
        "must is one of",
        "is no regular expression",
        "item 2 needs an id",
        "needs one group",
    ):
        assert words in said
    assert load_done(tmp_path / "checks") == []
