"""`stackctl list` and `show`: the board and the matrix, in a pipe, as JSON and on a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from tests.cli.hostile import ENTRIES, HOST, SERVING, bench

BRANCH = "stack-0.5.23"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def at(tmp_path):
    return bench(tmp_path)


@pytest.fixture
def broken(at):
    """The stack on 0.5.23 and, with one half taken out again, on the branch `broken`; 0.5.22 has no host."""
    at.git("checkout", "--quiet", "--orphan", "old")
    at.git("rm", "-rfq", ".")
    at.commit({"python/sglang/version.py": '__version__ = "0.5.22"\n', "data.json": '{\n  "theirs": 2\n}\n'}, "v0.5.22")
    at.git("checkout", "--quiet", "--detach", "v0.5.23")
    assert at.apply().code == 0
    at.git("checkout", "--quiet", "-b", "broken", BRANCH)
    head, start = SERVING.split("\n\ndef start")[0], at.git("show", f"{BRANCH}:{HOST}").split("\n\ndef start")[1]
    at.commit({HOST: f"{head}\n\ndef start{start}\n"}, "lost")  # entry 1's two halves in the class and above it
    return at


def on_terminal(at, *words, width=80):
    """The program's output on a pseudo-terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    command = [sys.executable, "-m", "stackctl", "--stack", str(at.stack), *map(str, words)]
    environment = {key: value for key, value in at.environment(TERM="xterm-256color").items() if key not in ("COLUMNS", "NO_COLOR")}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment, cwd=at.folder):
        os.close(theirs)
        parts = []
        while True:
            try:
                parts.append(os.read(ours, 65536))
            except OSError:  # the other end is closed
                break
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_the_board_has_what_needs_a_person_first(broken):
    done = broken.run("list", "--repo", broken.repo, "--at", "broken")
    lines = done.out.splitlines()
    assert done.code == 0 and lines[0] == "half 1" and "missing: import, convert" in lines[2] and lines[3] == "whole 1"
    assert [line.split() for line in lines[6:9]] == [["0.5.22", "0.5.23"], ["1", "!", "O"], ["2", "!", "O"]]
    assert lines[9] == "O ours: to be planted; ! its host is not there: re-anchor"


def test_the_matrix_is_as_the_restart_reports(broken):
    table = broken.run("list", "--repo", broken.repo, "--format", "json").json["summary"]["matrix"]
    report = broken.run("report", "restart", "--repo", broken.repo, "--since", BRANCH, "--format", "json").json
    assert table == report["summary"]["matrix"] and table["releases"] == ["0.5.22", "0.5.23"]
    assert table["rows"]["1"] == ["re-anchor", "ours"]
    none = broken.run("list", "--repo", broken.repo, "--at", BRANCH, "--releases", "0", "--format", "json").json
    assert none["summary"]["matrix"] is None and none["summary"]["entries"] == {"whole": 2}


def test_json_has_the_shape_of_every_command(broken):
    for words in (["list"], ["show", "1"]):
        bare = broken.run(*words, "--format", "json").json
        judged = broken.run(*words, "--repo", broken.repo, "--at", "broken", "--format", "json").json
        for table in (bare, judged):
            assert list(table) == ["schema", "command", "entries", "ledger", "summary", "findings"] and table["command"] == words[0]
        assert bare["entries"][0]["kind"] == "" and bare["summary"]["tree"] is None
        assert judged["entries"][0]["kind"] == "half" and judged["entries"][0]["missing"] == ["import", "convert"]
        assert judged["summary"]["release"] == "0.5.23"
    assert [row["kind"] for row in judged["ledger"]] == ["intact", "lost", "lost"] and set(judged["ledger"][0]) == set(bare["ledger"][0])


def test_show_says_what_became_of_each_half(broken):
    done = broken.run("show", "1", "--repo", broken.repo, "--at", "broken")
    assert done.out.startswith("1 Worker: half\n")
    assert re.search(rf"lost +convert +reroute +{HOST}:\d+ Serving.handle\n +`self.convert` is called directly", done.out)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_on_a_terminal_it_is_coloured_and_fits(broken, width):
    for words in (["list"], ["show", "1"]):
        text = on_terminal(broken, *words, "--repo", broken.repo, "--at", "broken", width=width)
        plain = COLOUR.sub("", text)
        assert "half" in plain and "\x1b[31m" in text or "\x1b[1;31m" in text
        assert max(map(len, plain.splitlines())) <= width
        assert re.search(r"SGLang 0\.5\. .*22 +23", plain)


def test_what_does_not_fit_is_said(broken):
    text = COLOUR.sub("", on_terminal(broken, "list", "--repo", broken.repo, width=33))
    assert "1 older releases do not fit here" in " ".join(text.split())


def test_in_a_pipe_there_is_no_colour_and_rich_is_not_loaded(at):
    code = "import sys; sys.argv = ['stackctl', '--stack', sys.argv[1], 'list']\nfrom stackctl.cli.main import main\ntry: main()\nfinally: assert 'rich' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(at.stack)], env=at.environment(), capture_output=True, check=False)
    assert done.returncode == 0 and b"\x1b" not in done.stdout and b"Worker" in done.stdout


def test_hostile_text_cannot_steer_a_terminal(tmp_path):
    manifest = ENTRIES["entries/001-worker/entry.toml"].replace('"Worker"', r'"[red]\u001b]8;;http://x\u0007\u202e[/] `a`"')
    manifest = manifest.replace("[[plant]]", r'notes = "[link](http://x) \u001b[2J"' + "\n\n[[plant]]", 1)
    at = bench(tmp_path, entries={**ENTRIES, "entries/001-worker/entry.toml": manifest})
    for words in (["list"], ["show", "1"]):
        for text in (at.run(*words).out, COLOUR.sub("", on_terminal(at, *words))):
            assert "[red]" in text and not set("\x1b\x07\u202e") & set(text)


def test_a_stack_without_entries_says_what_to_do(tmp_path):
    at = bench(tmp_path, entries={"stack.toml": ENTRIES["stack.toml"]})
    done = at.run("list")
    assert done.code == 0 and done.out == "" and "stackctl import" in done.err
