"""A series onto its own base and onto the next release, in commits, with a row for each half."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stackctl.carry.accepting import accept_units, carriers
from stackctl.carry.aftermath import audit_series, unaccounted
from stackctl.carry.apply import apply
from stackctl.carry.proposing import Proposal
from stackctl.carry.questions import questions
from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Verdict
from stackctl.plants.manifest import load_stack
from tests.carry.fork import BASE, PACKAGE, THEIRS, imported, upstream
from tests.support import commit_files, git

RUN, SOFT = f"{PACKAGE}/run.py", f"{PACKAGE}/soft.py"


def verdicts(run):
    return [(found.path, found.verdict) for outcome in run.outcomes for _, found in outcome.judged]


def show(repository, ref, path):
    return git(repository.path, "show", f"{ref}:{path}") + "\n"


def test_onto_the_base_the_tree_is_that_of_the_fork(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.1", branch="same")
    assert git(repository.path, "rev-parse", "same^{tree}") == git(repository.path, "rev-parse", "fork^{tree}")
    assert run.commits == 3
    assert apply(stack, repository, "v0.5.1", branch="same").tip == run.tip


def test_onto_the_next_release_both_sides_stand(tmp_path):
    repository = upstream(tmp_path / "up")
    run = apply(imported(tmp_path / "stack", repository), repository, "v0.5.2", branch="next")
    assert '    "a",\n    "theirs",\n    "ours",\n' in show(repository, "next", RUN)
    assert {verdict for _, verdict in verdicts(run)} == {Verdict.PLANTED, Verdict.RECONCILED}
    assert git(repository.path, "log", "--format=%s", "-3", "next").split("\n")[-1] == "1: Add our name"


def test_a_dry_run_touches_nothing(tmp_path):
    repository = upstream(tmp_path / "up")
    before = sorted(path.as_posix() for path in (tmp_path / "up" / ".git").rglob("*"))
    apply(imported(tmp_path / "stack", repository), repository, "v0.5.2", branch="next", dry_run=True)
    assert sorted(path.as_posix() for path in (tmp_path / "up" / ".git").rglob("*")) == before


def test_t9_a_moved_definition_is_edited_where_it_stands_now(tmp_path):
    body = BASE[SOFT].partition("\n\n\ndef other")[0]
    theirs = {
        **THEIRS,
        SOFT: "def other(x):\n    return x\n",
        f"{PACKAGE}/ops.py": body.replace("def cap", "def cap_inplace") + "\n",
    }
    repository = upstream(tmp_path / "up", theirs)
    run = apply(imported(tmp_path / "stack", repository), repository, "v0.5.2", branch="next")
    assert "math.tanh(float(x))" in show(repository, "next", f"{PACKAGE}/ops.py")
    assert show(repository, "next", SOFT) == theirs[SOFT]
    assert (f"{PACKAGE}/ops.py", Verdict.MOVED) in verdicts(run)


def test_a_moved_module_is_followed_and_our_own_file_imports_it_there(tmp_path):
    theirs = {**THEIRS, f"{PACKAGE}/new/__init__.py": "", f"{PACKAGE}/new/soft.py": BASE[SOFT]}
    repository = upstream(tmp_path / "up", theirs, removed=(SOFT,))
    apply(imported(tmp_path / "stack", repository), repository, "v0.5.2", branch="next")
    assert "math.tanh(float(x))" in show(repository, "next", f"{PACKAGE}/new/soft.py")
    assert show(repository, "next", f"{PACKAGE}/ours.py").startswith("from sglang.new.soft import other")


def test_a_deleted_host_is_left_out_and_named(tmp_path):
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: "def other(x):\n    return x + 0\n"})
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.2", branch="next")
    assert (SOFT, Verdict.HOST_GONE) in verdicts(run)
    assert "float" not in show(repository, "next", SOFT)
    assert [outcome.entry.number for outcome in run.outcomes if outcome.changes] == [1, 3]


def test_what_a_person_accepts_is_no_longer_asked(tmp_path):
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: "def other(x):\n    return x + 0\n"})
    stack = imported(tmp_path / "stack", repository)
    assert "1 stay out, in 1 entries" in accept_units(stack, repository, "v0.5.2", ["1"])
    stack = load_stack(stack.root)
    run = apply(stack, repository, "v0.5.2", branch="next")
    assert (SOFT, Verdict.NOT_DUE) in verdicts(run)
    assert not any(verdict.level == "error" for _, verdict in verdicts(run))


def test_a_proposal_that_a_person_accepts_is_planted_on_the_branch_that_is_there(tmp_path):
    theirs = {**THEIRS, SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(0)")}
    repository = upstream(tmp_path / "up", theirs)
    stack = imported(tmp_path / "stack", repository)
    first = apply(stack, repository, "v0.5.2", branch="next")
    assert (SOFT, Verdict.UNDECIDED) in verdicts(first)
    assert show(repository, "next", SOFT) == theirs[SOFT], "what waits is left out whole"
    assert "1 halves are planted as proposed" in accept_units(stack, repository, "v0.5.2", ["1"])
    again = apply(load_stack(stack.root), repository, "v0.5.2", branch="next")
    assert not any(verdict.level == "error" for _, verdict in verdicts(again))
    assert show(repository, "next", SOFT) == theirs[SOFT].replace("tanh(0)", "tanh(float(0))")
    assert apply(load_stack(stack.root), repository, "v0.5.2", branch="next").tip == again.tip


def test_a_proposal_is_asked_again_where_upstream_has_another_text(tmp_path):
    theirs = {**THEIRS, SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(0)")}
    repository = upstream(tmp_path / "up", theirs)
    stack = imported(tmp_path / "stack", repository)
    accept_units(stack, repository, "v0.5.2", ["1"])
    commit_files(repository.path, {SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(1)")}, "another")
    git(repository.path, "tag", "v0.5.3")
    run = apply(load_stack(stack.root), repository, "v0.5.3", branch="other")
    assert (SOFT, Verdict.UNDECIDED) in verdicts(run)
    assert "tanh(1)" in show(repository, "other", SOFT)


def test_what_cannot_be_laid_on_a_branch_is_never_called_whole(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    apply(stack, repository, "v0.5.2", branch="next", entries=[stack.entries[0]])
    git(repository.path, "checkout", "-q", "next")
    commit_files(repository.path, {SOFT: BASE[SOFT].replace("math.tanh(x)", "math.sinh(x)")}, "by hand")
    git(repository.path, "checkout", "-q", "main")
    run = apply(stack, repository, "v0.5.2", branch="next")
    assert (SOFT, Verdict.UNDECIDED) in verdicts(run) or (SOFT, Verdict.LOST) in verdicts(run)
    assert "sinh" in show(repository, "next", SOFT)


def test_a_unit_without_a_proposal_cannot_be_accepted_and_can_be_left_out(tmp_path):
    theirs = {**THEIRS, "tool.sh": "#!/bin/sh\necho 2\n"}
    repository = upstream(tmp_path / "up", theirs)
    stack = imported(tmp_path / "stack", repository)
    with pytest.raises(StackctlError, match="no unit 1 waits|has no proposal"):
        accept_units(stack, repository, "v0.5.2", ["1"])


def test_an_undecided_unit_shows_similar_code_and_cannot_be_accepted(tmp_path):
    moved = "import math\n\n\ndef cap_all(values):\n    return [math.tanh(value) * 2 for value in values]\n\n\ndef other(x):\n    return x\n"
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: moved})
    stack = imported(tmp_path / "stack", repository)
    (carrier,) = carriers(stack, repository, "v0.5.2")
    (unit,) = carrier.decisions.units
    asked = Proposal(unit[1], "undecided", "alike", "def cap_all(values): ...")
    carrier.decisions.__dict__["proposals"] = {unit: asked}
    (row,) = questions(carrier)
    assert row.words == "undecided" and row.theirs == asked.text
    with pytest.raises(StackctlError, match="unit 1 has no proposal"):
        carrier.decisions.chosen(["1"], [])
    assert carrier.decisions.chosen([], ["1"])


def test_what_a_person_put_in_is_taken_up(tmp_path):
    theirs = {**THEIRS, SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(x, 1)")}
    repository = upstream(tmp_path / "up", theirs)
    stack = imported(tmp_path / "stack", repository)
    first = apply(stack, repository, "v0.5.2", branch="next")
    assert (SOFT, Verdict.UNDECIDED) in verdicts(first) or (SOFT, Verdict.RECONCILED) in verdicts(first)
    git(repository.path, "checkout", "-q", "next")
    commit_files(repository.path, {SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(float(x))")}, "by hand")
    git(repository.path, "checkout", "-q", "main")
    again = apply(stack, repository, "v0.5.2", branch="next")
    assert not any(verdict.level == "error" for _, verdict in verdicts(again))


def test_without_an_entry_the_others_stand_on_what_is_there(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.2", branch="next", entries=[stack.entries[2]])
    assert [outcome.entry.number for outcome in run.outcomes if outcome.changes] == [3]
    assert "ours" not in show(repository, "next", RUN)


def test_the_audit_names_what_the_new_release_no_longer_has(tmp_path):
    theirs = {**THEIRS, SOFT: BASE[SOFT].partition("\n\n\ndef other")[0] + "\n"}
    repository = upstream(tmp_path / "up", theirs)
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.2", branch="next")
    found = audit_series(stack, repository, "v0.5.2", run)
    assert (Verdict.UNRESOLVED, f"{PACKAGE}/ours.py") in {(finding.kind, finding.path) for finding in found}


def test_every_half_has_a_row(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    (carrier,) = carriers(stack, repository, "v0.5.2")
    rows = [half for entry in carrier.entries for half in carrier.halves(entry.number)]
    assert len(rows) == len(carrier.after(carrier.last).halves)


def test_a_patch_that_does_not_apply_strictly_is_named(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    (carrier,) = carriers(replace(stack, entries=(stack.entries[0],)), repository, "v0.5.2")
    assert not carrier.fork.failed
    path = stack.root / "patches" / stack.entries[0].plants[0].options["patch"]
    path.write_bytes(path.read_bytes().replace(b' "a",', b' "b",'))
    (carrier,) = carriers(load_stack(stack.root), repository, "v0.5.2")
    assert "does not apply strictly" in carrier.fork.failed[1]


def test_an_entry_that_moves_lines_of_an_earlier_one_is_planted_too(tmp_path):
    """A patch that puts the lines of another into a new block adds hardly a line of its own."""
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: BASE[SOFT] + "\n\nLATER = 1\n"})
    git(repository.path, "checkout", "-q", "fork")
    body = BASE[SOFT].replace("math.tanh(x)", "math.tanh(float(x))")
    nested = body.replace("    z = y * 2\n    return z", "    # again\n    if x:\n        z = y * 2\n        return z\n    return y")
    commit_files(repository.path, {SOFT: body.replace("    z = y * 2\n", "    # again\n    z = y * 2\n    z = z + 0\n")}, "Four")
    commit_files(repository.path, {SOFT: nested}, "Five")
    git(repository.path, "checkout", "-q", "main")
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.2", branch="next")
    assert [outcome.entry.number for outcome in run.outcomes if outcome.changes] == [1, 2, 3, 4, 5]
    assert show(repository, "next", SOFT) == nested + "\n\nLATER = 1\n"


def test_the_sum_of_all_entries_is_compared_with_what_was_composed(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    run = apply(stack, repository, "v0.5.2", branch="next")
    (carrier,) = carriers(stack, repository, "v0.5.2")
    assert unaccounted(carrier, run) == []
    short = replace(run, outcomes=(run.outcomes[0], replace(run.outcomes[1], changes={}), run.outcomes[2]))
    assert [(found.kind, found.path) for found in unaccounted(carrier, short)] == [(Verdict.LOST, SOFT)]
