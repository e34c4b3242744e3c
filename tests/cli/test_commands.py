"""What people expect of the program: help, exit codes, JSON alone on stdout, quiet, colours, the same again changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from stackctl import __version__
from stackctl.cli.main import COMMANDS
from tests.cli.hostile import ENTRIES, HOST, SERVING, bench
from tests.support import ROOT, commit_files, write_files

BRANCH = "stack-0.5.23"
KEYS = {"schema", "command", "entries", "ledger", "summary", "findings"}
ROW = {"kind", "level", "entry", "plant", "path", "line", "symbol", "message", "evidence", "action"}


@pytest.fixture
def at(tmp_path):
    return bench(tmp_path)


def test_version(at):
    assert at.raw("--version").stdout.decode().strip().endswith(__version__)


@pytest.mark.parametrize("words", [["--help"], ["-h"], []])
def test_the_commands_are_listed_with_one_line_each(at, words):
    done = at.raw(*words)
    text = (done.stdout + done.stderr).decode()
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert done.returncode == (0 if words else 2)


@pytest.mark.parametrize("name", [name for name, (module, _) in COMMANDS.items() if (ROOT / f"{module.replace('.', '/')}.py").is_file()])
def test_every_command_has_help(at, name):
    done = at.run(name, "--help")
    assert done.code == 0 and "Usage: " in done.out and done.err == ""


@pytest.mark.parametrize("words", [["aply"], ["apply"], ["apply", "--ontoo", "x"], ["show"], ["show", "x"], ["verify", "--format", "xml"], ["list", "extra"]])
def test_bad_usage_is_two_and_says_what(at, words):
    done = at.run(*words)
    assert done.code == 2 and done.err.strip() and done.out == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(at, shell):
    done = at.run("completion", shell)
    assert done.code == 0 and "_STACKCTL_COMPLETE" in done.out
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.out.encode(), check=True)


def test_completion_offers_the_commands(at):
    words = {"_STACKCTL_COMPLETE": "bash_complete", "COMP_WORDS": "stackctl ver", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'stackctl'; from stackctl.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=at.environment(**words), capture_output=True, check=False)
    assert b"verify" in done.stdout and b"Traceback" not in done.stderr


def test_list_and_show(at):
    listed = at.run("list")
    assert [line.split()[:2] for line in listed.out.splitlines()] == [["1", "permanent"], ["2", "permanent"]]
    assert [row["plants"] for row in at.run("list", "--format", "json").json["entries"]] == [3, 2]
    shown = at.run("show", "1")
    assert shown.code == 0 and shown.out.startswith("1 Worker\n") and "sglang.srt.serving:Serving.handle" in shown.out
    assert [plant["id"] for plant in at.run("show", "1", "--format", "json").json["summary"]["plants"]] == ["worker", "import", "convert"]
    gone = at.run("show", "9")
    assert gone.code == 2 and "no entry 9 in stack stack" in gone.err and "hint: see: stackctl list" in gone.err


def test_the_stack_is_found_from_the_current_folder_upwards(at):
    folder = at.stack / "entries" / "001-worker"
    assert at.raw("list", cwd=folder).returncode == 0
    away = at.raw("list", cwd=at.folder)
    assert away.returncode == 2 and b"no stack.toml here or in a folder above" in away.stderr and b"--stack DIR" in away.stderr
    assert at.raw("--stack", folder, "list").returncode == 0


def test_dry_run_touches_nothing(at):
    before = sorted((at.repo / ".git").rglob("*")), at.refs()
    done = at.apply("--dry-run")
    assert done.code == 0 and "nothing was written" in done.out and f"  {HOST}" in done.out
    assert (sorted((at.repo / ".git").rglob("*")), at.refs()) == before
    assert at.apply("--dry-run", "--format", "json").json["summary"]["dry_run"] is True


def test_apply_makes_one_commit_an_entry_with_trailers_and_the_second_changes_nothing(at):
    head = at.git("rev-parse", "HEAD")
    first = at.apply()
    assert first.code == 0 and f"branch {BRANCH}: 5 halves planted in 2 commits" in first.out
    log = at.git("log", "--format=%(trailers:key=Stack-Entry,valueonly)|%(trailers:key=Stack-Plants,valueonly)|%(trailers:key=Stack-Disposition,valueonly)", f"v0.5.23..{BRANCH}")
    assert log.replace("\n", "") == "2|data, start|permanent1|worker, import, convert|permanent"
    tip = at.git("rev-parse", BRANCH)
    second = at.apply()
    assert second.code == 0 and second.out.endswith(f"branch {BRANCH}: nothing to do\n")
    assert at.git("rev-parse", BRANCH) == tip
    assert at.git("rev-parse", "HEAD") == head and at.git("status", "--porcelain") == ""
    assert at.verify("--at", BRANCH).code == 0


def test_only_and_without(at):
    assert at.apply("--only", "2").code == 0
    assert at.git("diff", "--name-only", "v0.5.23", BRANCH).splitlines() == ["data.json", HOST]
    assert at.apply("--without", "2").code == 0
    assert at.verify("--at", BRANCH, "--only", "1").code == 0
    assert at.git("rev-list", "--count", f"v0.5.23..{BRANCH}") == "2"
    assert "no entry 7" in at.apply("--only", "7").err
    rows = at.verify("--at", BRANCH, "--without", "1", "--format", "json").json["entries"]
    assert [row["entry"] for row in rows] == ["2"]


@pytest.mark.parametrize("words", [
    ["verify", "--at", "v0.5.23"], ["apply", "--onto", "v0.5.23"], ["replant", "--at", "main", "--branch", "new"], ["verify", "--tree", "{repo}"],
])  # fmt: skip
def test_json_is_one_object_alone_on_stdout(at, words):
    words = [word.format(repo=at.repo) for word in words]
    done = at.run(*words, "--repo", at.repo, "--format", "json")
    report = json.loads(done.out)
    assert done.err == "" and report.keys() == KEYS and report["schema"] == 1 and report["command"] == words[0]
    assert len(report["ledger"]) == 5 and all({"kind", "entry", "plant", "path"} <= row.keys() for row in report["ledger"])
    assert all(finding.keys() == ROW for finding in report["findings"])
    assert done.code == (1 if report["findings"] else 0)
    assert sum(report["summary"]["plants"].values()) == 5


def test_exit_codes(at):
    assert at.verify("--at", "v0.5.23").code == 1
    assert at.verify("--at", "nope").code == 2
    at.apply()
    assert at.verify("--at", BRANCH).code == 0


def test_a_bug_of_ours_is_three_and_its_traceback_goes_to_a_file(at):
    code = "import stackctl.cli.list as l, stackctl.cli.main as m\nl.command.callback = lambda **k: 1 / 0\nm.main()"
    done = subprocess.run([sys.executable, "-c", code, "--stack", str(at.stack), "list"], env=at.environment(TMPDIR=str(at.folder)), capture_output=True, check=False)
    assert done.returncode == 3 and b"Traceback" not in done.stderr
    (report,) = at.folder.glob("stackctl-bug-*.txt")
    assert str(report).encode() in done.stderr and "ZeroDivisionError" in report.read_text()


def test_no_colour_where_output_is_no_terminal_and_with_no_color(at):
    assert b"\x1b[" not in at.raw("--stack", at.stack, "verify", "--repo", at.repo, "--at", "v0.5.23").stdout
    pty = pytest.importorskip("pty")
    for env, coloured in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        ours, theirs = pty.openpty()
        words = [sys.executable, "-m", "stackctl", "--stack", str(at.stack), "verify", "--repo", str(at.repo), "--at", "v0.5.23"]
        with subprocess.Popen(words, env=at.environment(**env), stdout=theirs, stderr=subprocess.PIPE):
            os.close(theirs)
            seen = b""
            while True:
                try:
                    chunk = os.read(ours, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                seen += chunk
        os.close(ours)
        colours = [code for code in (b"\x1b[31m", b"\x1b[1;31m", b"[31m") if code in seen]
        assert bool(colours) is coloured, seen[:400]


def test_quiet_keeps_findings_and_drops_messages(at):
    at.commit({HOST: SERVING.replace("setup()", "other()")})
    assert at.apply().code == 1
    loud = at.apply("--abort")
    assert loud.code == 0 and "is deleted" in loud.err
    assert at.apply().code == 1
    assert at.raw("--stack", at.stack, "--quiet", "apply", "--repo", at.repo, "--onto", "v0.5.23", "--abort").stderr == b""
    assert b"lost" in at.raw("--stack", at.stack, "-q", "verify", "--repo", at.repo, "--at", "v0.5.23").stdout


def test_a_reader_that_goes_away(at):
    words = [sys.executable, "-m", "stackctl", "--stack", str(at.stack), "verify", "--repo", str(at.repo), "--at", "v0.5.23", "--format", "json"]
    with subprocess.Popen(words, env=at.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert b"Traceback" not in err and b"bug of ours" not in err and b"BrokenPipe" not in err


# What is left for a person


def test_a_unit_left_out_is_pending_until_it_can_be_placed(at):
    at.commit({HOST: SERVING.replace("return self.convert(request)", "return self.convert(self.convert(request))")})
    done = at.apply()
    assert done.code == 1 and "ambiguous 1/convert" in done.out
    text = at.git("show", f"{BRANCH}:{HOST}")
    assert "from sglang.srt.worker import run" in text and "await" not in text and "ours()" in text
    assert [path.name for path in (at.repo / ".git/stackctl/pending").iterdir()] == [f"{BRANCH}.json"]
    tip = at.git("rev-parse", BRANCH)
    again = at.apply("--continue")
    assert again.code == 1 and at.git("rev-parse", BRANCH) == tip
    entry = ENTRIES["entries/001-worker/entry.toml"].replace('through = "run"', 'through = "run"\ncount = 2')
    write_files(at.stack, {"entries/001-worker/entry.toml": entry})
    at.git("update-ref", f"refs/heads/{BRANCH}", tip)
    assert at.apply("--continue").code in (0, 1)


def test_abort_deletes_only_a_branch_of_its_own_making(at):
    at.commit({HOST: SERVING.replace("setup()", "other()")})
    before = at.refs()
    assert at.apply().code == 1
    assert at.apply("--abort").code == 0
    assert at.refs() == before
    assert "nothing is pending" in at.apply("--abort").err
    assert "nothing is pending" in at.apply("--continue").err


def test_abort_takes_a_branch_that_was_there_back(at):
    at.git("checkout", "--quiet", "-b", "mine")
    mine = commit_files(at.repo, {HOST: SERVING.replace("setup()", "other()"), "mine.txt": "x"}, "mine")
    at.git("checkout", "--quiet", "main")
    assert at.run("replant", "--repo", at.repo, "--at", "mine").code == 1
    assert at.git("rev-parse", "mine") != mine
    assert at.run("replant", "--repo", at.repo, "--at", "mine").code == 1  # once more: where it was is still known
    done = at.apply("--abort", "--branch", "mine")
    assert done.code == 0 and f"is back at {mine[:12]}" in done.err
    assert at.git("rev-parse", "mine") == mine


def test_abort_refuses_a_branch_that_moved_since(at):
    at.commit({HOST: SERVING.replace("setup()", "other()")})
    assert at.apply().code == 1
    at.git("checkout", "--quiet", BRANCH)
    assert "is checked out" in at.apply("--abort").err
    mine = commit_files(at.repo, {"mine.txt": "x"}, "mine")
    at.git("checkout", "--quiet", "main")
    done = at.apply("--abort")
    assert done.code == 2 and "has moved since" in done.err and at.git("rev-parse", BRANCH) == mine


# Replant and verify


def test_replant_puts_back_what_a_merge_took_and_says_so(at):
    at.apply()
    whole = at.git("rev-parse", f"{BRANCH}^{{tree}}")
    at.git("checkout", "--quiet", BRANCH)
    (at.repo / "python/sglang/srt/worker.py").unlink()
    commit_files(at.repo, {HOST: SERVING}, "merge")
    at.git("checkout", "--quiet", "main")
    verified = at.verify("--at", BRANCH)
    assert verified.code == 1 and all(f"lost {name}" in verified.out for name in ("1/worker", "1/import", "1/convert", "2/start"))
    done = at.run("replant", "--repo", at.repo, "--at", BRANCH)
    assert done.code == 0 and "4 halves planted in 2 commits" in done.out
    assert at.git("rev-parse", f"{BRANCH}^{{tree}}") == whole
    assert at.run("replant", "--repo", at.repo, "--at", BRANCH).out.endswith("nothing to do\n")


def test_replant_at_a_bare_commit_needs_a_branch(at):
    head = at.git("rev-parse", "HEAD")
    done = at.run("replant", "--repo", at.repo, "--at", head)
    assert done.code == 2 and "is not a branch" in done.err and "--branch NAME" in done.err
    assert at.run("replant", "--repo", at.repo, "--at", head, "--branch", "new").code == 0
    at.git("branch", "other", "main")
    assert "branch other is there already" in at.run("replant", "--repo", at.repo, "--at", "new", "--branch", "other").err


def test_verify_a_folder(at):
    assert at.verify("--tree", at.repo).code == 1
    at.git("checkout", "--quiet", "-b", BRANCH)
    at.apply("--checkout")
    assert at.run("verify", "--tree", at.repo).code == 0  # no repository is needed
    gone = at.run("verify", "--tree", at.folder / "nothing")
    assert gone.code == 2 and "no such folder" in gone.err


def test_a_release_that_cannot_be_told(at, tmp_path):
    at.git("tag", "--delete", "v0.5.23")
    at.git("rm", "-q", "python/sglang/version.py")
    at.git("commit", "-qm", "none")
    for words in (["verify"], ["verify", "--tree", str(at.repo)], ["apply", "--onto", "HEAD"]):
        done = at.run(*words, "--repo", at.repo)
        assert done.code == 2 and "cannot tell which SGLang release this tree is" in done.err and "--release 0.5.23" in done.err
        assert at.run(*words, "--repo", at.repo, "--release", "0.5.23").code in (0, 1)
    assert "'newest' is not a release" in at.verify("--release", "newest").err


def test_verify_never_writes_to_the_tree_nor_runs_it(at):
    at.commit({"python/sglang/srt/__init__.py": "open('/tmp/stackctl-ran', 'w')\n", "conftest.py": "1 / 0\n"})
    before = {path: path.stat().st_mtime_ns for path in at.repo.rglob("*")}
    at.verify("--at", "v0.5.23")
    at.verify("--tree", at.repo)
    assert {path: path.stat().st_mtime_ns for path in at.repo.rglob("*")} == before
