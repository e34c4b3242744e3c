"""A condition of ours whose host went to another file and was rewritten: proposed there, and made there when agreed to."""

from __future__ import annotations

import pytest

from stackctl.carry.accepting import accept_units, carriers
from stackctl.carry.apply import apply
from stackctl.carry.edits import Difference
from stackctl.carry.merge3 import Half
from stackctl.carry.porting import port
from stackctl.carry.proposing import PLANT, UNDECIDED
from stackctl.carry.recording import record
from stackctl.carry.records import lay_out
from stackctl.carry.series import read_range, write_entries
from stackctl.carry.texts import Text
from stackctl.carry.world import World
from stackctl.model.verdict import Verdict
from stackctl.plants.manifest import load_stack
from tests.carry.fork import PACKAGE
from tests.support import commit_files, git, repository_of

BASE = """\
from sglang.probe import is_device


class Options:
    def handle_strategy(self, architecture):
        if self.cache_strategy == "automatic":
            wants_overlap = not self.disable_overlap
            wants_paging = self.page_size > 1
            if (wants_overlap or wants_paging) and self.supports_extra_buffer(architecture):
                self.cache_strategy = "extra_buffer"
            else:
                self.cache_strategy = "no_buffer"

    def supports_extra_buffer(self, architecture):
        return architecture in ("alpha", "beta") and is_device()
"""
OURS = BASE.replace("            if (wants", "            if (\n                (wants").replace(
    "self.supports_extra_buffer(architecture):",
    "self.supports_extra_buffer(architecture)\n                # absent on our devices\n                and (is_device() or self.page_size == 7)\n            ):",
)  # fmt: skip
THERE = """\
from sglang.probe import is_device


def supports_extra_buffer(view, architecture):
    return architecture in ("alpha", "beta") and is_device()


def strategy_resolution(view):
    declared = {}
    architecture = view.architecture
    if view.cache_strategy == "automatic":
        wants_overlap = not view.disable_overlap
        wants_paging = view.page_size > 1
        if (wants_overlap or wants_paging) and supports_extra_buffer(
            view, architecture
        ):
            declared["cache_strategy"] = "extra_buffer"
        else:
            declared["cache_strategy"] = "no_buffer"
    return declared
"""
LEFT = """\
class Options:
    def handle_strategy(self, architecture):
        self.apply_overrides(architecture)

    def apply_overrides(self, architecture):
        self.seen = architecture
"""
PORTED = THERE.replace("            view, architecture\n        ):", "            view, architecture\n        ) and (is_device() or view.page_size == 7):")


def ported(base: str, ours: str, there: str, host: str = "strategy_resolution", world: World | None = None):
    old, mine = Text(base), Text(ours)
    (edit,) = Difference(old, mine).edits()
    return port(old, mine, Half("proposal", edit.rows, (0, 0)), Text(there), host, world or World())


def test_an_operand_joins_the_condition_that_shares_one_with_the_bases():
    made = ported(BASE, OURS, THERE)
    assert made is not None and made.text == PORTED
    assert "line 14's condition in strategy_resolution" in made.how


@pytest.mark.parametrize(
    "there",
    [
        THERE.replace("(wants_overlap or wants_paging) and", "wants_overlap and"),
        THERE.replace("    return declared", "    if (wants_overlap or wants_paging) and declared:\n        pass\n    return declared"),
        THERE.replace("from sglang.probe import is_device\n", "").replace(" and is_device()", ""),
        THERE.replace("view.page_size > 1", "view.pages > 1"),
    ],
    ids=["no condition like it", "two of them", "what it reads is not imported", "an attribute that is not read there"],
)  # fmt: skip
def test_without_one_place_or_with_names_unknown_there_nothing_is_ported(there):
    assert ported(BASE, OURS, there) is None


def test_an_import_that_is_known_to_work_comes_along():
    there = THERE.replace("from sglang.probe import is_device\n", "").replace(" and is_device()", "")
    world = World(read={"sglang.probe": b"def is_device(): ...\n"}.get, packages=frozenset({"sglang"}))
    made = ported(BASE, OURS, there, world=world)
    assert made is not None and "from sglang.probe import is_device\n" in made.text and "comes along" in made.how


def test_an_edit_that_takes_something_out_is_not_ported():
    assert ported(BASE, BASE.replace(" and self.supports_extra_buffer(architecture):", ":"), THERE) is None


def test_what_a_person_agrees_to_is_made_in_the_other_file_and_recorded(tmp_path):
    options, there = f"{PACKAGE}/options.py", f"{PACKAGE}/overrides.py"
    version = f"{PACKAGE}/version.py"
    repository = repository_of(tmp_path / "up", {options: BASE, version: '__version__ = "0.5.1"\n', f"{PACKAGE}/probe.py": "def is_device(): ...\n"})
    git(repository.path, "tag", "v0.5.1")
    git(repository.path, "checkout", "-q", "-b", "fork")
    commit_files(repository.path, {options: OURS}, "No buffer on our devices")
    git(repository.path, "checkout", "-q", "main")
    commit_files(repository.path, {options: LEFT, there: THERE, version: '__version__ = "0.5.2"\n'}, "next")
    git(repository.path, "tag", "v0.5.2")
    root = tmp_path / "stack"
    root.mkdir()
    lay_out(root, "fork")
    write_entries(root, load_stack(root), read_range(repository, "v0.5.1..fork"), "v0.5.1", {})
    (carrier,) = carriers(load_stack(root), repository, "v0.5.2")
    ((unit, asked),) = carrier.decisions.proposals.items()
    assert (asked.kind, asked.path, unit[0]) == (PLANT, there, options), asked
    assert there in asked.text and "is_device() or view.page_size == 7" in asked.text
    first = apply(load_stack(root), repository, "v0.5.2", branch="next")
    assert git(repository.path, "diff", "--name-only", "v0.5.2", "next") == "", "nothing is planted that nobody agreed to"
    assert first.outcomes[0].judged[0][1].verdict in (Verdict.UNDECIDED, Verdict.HOST_GONE)
    accept_units(load_stack(root), repository, "v0.5.2", ["1"])
    run = apply(load_stack(root), repository, "v0.5.2", branch="next")
    assert git(repository.path, "show", f"next:{there}") + "\n" == PORTED
    assert git(repository.path, "diff", "--name-only", "v0.5.2", "next") == there
    assert not any(found.verdict.level == "error" for outcome in run.outcomes for _, found in outcome.judged)
    assert record(load_stack(root), repository, "v0.5.2", run) == ["records of 1 entries stand on v0.5.2 now"]
    apply(load_stack(root), repository, "v0.5.2", branch="fresh")
    assert git(repository.path, "rev-parse", "fresh^{tree}") == git(repository.path, "rev-parse", "next^{tree}")
    assert asked.kind != UNDECIDED
