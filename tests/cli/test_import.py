"""From an empty folder to a fork on the next release, by the commands a maintainer types."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stackctl.cli.main import cli
from tests.carry.fork import PACKAGE, THEIRS, upstream
from tests.support import git, write_files


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in the stack's folder; exit code and stdout."""
    (tmp_path / "stack").mkdir()
    monkeypatch.chdir(tmp_path / "stack")

    def run(*words: object, code: int = 0) -> str:
        done = CliRunner().invoke(cli, ["-q", *map(str, words)], standalone_mode=False)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert (done.return_value or 0) == code, done.output
        return done.output

    return run


def test_init_import_apply_export(tmp_path, run):
    repository = upstream(tmp_path / "up")
    run("init", "--name", "fork")
    assert "add-our-name" in run("import", "v0.5.1..fork", "--base", "v0.5.1", "--repo", repository.path)
    run("apply", "--onto", "v0.5.1", "--branch", "same", "--repo", repository.path)
    assert git(repository.path, "rev-parse", "same^{tree}") == git(repository.path, "rev-parse", "fork^{tree}")
    told = json.loads(run("apply", "--onto", "v0.5.2", "--repo", repository.path, "--format", "json"))
    assert {row["kind"] for row in told["ledger"]} == {"planted", "reconciled"}
    assert all(row["path"] for row in told["ledger"])
    assert "nothing to do" in run("apply", "--onto", "v0.5.2", "--repo", repository.path)
    run("verify", "--at", "fork-0.5.2", "--repo", repository.path)
    run("export", tmp_path / "out", "--onto", "v0.5.2", "--repo", repository.path)
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert run("diff", 2).startswith("From ")
    assert "removed entries/003" in run("remove", 3)


def test_a_series_that_does_not_stand_on_its_base_imports_nothing(tmp_path, run):
    from stackctl.model.errors import StackctlError

    repository = upstream(tmp_path / "up")
    run("init")
    write_files(
        tmp_path,
        {"series/0001-x.patch": "--- a/tool.sh\n+++ b/tool.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo two\n+echo 2\n"},
    )
    done = CliRunner().invoke(
        cli, ["import", str(tmp_path / "series"), "--base", "v0.5.1", "--repo", str(repository.path)]
    )
    assert isinstance(done.exception, StackctlError) and "nothing was imported" in done.exception.message
    assert not list((tmp_path / "stack" / "entries").glob("*-*"))


def test_what_waits_for_a_person_is_red_until_it_is_accepted(tmp_path, run):
    soft = f"{PACKAGE}/soft.py"
    repository = upstream(tmp_path / "up", {**THEIRS, soft: "def other(x):\n    return x + 0\n"})
    run("init", "--name", "fork")
    run("import", "v0.5.1..fork", "--base", "v0.5.1", "--repo", repository.path)
    told = json.loads(run("apply", "--onto", "v0.5.2", "--repo", repository.path, "--format", "json", code=1))
    (found,) = [finding for finding in told["findings"] if finding["level"] == "error"]
    assert (found["kind"], found["path"], found["entry"]) == ("host-gone", soft, "2") and found["message"].startswith(
        "unit 1:"
    )
    run("apply", "--onto", "v0.5.2", "--repo", repository.path, "--continue", "--accept", "1")


def test_a_series_with_numbers_in_brackets_is_imported_and_applied(tmp_path, run):
    repository = upstream(tmp_path / "up")
    run("init", "--name", "fork")
    for number, commit in ((41, "fork~2"), (207, "fork~1")):
        write_files(tmp_path / "series", {f"[{number:03d}] ours.patch": git(repository.path, "format-patch", "-1", "--stdout", commit) + "\n"})
    assert [line.split()[0] for line in run("import", tmp_path / "series", "--base", "v0.5.1", "--repo", repository.path).splitlines()] == ["41", "207"]
    run("apply", "--onto", "v0.5.1", "--branch", "same", "--repo", repository.path)
    assert git(repository.path, "rev-parse", "same^{tree}") == git(repository.path, "rev-parse", "fork~1^{tree}")
    run("verify", "--at", "same", "--repo", repository.path)
