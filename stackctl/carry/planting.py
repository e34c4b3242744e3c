"""Make a stack whole on a view of a tree: in memory, entry by entry, a unit all or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.judging import REPAIRABLE, adopted_elsewise, judge_plant
from stackctl.plants.kind import Judgement
from stackctl.plants.manifest import kind_of
from stackctl.plants.view import View


@dataclass(frozen=True)
class Outcome:
    """What planting one entry came to: the verdict on each plant, and the files it changed (None: removed)."""

    entry: Entry
    judged: tuple[tuple[Plant, Judgement], ...]
    changes: dict[str, bytes | None]

    @property
    def planted(self) -> tuple[str, ...]:
        """The ids of the plants put in or put right by this run."""
        return tuple(plant.id for plant, found in self.judged if found.verdict is Verdict.PLANTED)


def plant_entries(entries: Iterable[Entry], view: View) -> list[Outcome]:
    """Plant entries in order. The view keeps the changes; a unit that cannot be placed is left out whole.

    Each plant is judged once more when all are in: a tombstone may hold only then.
    """
    outcomes = [plant_entry(entry, view) for entry in entries]
    return [replace(outcome, judged=tuple(_final(outcome.entry, view, *pair) for pair in outcome.judged)) for outcome in outcomes]


def _final(entry: Entry, view: View, plant: Plant, found: Judgement) -> tuple[Plant, Judgement]:
    if found.verdict in _STOPS:
        return plant, found
    after = judge_plant(entry, plant, view)
    put_in = found.verdict is Verdict.PLANTED and after.verdict in (Verdict.INTACT, Verdict.ADOPTED)
    return plant, replace(after, verdict=Verdict.PLANTED, message=found.message) if put_in else after


def plant_entry(entry: Entry, view: View) -> Outcome:
    """Plant one entry, leaving out the units that fail until the rest stands."""
    before = view.snapshot()
    core = entry.unit_of(entry.plants[0])  # without the first plant's unit the others would call what is not there
    failed: dict[str, tuple[Plant, Judgement]] = {}
    while True:
        view.restore(before)
        judged: list[tuple[Plant, Judgement]] = []
        failure = None
        for plant in entry.plants:
            unit = entry.unit_of(plant)
            if cause := failed.get(unit) or failed.get(core):
                judged.append((plant, _left_out(entry, plant, view, *cause)))
                continue
            found = _plant_one(entry, plant, view)
            judged.append((plant, found))
            if found.verdict in _STOPS:
                failure = (unit, (plant, found))
                break
        if failure is None:
            break
        failed[failure[0]] = failure[1]
    return Outcome(entry, tuple(judged), _changed(before, view))


_STOPS = frozenset({Verdict.HOST_GONE, Verdict.AMBIGUOUS, Verdict.UNPARSABLE, Verdict.UNDECIDED})


def _plant_one(entry: Entry, plant: Plant, view: View) -> Judgement:
    """Judge a plant, plant it if it needs it, and judge again: nothing is planted that cannot be missed."""
    found = judge_plant(entry, plant, view)
    if found.verdict not in REPAIRABLE or _only_watched(plant):
        return found
    kind = kind_of(plant, entry)
    try:
        if found.verdict is Verdict.DUPLICATED and adopted_elsewise(entry, plant, view):
            kind.uproot(plant, entry, view)
        elif adopted_elsewise(entry, plant, view):
            raise Unplantable(Verdict.UNDECIDED, found.message, found.line)
        else:
            kind.plant(plant, entry, view)
    except Unplantable as error:
        verdict = error.verdict if error.verdict in _STOPS else Verdict.UNDECIDED
        return replace(found, verdict=verdict, message=error.message, line=error.line or found.line)
    after = judge_plant(entry, plant, view)
    if after.verdict in (Verdict.INTACT, Verdict.ADOPTED):
        return replace(after, verdict=Verdict.PLANTED, message=f"was {found.verdict}: {found.message}")
    return after if after.verdict in _STOPS else replace(after, verdict=Verdict.UNDECIDED)


def _only_watched(plant: Plant) -> bool:
    """A tombstone over text is reported by verify once all entries are planted, never edited."""
    return plant.kind == "tombstone" and "code" not in plant.options


def _left_out(entry: Entry, plant: Plant, view: View, cause: Plant, why: Judgement) -> Judgement:
    """The verdict on a plant whose unit failed."""
    found = judge_plant(entry, plant, view)
    if plant is cause:
        return why
    if found.verdict in REPAIRABLE:
        return replace(found, verdict=Verdict.UNDECIDED, message=f"left out with {cause.id}", with_plant=cause.id)
    return found


def _changed(before: dict[str, bytes | None], view: View) -> dict[str, bytes | None]:
    """The files that differ from what they were before the entry, whatever else is unsaved."""

    def old(path: str) -> bytes | None:
        if path in before:
            return before[path]
        return view.tree.read(path) if path in view.tree else None

    return {path: data for path, data in view.changes.items() if data != old(path)}
