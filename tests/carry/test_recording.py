"""After a carry: the records stand on the new release, and the next one says what changed against this one."""

from __future__ import annotations

import json
import shutil

from stackctl.carry.accepting import accept_units
from stackctl.carry.apply import apply
from stackctl.carry.recording import LEDGER, changes, record
from stackctl.model.verdict import Verdict
from stackctl.plants.manifest import load_stack
from stackctl.plants.stacks import open_stack
from tests.carry.fork import BASE, PACKAGE, THEIRS, imported, upstream
from tests.killing import killed_before
from tests.support import commit_files, git

SOFT = f"{PACKAGE}/soft.py"


def carried(stack, repository, onto, branch):
    run = apply(stack, repository, onto, branch=branch)
    return run, record(stack, repository, onto, run)


def test_the_records_stand_on_the_new_release_and_make_the_same_tree(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    run, said = carried(stack, repository, "v0.5.2", "next")
    assert said == ["records of 3 entries stand on v0.5.2 now"]
    again = load_stack(stack.root)
    assert [entry.plants[0].options["base"] for entry in again.entries] == ["v0.5.2"] * 3
    fresh = apply(again, repository, "v0.5.2", branch="fresh")
    assert git(repository.path, "rev-parse", "fresh^{tree}") == git(repository.path, "rev-parse", "next^{tree}")
    assert all(found.verdict is Verdict.PLANTED for outcome in fresh.outcomes for _, found in outcome.judged)
    assert apply(again, repository, "v0.5.2", branch="next").tip == run.tip
    git(repository.path, "checkout", "-q", "v0.5.2")
    git(repository.path, "am", "-q", *sorted(str(path) for path in (stack.root / "patches").glob("*.patch")))
    assert git(repository.path, "rev-parse", "HEAD^{tree}") == git(repository.path, "rev-parse", "next^{tree}")


def test_while_anything_waits_the_records_stay(tmp_path):
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(0)")})
    stack = imported(tmp_path / "stack", repository)
    before = {path: path.read_bytes() for path in stack.root.rglob("*") if path.is_file()}
    _, said = carried(stack, repository, "v0.5.2", "next")
    assert said == ["records stay on v0.5.1: 1 units wait"]
    assert {path: path.read_bytes() for path in before} == before
    accept_units(stack, repository, "v0.5.2", ["1"])
    _, said = carried(load_stack(stack.root), repository, "v0.5.2", "next")
    assert said == ["records of 3 entries stand on v0.5.2 now"]
    assert "accepted" not in (stack.entries[1].folder / "entry.toml").read_text()
    assert "tanh(float(0))" in (stack.root / "patches" / "0002-cap-in-doubles.patch").read_text()


def test_what_a_person_changed_on_the_branch_is_not_recorded_as_ours(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next")
    git(repository.path, "checkout", "-q", "next")
    text = git(repository.path, "show", f"next:{SOFT}") + "\n"
    commit_files(repository.path, {SOFT: text + "\n\nMORE = 1\n"}, "by hand")
    git(repository.path, "checkout", "-q", "main")
    _, said = carried(stack, repository, "v0.5.2", "next")
    assert "not as composed" in said[0]


def test_an_entry_that_was_left_out_has_an_empty_record_and_is_to_be_retired(tmp_path):
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: "def other(x):\n    return x + 0\n"})
    stack = imported(tmp_path / "stack", repository)
    accept_units(stack, repository, "v0.5.2", ["1"])
    _, said = carried(load_stack(stack.root), repository, "v0.5.2", "next")
    assert said == ["records of 3 entries stand on v0.5.2 now"]
    run = apply(load_stack(stack.root), repository, "v0.5.2", branch="fresh")
    ((_, found),) = run.outcomes[1].judged
    assert found.verdict is Verdict.ADOPTED and "retire it" in found.message
    assert [outcome.entry.number for outcome in run.outcomes if outcome.changes] == [1, 3]


def test_the_next_carry_says_what_changed(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    run, _ = carried(stack, repository, "v0.5.2", "next")
    assert changes(stack, repository, "v0.5.2", run) == ("v0.5.2", [])
    assert len(json.loads((stack.root / LEDGER).read_text())["halves"]) == 4
    commit_files(repository.path, {SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(0)")}, "0.5.3")
    git(repository.path, "tag", "v0.5.3")
    stack = load_stack(stack.root)
    run = apply(stack, repository, "v0.5.3", branch="later")
    last, found = changes(stack, repository, "v0.5.3", run)
    assert last == "v0.5.2" and ("planted", "undecided") in {(each.was, each.now) for each in found}
    assert {each.path for each in found if each.now == "undecided"} == {SOFT}


def snapshot(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def killed_at_every_write(tmp_path, root, run):
    """Each state that the stack is in when it is opened after a kill; the last run is not killed."""
    found, step = [], 0
    while True:
        step += 1
        folder = tmp_path / f"killed-{step}"
        shutil.copytree(root, folder)
        stack = load_stack(folder)
        done = not killed_before(step, lambda stack=stack: run(stack))
        again = open_stack(folder)
        found.append(snapshot(folder))
        assert len({plant.options["base"] for entry in again.entries for plant in entry.plants}) == 1
        if done:
            return found


def test_a_kill_at_any_write_leaves_the_records_on_one_base(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.2", branch="next")
    found = killed_at_every_write(tmp_path, stack.root, lambda stack: record(stack, repository, "v0.5.2", run))
    assert len(found) > 20 and all(each in (snapshot(stack.root), found[-1]) for each in found)
    assert found[-1] != snapshot(stack.root) in found and b'base = "v0.5.2"' in found[-1]["entries/001-add-our-name/entry.toml"]


def test_a_kill_at_any_write_leaves_all_of_a_decision_or_nothing(tmp_path):
    removed = {**THEIRS, SOFT: "def other(x):\n    return x + 0\n", f"{PACKAGE}/run.py": "def first(x):\n    return x\n"}
    repository = upstream(tmp_path / "up", removed)
    stack = imported(tmp_path / "stack", repository)
    found = killed_at_every_write(tmp_path, stack.root, lambda stack: accept_units(stack, repository, "v0.5.2", [], ["1", "2"]))
    assert all(each in (snapshot(stack.root), found[-1]) for each in found)
    changed = [name for name, data in found[-1].items() if data != snapshot(stack.root)[name]]
    assert changed == ["entries/001-add-our-name/entry.toml", "entries/002-cap-in-doubles/entry.toml"]
