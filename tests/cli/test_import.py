"""From an empty folder to a fork on the next release, by the commands a maintainer types."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from stackctl.cli.main import cli
from tests.carry.fork import PACKAGE, THEIRS, upstream
from tests.support import commit_files, git, repository_of, write_files


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


_OLD = {
    "python/sglang/version.py": '__version__ = "0.5.1"\n',
    "python/sglang/run.py": "def run(x):\n    return x\n\n\ndef last(x):\n    return x\n",
    "python/sglang/moved.py": "".join(f"N{n} = {n}\n" for n in range(20)),
    "python/sglang/dos.py": "def dos(x):\r\n    return x\r\n\r\n\r\nD = 1\r\n",
    "python/sglang/short.py": "S = 1",
    "python/sglang/tail.py": "T = 1\nU = 2",
    "python/sglang/gone.py": "G = 1\n",
    "tool.sh": "#!/bin/sh\necho one\n",
    "notes \N{GREEK SMALL LETTER ALPHA}.md": "one  \ntwo\t\n",
}  # fmt: skip


def _series(folder):
    """A repository of one release and a branch of commits that do what is easy to get wrong."""
    repository_of(folder, _OLD)
    git(folder, "tag", "v0.5.1")
    git(folder, "checkout", "-q", "-b", "fork")
    dos = _OLD["python/sglang/dos.py"]
    commit_files(folder, {"python/sglang/run.py": _OLD["python/sglang/run.py"].replace("return x\n\n", "return x + 1  \n\n", 1)}, "A space at a line's end")
    commit_files(folder, {"python/sglang/dos.py": dos.replace("return x\r\n", "return x + 1\r\n"), "dos.txt": "new\r\nfile\r\n"}, "CRLF")
    commit_files(folder, {"python/sglang/short.py": "S = 1\n", "python/sglang/tail.py": "T = 3\nU = 2", "no-end.txt": "one\ntwo"}, "Last lines")
    (folder / "tool.sh").chmod(0o755)
    commit_files(folder, {}, "Only a mode")
    (folder / "python/sglang/gone.py").unlink()
    os.symlink("sglang/run.py", folder / "python/link")
    commit_files(folder, {"python/sglang/new.py": "", "python/sglang/deep/er/new.py": "N = 1\n"}, "Gone and new, one of them empty")
    git(folder, "mv", "python/sglang/moved.py", "python/sglang/there.py")
    commit_files(folder, {"python/sglang/there.py": _OLD["python/sglang/moved.py"].replace("N9 = 9\n", "N9 = 90\n")}, "Renamed and edited")
    commit_files(folder, {"notes \N{GREEK SMALL LETTER ALPHA}.md": "one  \n2\t\n"}, "A name that Git quotes")
    write_files(folder, {"run.sh": "#!/bin/sh\n", "own.sh": "#!/bin/sh\n"})
    (folder / "run.sh").chmod(0o755)
    (folder / "notes \N{GREEK SMALL LETTER ALPHA}.md").chmod(0o755)
    commit_files(folder, {"tool.sh": "#!/bin/sh\necho two\n"}, "A mode with a text, a new file with a mode")
    git(folder, "checkout", "-q", "main")


@pytest.mark.parametrize("options", [(), ("--no-renames",), ("--full-index", "--no-stat", "-U1")], ids=["renames", "no renames", "one line around"])
def test_import_then_apply_on_the_base_is_git_am_byte_for_byte(tmp_path, run, options):
    folder = tmp_path / "up"
    _series(folder)
    git(folder, "format-patch", "-q", "-o", str(tmp_path / "series"), *options, "v0.5.1..fork")
    git(folder, "checkout", "-q", "-b", "am", "v0.5.1")
    git(folder, "am", "-q", "--keep-cr", *sorted(map(str, (tmp_path / "series").iterdir())))
    assert git(folder, "rev-parse", "am^{tree}") == git(folder, "rev-parse", "fork^{tree}")
    git(folder, "checkout", "-q", "main")
    run("init", "--name", "fork")
    assert len(run("import", tmp_path / "series", "--base", "v0.5.1", "--repo", folder).splitlines()) == 8
    run("apply", "--onto", "v0.5.1", "--branch", "same", "--repo", folder)
    assert git(folder, "diff-tree", "-r", "--raw", "am", "same") == ""
    assert git(folder, "rev-parse", "same^{tree}") == git(folder, "rev-parse", "am^{tree}")
    steps = [git(folder, "log", "--format=%T", "--reverse", f"v0.5.1..{branch}") for branch in ("am", "same")]
    assert steps[0] == steps[1], "and so is the tree after each of the patches"
    run("verify", "--at", "same", "--repo", folder)
    assert "nothing to do" in run("apply", "--onto", "v0.5.1", "--branch", "same", "--repo", folder)


def test_a_patch_that_changes_a_mode_alone_is_planted_missed_and_carried(tmp_path, run):
    """It was judged whole wherever the bytes were there, and planted nowhere."""
    folder = tmp_path / "up"
    repository_of(folder, _OLD)
    git(folder, "tag", "v0.5.1")
    git(folder, "checkout", "-q", "-b", "fork")
    (folder / "tool.sh").chmod(0o755)
    commit_files(folder, {}, "Only a mode")
    git(folder, "checkout", "-q", "main")
    commit_files(folder, {"tool.sh": "#!/bin/sh\necho theirs\n", "python/sglang/version.py": '__version__ = "0.5.2"\n'}, "next")
    git(folder, "tag", "v0.5.2")
    run("init", "--name", "fork")
    run("import", "v0.5.1..fork", "--base", "v0.5.1", "--repo", folder)
    for onto in ("v0.5.1", "v0.5.2"):
        told = json.loads(run("apply", "--onto", onto, "--branch", f"on-{onto}", "--no-record", "--repo", folder, "--format", "json"))
        assert [row["path"] for row in told["ledger"]] == ["tool.sh"]
        assert git(folder, "ls-tree", f"on-{onto}", "tool.sh").startswith("100755")
        run("verify", "--at", f"on-{onto}", "--repo", folder)
        assert "nothing to do" in run("apply", "--onto", onto, "--branch", f"on-{onto}", "--no-record", "--repo", folder)
    git(folder, "checkout", "-q", "on-v0.5.2")
    (folder / "tool.sh").chmod(0o644)
    commit_files(folder, {}, "lost")
    git(folder, "checkout", "-q", "main")
    assert "has mode 100644, not 100755" in run("verify", "--at", "on-v0.5.2", "--repo", folder, code=1)
    run("replant", "--at", "on-v0.5.2", "--repo", folder)
    assert git(folder, "ls-tree", "on-v0.5.2", "tool.sh").startswith("100755")


def test_refresh_names_what_it_would_forget_and_does_it_on_a_word(tmp_path, run):
    from stackctl.model.errors import StackctlError

    soft = f"{PACKAGE}/soft.py"
    repository = upstream(tmp_path / "up", {**THEIRS, soft: "def other(x):\n    return x + 0\n"})
    run("init", "--name", "fork")
    run("import", "v0.5.1..fork", "--base", "v0.5.1", "--repo", repository.path)
    run("apply", "--onto", "v0.5.2", "--repo", repository.path, code=1)
    words = ["refresh", "1", "--at", "fork-0.5.2", "--repo", str(repository.path)]
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, StackctlError) and "2: python/sglang/soft.py" in done.exception.message
    told = run(*words, "--forget")
    assert told.splitlines() == ["recorded 001-add-our-name", "recorded 002-cap-in-doubles", "recorded 003-a-file-of-our-own"]
    run("apply", "--onto", "v0.5.2", "--branch", "again", "--repo", repository.path)
    assert git(repository.path, "rev-parse", "again^{tree}") == git(repository.path, "rev-parse", "fork-0.5.2^{tree}")


def test_a_file_without_a_diff_is_told(tmp_path, run):
    repository = upstream(tmp_path / "up")
    run("init", "--name", "fork")
    write_files(tmp_path / "series", {
        "040-ours.patch": git(repository.path, "format-patch", "-1", "--stdout", "fork~2") + "\n",
        "041-cut-off.patch": "From: somebody\nSubject: the rest was lost\n\nnot a patch\n",
    })  # fmt: skip
    said = run("import", tmp_path / "series", "--base", "v0.5.1", "--repo", repository.path).splitlines()
    assert ["041-cut-off.patch holds no diff" in line for line in said] == [False, True]
