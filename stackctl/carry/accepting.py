"""Keep what a person decided about the units of a series: in the entries' manifests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stackctl.carry.carrying import Carrier, carrier_of, series_plant
from stackctl.carry.deciding import ACCEPTED, LEFT
from stackctl.carry.series import toml_value
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Stack
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import Release, release_of
from stackctl.trees.replacing import Held, rewrite
from stackctl.trees.tree import GitTree

_KIND = re.compile(r'^kind\s*=\s*"series"[^\n]*\n', re.MULTILINE)


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
    stack: Stack, repository: Repository, onto: str, accept: Sequence[str], drop: Sequence[str] = (),
    release: Release | None = None,
) -> str:  # fmt: skip
    """Write down what a person decided on the units named; says what. Raises StackctlError if there is no such unit."""
    chosen: dict[int, dict[str, list[str]]] = {}
    for carrier in carriers(stack, repository, onto, release):
        chosen |= carrier.decisions.chosen(accept, drop)
    if not chosen and (drop or list(accept) != ["all-proven"]):
        raise StackctlError(
            f"no unit {', '.join([*accept, *drop])} waits for a decision",
            str(stack.root),
            "see the numbers: stackctl apply --dry-run",
        )
    texts: dict[str, Held | bytes | None] = {}
    for number, rows in chosen.items():
        entry = stack.entry(number)
        assert entry is not None
        texts[f"entries/{entry.folder.name}/entry.toml"] = _with_decisions(entry, rows)
    rewrite(stack.root, texts)
    counts = {key: sum(len(rows.get(key, ())) for rows in chosen.values()) for key in (ACCEPTED, LEFT)}
    return f"accepted: {counts[ACCEPTED]} halves are planted as proposed, {counts[LEFT]} stay out, in {len(chosen)} entries"


def _with_decisions(entry: Entry, rows: dict[str, list[str]]) -> bytes:
    """An entry's manifest with decisions added to its plant, and the rest of its text as it is."""
    path = entry.folder / "entry.toml"
    text = path.read_bytes().decode()
    plant = series_plant(entry)
    for key, names in rows.items():
        known = list(plant.options.get(key, ())) if plant else []
        line = f"{key} = {toml_value(sorted({*known, *names}))}\n"
        text = re.sub(rf"^{key}\s*=[^\n]*\n", "", text, flags=re.MULTILINE)
        text, count = _KIND.subn(lambda found, line=line: found[0] + line, text, count=1)
        if not count:
            raise StackctlError("the plant of kind series was not found", str(path), f"write it yourself: {line.strip()}")
    return text.encode()
