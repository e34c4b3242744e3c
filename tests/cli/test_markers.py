"""`stackctl markers` as a person runs it: count, decide, hold."""

from __future__ import annotations

import pytest

from tests.cli.hostile import ENTRIES, HOST, UPSTREAM, Bench, bench
from tests.support import commit_files, git

MARKED = "# MERGE-TODO B4 (61): one\nx = 1\n# MERGE-TODO B4 (62,61): two\n# MERGE-TODO B1: other\n"


@pytest.fixture
def at(tmp_path) -> Bench:
    made = bench(tmp_path, {**UPSTREAM, "theirs.py": "# MERGE-TODO B9: upstream's own\n"})
    commit_files(made.repo, {"notes.py": MARKED}, "merge")
    git(made.repo, "tag", "before")
    return made


def markers(at: Bench, *more: str):
    return at.run("markers", "--repo", at.repo, *more)


def test_a_count_by_batch_and_entry(at):
    ran = markers(at)
    assert ran.code == 0
    assert ran.out.endswith("batch B1: 1\nbatch B4: 2\n3 markers left: entry 61 2, entry 62 1, of none 1\n")
    assert "notes.py:1: warning: marker 61: marker " in ran.out
    assert [m["line"] for m in markers(at, "--format", "json").json["summary"]["markers"]] == [1, 3, 4]


def test_a_decision_and_the_other_batches(at):
    first = markers(at, "--format", "json").json["summary"]["markers"][0]
    commit_files(at.repo, {"notes.py": MARKED.split("\n", 1)[1]}, "one is decided")
    lost = markers(at, "--since", "before")
    assert lost.code == 1 and "is gone and no decision is on record: one" in lost.out

    done = markers(at, "--since", "before", "--consume", first["id"], "--decision", "RE-PLANT the one dropped line")
    assert done.code == 0
    ran = markers(at, "--since", "before", "--batch", "B4")
    assert ran.code == 0 and "batch B1: 1 of 1, INTACT\nbatch B4: 1 of 2, 1 consumed, 0 gone without a decision\n" in ran.out
    assert 'decision = "RE-PLANT the one dropped line"' in (at.stack / "checks/markers.toml").read_text()

    commit_files(at.repo, {"notes.py": "x = 1\n"}, "too much")
    foreign = markers(at, "--since", "before", "--batch", "B4")
    assert foreign.code == 1 and "batch B1 is not intact" in foreign.out


def test_a_syntax_of_ones_own(at):
    pattern = r"'@later\[(?P<batch>\w+)/(?P<entries>\d+)\] (?P<text>.*)'"
    (at.stack / "stack.toml").write_text(f"{ENTRIES['stack.toml']}[markers]\npattern = {pattern}\n")
    commit_files(at.repo, {HOST: UPSTREAM[HOST] + "# @later[N7/201] fold\n"}, "merge")
    assert markers(at).out.endswith("batch N7: 1\n1 marker left: entry 201 1\n")


@pytest.mark.parametrize(("table", "message"), [
    ("[markers]\npattern = '('\n", "markers.pattern is not a regular expression"),
    ("[markers]\npattern = 'x(?P<text>.)'\n", "markers.pattern has no group (?P<batch>...)"),
    ("[markers]\npattern = 3\n", "markers.pattern is not a regular expression"),
    ("[markers]\npatern = 'x'\n", "did you mean 'pattern'?"),
    ("markers = 3\n", "markers must be a table"),
])  # fmt: skip
def test_a_syntax_that_is_none(at, table, message):
    (at.stack / "stack.toml").write_text(f"{ENTRIES['stack.toml']}{table}")
    ran = markers(at)
    assert ran.code == 2 and message in ran.err


@pytest.mark.parametrize("options", [("--consume", "abc"), ("--decision", "x"), ("--batch", "B4")])
def test_options_that_go_together(at, options):
    assert markers(at, *options).code == 2
