"""Plant entries among which there are patches of a series: as others are, then one row for each half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stackctl.carry.planting import Judge, Outcome, plant_entries
from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.judging import is_bad
from stackctl.plants.kind import Judgement
from stackctl.plants.view import View


def carry_entries(entries: Sequence[Entry], view: View, judge: Judge) -> list[Outcome]:
    """`plant_entries`; the outcome of a series' patch then has a plant and a judgement for each of its halves."""
    if not any(plant.kind == "series" for entry in entries for plant in entry.plants):
        return plant_entries(entries, view, judge)
    from stackctl.carry.carrying import PARTIAL, save_carriers

    def lenient(entry: Entry, plant: Plant, view: View) -> Judgement:
        """What stands of a patch is planted although a part of it waits for a person."""
        found = judge(entry, plant, view)
        waits = found.verdict is Verdict.UNDECIDED and found.evidence.startswith(PARTIAL)
        return replace(found, verdict=Verdict.INTACT) if waits and plant.kind == "series" else found

    outcomes = [_by_half(outcome, view) for outcome in plant_entries(entries, view, lenient)]
    save_carriers()
    return outcomes


def _by_half(outcome: Outcome, view: View) -> Outcome:
    """The outcome with a row for each half of its patch, where the patch was laid on."""
    from stackctl.carry.carrying import carrier_of, rows, series_plant

    plant = series_plant(outcome.entry)
    carrier = carrier_of(plant.options["base"], view) if plant else None
    if carrier is None or outcome.entry.number not in carrier.fork.changes:
        return outcome
    judged: list[tuple[Plant, Judgement]] = []
    for each, found in outcome.judged:
        stands = found.verdict not in (Verdict.LOST, Verdict.AMBIGUOUS)
        halves = list(rows(carrier, outcome.entry, each, view)) if each is plant and stands else []
        if found.verdict is not Verdict.PLANTED:  # it stood there before this run
            halves = [(p, replace(f, verdict=Verdict.INTACT) if f.verdict is Verdict.PLANTED else f) for p, f in halves]
        # What could not be laid on the branch is not there, whatever the series comes to without it.
        off = is_bad(found) and not any(is_bad(row) for _, row in halves)
        judged += [(each, found)] if off else halves or [(each, found)]
    return replace(outcome, judged=tuple(judged), modes=carrier.modes(outcome.entry.number))
