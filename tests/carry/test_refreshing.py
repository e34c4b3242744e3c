"""Refresh: the entries follow the branch, and lose nothing in silence."""

from __future__ import annotations

import pytest

from stackctl.carry.apply import apply, replant
from stackctl.carry.refreshing import refresh
from stackctl.model.errors import StackctlError
from stackctl.plants.manifest import load_stack
from tests.carry.fork import BASE, OURS, PACKAGE, THEIRS, imported, upstream
from tests.support import commit_files, git

SOFT = f"{PACKAGE}/soft.py"
CAPPED = BASE[SOFT].replace("math.tanh(x)", "math.tanh(float(x))")


def files_of(stack):
    return {path: path.read_bytes() for path in stack.root.rglob("*") if path.is_file()}


def edited(repository, branch, files, message="edit"):
    git(repository.path, "checkout", "-q", branch)
    commit_files(repository.path, files, message)
    git(repository.path, "checkout", "-q", "main")


def test_refresh_records_an_edit_on_the_branch(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next")
    git(repository.path, "checkout", "-q", "next")
    commit_files(
        repository.path,
        {SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(float(x))").replace("y * 2", "y * 3")},
        "edit",
    )
    git(repository.path, "checkout", "-q", "main")
    assert "002-cap-in-doubles" in refresh(stack, repository, "next", 2)
    again = load_stack(stack.root)
    assert {entry.plants[0].options["base"] for entry in again.entries} == {"v0.5.2"}
    apply(again, repository, "v0.5.2", branch="fresh")
    assert git(repository.path, "rev-parse", "fresh^{tree}") == git(repository.path, "rev-parse", "next^{tree}")
    assert refresh(again, repository, "fresh", 2) == []


def test_an_edit_between_two_of_our_commits_is_recorded_too(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next", entries=stack.entries[:2])
    edited(repository, "next", {SOFT: CAPPED.replace("y * 2", "y * 3")})
    apply(stack, repository, "v0.5.2", branch="next", entries=stack.entries[2:])
    assert len(refresh(stack, repository, "next", 2)) == 3
    apply(load_stack(stack.root), repository, "v0.5.2", branch="fresh")
    assert git(repository.path, "rev-parse", "fresh^{tree}") == git(repository.path, "rev-parse", "next^{tree}")


def test_a_branch_merged_from_plain_commits_is_refused(tmp_path):
    """What replant put back on it was once recorded as all that the entry is."""
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    git(repository.path, "checkout", "-q", "-b", "merged", "v0.5.2")
    for title, files in OURS[::2]:
        commit_files(repository.path, files, title)
    git(repository.path, "checkout", "-q", "main")
    replant(stack, repository, "merged")
    before = files_of(stack)
    with pytest.raises(StackctlError, match=r"(?s)1: .*run.py.*no release of upstream's.*3: "):
        refresh(stack, repository, "merged", 2)
    assert files_of(stack) == before
    assert "002-cap-in-doubles" in refresh(stack, repository, "merged", 2, forget=True)


def test_a_branch_on_an_untagged_commit_of_upstream_is_recorded(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    git(repository.path, "tag", "-d", "v0.5.2")
    apply(stack, repository, "main", branch="next")
    edited(repository, "next", {"tool.sh": "#!/bin/sh\necho one\necho mine\n"})
    assert len(refresh(stack, repository, "next", 3)) == 3
    base = git(repository.path, "rev-parse", "main")
    assert {entry.plants[0].options["base"] for entry in load_stack(stack.root).entries} == {base}


def test_a_half_that_waits_is_not_forgotten(tmp_path):
    theirs = BASE[SOFT].replace("math.tanh(x)", "math.tanh(0)")
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: theirs})
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next")
    edited(repository, "next", {"tool.sh": "#!/bin/sh\necho one\necho ours\necho more\n"})
    before = files_of(stack)
    with pytest.raises(StackctlError, match=r"(?s)2: .*soft.py cap: .*float.*waits for a person") as caught:
        refresh(stack, repository, "next", 3)
    assert "--forget" in caught.value.hint and files_of(stack) == before
    edited(repository, "next", {SOFT: theirs.replace("math.tanh(0)", "math.tanh(float(x))")}, "by hand\n\nStack-Entry: 2")
    assert len(refresh(stack, repository, "next", 3)) == 3
    apply(load_stack(stack.root), repository, "v0.5.2", branch="fresh")
    assert git(repository.path, "rev-parse", "fresh^{tree}") == git(repository.path, "rev-parse", "next^{tree}")


def test_a_half_that_is_in_no_commit_of_ours_is_named(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    git(repository.path, "checkout", "-q", "-b", "next", "v0.5.2")
    commit_files(repository.path, {SOFT: CAPPED}, "Cap\n\nStack-Entry: 2")
    git(repository.path, "checkout", "-q", "main")
    with pytest.raises(StackctlError, match=r"(?s)1: .*run.py: .*ours.*in none of the entry's commits.*3: "):
        refresh(stack, repository, "next", 2)


def test_what_a_person_takes_out_on_the_branch_leaves_the_record(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next")
    edited(repository, "next", {"tool.sh": BASE["tool.sh"]})
    assert "003-a-file-of-our-own" in refresh(stack, repository, "next", 3)
    text = (stack.root / "patches" / "0003-a-file-of-our-own.patch").read_text()
    assert "echo ours" not in text and "other(1)" in text


def test_an_entry_without_a_commit_moves_to_the_new_base_with_the_others(tmp_path):
    """Upstream has it, so apply made no commit: its record stayed on the old base, alone."""
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: CAPPED})
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next")
    edited(repository, "next", {"tool.sh": "#!/bin/sh\necho one\necho mine\n"})
    refresh(stack, repository, "next", 3)
    assert {entry.plants[0].options["base"] for entry in load_stack(stack.root).entries} == {"v0.5.2"}


def test_a_merge_of_the_next_release_is_no_edit(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.1", branch="same")
    git(repository.path, "checkout", "-q", "same")
    git(repository.path, "merge", "-q", "-X", "ours", "-m", "next", "v0.5.2")
    git(repository.path, "checkout", "-q", "main")
    with pytest.raises(StackctlError, match="merges upstream's v0.5.2"):
        refresh(stack, repository, "same", 1)
