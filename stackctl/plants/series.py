"""One patch of an imported series, carried by structure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.hunk import Hunk
from stackctl.plants.kind import Judgement, Option
from stackctl.plants.view import View

if TYPE_CHECKING:
    from stackctl.carry.carrying import Carrier

_DIFF = re.compile(rb"^(?:diff --git |diff -|Index: |--- )", re.MULTILINE)


class Series(Hunk):
    """One patch of an imported series: its halves are the difference between two states of the fork.

    They are laid on another release by a three-way merge of whole files, then by structure. Where the
    base release cannot be read (a folder, another repository), the patch is judged by its text, as a
    hunk is.
    """

    name = "series"
    summary = "one patch of an imported series, carried by structure"
    options = {
        **Hunk.options,
        "base": Option(str, "the upstream commit or tag that the series stands on"),
        "strip": Option(int, "how many leading folders of the patch's paths are not the tree's (default 1)"),
        "accepted": Option(list, "halves that a person agreed to plant as proposed (`stackctl apply --accept`)"),
        "dropped": Option(list, "halves that a person agreed to leave out (`stackctl apply --accept`, `--drop`)"),
        "leave_out": Option(list, "files of the patch that the base does not have and that are left out of it"),
    }

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        name = plant.options["patch"]
        if "/" in name or "\\" in name or name in ("", ".", ".."):
            return [f"patch {name!r} is not a file name in patches/"]
        return (
            [] if (entry.folder.parent.parent / "patches" / name).is_file() else [f"{name}: no such file in patches/"]
        )

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        if _is_empty(entry.folder.parent.parent / "patches" / plant.options["patch"]):
            return Judgement(Verdict.ADOPTED, "nothing of it is left to carry on this release: retire it")
        carrier = _carrier(plant, view)
        return super().judge(plant, entry, view) if carrier is None else carrier.judge(plant, entry, view)

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        carrier = _carrier(plant, view)
        if carrier is None:
            super().plant(plant, entry, view)
        else:
            carrier.plant(plant, entry, view)


def _is_empty(patch: Path) -> bool:
    """Whether a record has no diff: a carry left nothing of it."""
    return not _DIFF.search(patch.read_bytes())


def _carrier(plant: Plant, view: View) -> Carrier | None:
    """What carries the series onto the view's release. Imported late: carry stands above plants, and only a
    stack that holds a series needs it."""
    if "base" not in plant.options:
        return None
    from stackctl.carry.carrying import carrier_of

    return carrier_of(plant.options["base"], view)
