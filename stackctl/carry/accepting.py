"""Keep a person's agreement that some units of a series are left out: in the entries' manifests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stackctl.carry.carrying import Carrier, carrier_of, series_plant
from stackctl.carry.series import toml_value
from stackctl.carry.worktree import replace_file
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Stack
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import Release, release_of
from stackctl.trees.tree import GitTree

_KIND = re.compile(r'^kind\s*=\s*"series"[^\n]*\n', re.MULTILINE)
_DROPPED = re.compile(r"^dropped\s*=[^\n]*\n", re.MULTILINE)


def carriers(stack: Stack, repository: Repository, onto: str, release: Release | None = None) -> list[Carrier]:
    """What carries each series of the stack (there is one for each base) onto a release."""
    if not any(map(series_plant, stack.entries)):
        return []
    tree = GitTree(repository, onto)
    release = release or release_of(tree)
    view = View(tree, stack, release, View(tree, stack, release))
    bases = dict.fromkeys(plant.options["base"] for entry in stack.entries if (plant := series_plant(entry)))
    return [carrier for base in bases if (carrier := carrier_of(base, view))]


def accept_units(
    stack: Stack, repository: Repository, onto: str, words: Sequence[str], release: Release | None = None
) -> str:
    """Write down that the units named stay out; says what was accepted. Raises StackctlError if there is no such unit."""
    chosen = {
        number: names
        for carrier in carriers(stack, repository, onto, release)
        for number, names in carrier.chosen(words).items()
    }
    if not chosen and list(words) != ["all-proven"]:
        raise StackctlError(
            f"no unit {', '.join(words)} waits for a decision",
            str(stack.root),
            "see the numbers: stackctl apply --dry-run",
        )
    for number, names in chosen.items():
        entry = stack.entry(number)
        assert entry is not None
        _write(entry, names)
    return f"accepted: {sum(map(len, chosen.values()))} halves of {len(chosen)} entries stay out"


def _write(entry: Entry, names: Sequence[str]) -> None:
    path = entry.folder / "entry.toml"
    text = path.read_bytes().decode()
    plant = series_plant(entry)
    known = list(plant.options.get("dropped", ())) if plant else []
    line = f"dropped = {toml_value(sorted({*known, *names}))}\n"
    text = _DROPPED.sub("", text)
    text, count = _KIND.subn(lambda found: found[0] + line, text, count=1)
    if not count:
        raise StackctlError("the plant of kind series was not found", str(path), f"write it yourself: {line.strip()}")
    replace_file(path, text.encode())
