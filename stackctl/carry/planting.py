"""Make a stack whole on a view of a tree: in memory, entry by entry, a unit all or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.judging import REPAIRABLE, adopted_elsewise, is_bad, judge_plant
from stackctl.plants.kind import Judgement
from stackctl.plants.manifest import kind_of
from stackctl.plants.view import View
from stackctl.trees.tree import GitTree, Tree

Judge = Callable[[Entry, Plant, View], Judgement]

# What a person must decide: the unit is left out whole.
STOPS = frozenset({Verdict.HOST_GONE, Verdict.AMBIGUOUS, Verdict.UNPARSABLE, Verdict.UNDECIDED})


@dataclass(frozen=True)
class Outcome:
    """What planting one entry came to: the verdict on each plant, and the files it changed (None: removed)."""

    entry: Entry
    judged: tuple[tuple[Plant, Judgement], ...]
    changes: dict[str, bytes | None]
    modes: Mapping[str, str] = field(default_factory=dict)

    @property
    def planted(self) -> tuple[str, ...]:
        """The ids of the plants put in or put right by this run."""
        return tuple(plant.id for plant, found in self.judged if found.verdict is Verdict.PLANTED)


def plant_entries(entries: Sequence[Entry], view: View, judge: Judge = judge_plant) -> list[Outcome]:
    """Plant entries in order. The view keeps the changes; a unit that cannot be placed is left out whole.

    Each plant is judged once more when all are in: a tombstone may hold only then.
    """
    planter = _Planter(entries, view, judge)
    outcomes = [planter.plant_entry(entry) for entry in entries]
    return [replace(each, judged=tuple(planter.final(each.entry, *pair) for pair in each.judged)) for each in outcomes]


class _Planter:
    """One run over some entries."""

    def __init__(self, entries: Sequence[Entry], view: View, judge: Judge) -> None:
        self.entries = entries
        self.view = view
        self.judge = judge

    def plant_entry(self, entry: Entry) -> Outcome:
        """Plant one entry, leaving out the units that fail until the rest stands."""
        before = start = self.view.snapshot()
        modes = dict(self.view.modes)
        failed: dict[str, tuple[Plant, Judgement]] = {}
        mended: set[str] = set()
        while True:
            self.view.restore(start)
            judged, failure = self._attempt(entry, failed)
            if failure is None:
                return Outcome(entry, tuple(judged), {**self._moded(modes), **self._changed(before)})
            plant, found = failure
            if found.path and found.path not in mended and (data := self._from_stock(found.path, start)) is not None:
                mended.add(found.path)
                start = {**start, found.path: data}
            else:
                failed[entry.unit_of(plant)] = failure

    def _attempt(
        self, entry: Entry, failed: dict[str, tuple[Plant, Judgement]]
    ) -> tuple[list[tuple[Plant, Judgement]], tuple[Plant, Judgement] | None]:
        """Plant everything but the failed units; stop at the first plant that cannot be placed."""
        core = entry.unit_of(entry.plants[0])  # without the first plant's unit the others would call what is not there
        judged: list[tuple[Plant, Judgement]] = []
        for plant in entry.plants:
            if cause := failed.get(entry.unit_of(plant)) or failed.get(core):
                judged.append((plant, self._left_out(entry, plant, *cause)))
                continue
            found = self._plant_one(entry, plant)
            judged.append((plant, found))
            if found.verdict in STOPS:
                return judged, (plant, found)
        return judged, None

    def _plant_one(self, entry: Entry, plant: Plant) -> Judgement:
        """Judge a plant, plant it if it needs it, and judge again: nothing is planted that cannot be missed."""
        found = self.judge(entry, plant, self.view)
        if found.verdict not in REPAIRABLE or _only_watched(plant):
            return found
        try:
            self._put_right(entry, plant, found)
        except Unplantable as error:
            verdict = error.verdict if error.verdict in STOPS else Verdict.UNDECIDED
            return replace(found, verdict=verdict, message=error.message, line=error.line or found.line)
        after = self.judge(entry, plant, self.view)
        if after.verdict in (Verdict.INTACT, Verdict.ADOPTED):
            return replace(after, verdict=Verdict.PLANTED, message=f"was {found.verdict}: {found.message}")
        return after if after.verdict in STOPS else replace(after, verdict=Verdict.UNDECIDED)

    def _put_right(self, entry: Entry, plant: Plant, found: Judgement) -> None:
        kind = kind_of(plant, entry)
        if not adopted_elsewise(entry, plant, self.view):
            kind.plant(plant, entry, self.view)
        elif found.verdict is Verdict.DUPLICATED:
            kind.uproot(plant, entry, self.view)
        else:
            raise Unplantable(Verdict.UNDECIDED, found.message, found.line)

    def _left_out(self, entry: Entry, plant: Plant, cause: Plant, why: Judgement) -> Judgement:
        """The verdict on a plant whose unit failed."""
        if plant is cause:
            return why
        found = self.judge(entry, plant, self.view)
        if found.verdict in REPAIRABLE or found.verdict in STOPS:
            return replace(found, verdict=Verdict.UNDECIDED, message=f"left out with {cause.id}", with_plant=cause.id)
        return found

    def final(self, entry: Entry, plant: Plant, found: Judgement) -> tuple[Plant, Judgement]:
        """The verdict when every entry is in."""
        if found.verdict in STOPS:
            return plant, found
        after = self.judge(entry, plant, self.view)
        put_in = found.verdict is Verdict.PLANTED and not is_bad(after)
        return plant, replace(after, verdict=Verdict.PLANTED, message=found.message) if put_in else after

    def _changed(self, before: dict[str, bytes | None]) -> dict[str, bytes | None]:
        """The files that differ from what they were before the entry, whatever else is unsaved."""

        def old(path: str) -> bytes | None:
            if path in before:
                return before[path]
            return self.view.tree.read(path) if path in self.view.tree else None

        return {path: data for path, data in self.view.changes.items() if data != old(path)}

    def _moded(self, before: Mapping[str, str]) -> dict[str, bytes | None]:
        """The files that got another mode. That is no change of their bytes: a patch that does no more was lost in silence."""
        paths = [path for path, mode in self.view.modes.items() if before.get(path) != mode and self.view.exists(path)]
        return {path: self.view.read(path) for path in paths}

    @cached_property
    def _fresh(self) -> View | None:
        """Stock upstream with the same entries planted on it."""
        stock = self.view.stock
        if stock is None or _is_same(stock.tree, self.view.tree):  # this is that planting: nothing can mend it
            return None
        fresh = View(stock.tree, stock.stack, stock.release, stock)
        plant_entries(self.entries, fresh, self.judge)
        return fresh

    def _from_stock(self, path: str, changes: dict[str, bytes | None]) -> bytes | None:
        """A file made anew from stock, if nothing that is not stock's or the stack's would be lost by it.

        A merge can leave a file half stock's and half ours in a way no plant can read, even one that does
        not parse. If each of its lines is one of the two sides', and it has all that both have, then
        stock's file freshly planted is what it was to be.
        """
        fresh = self._fresh
        if fresh is None or fresh.stock is None or not fresh.exists(path) or not fresh.stock.exists(path):
            return None
        now = changes[path] if path in changes else self.view.tree.read(path) if path in self.view.tree else None
        wanted = fresh.read(path)
        if now is None or now == wanted:
            return None
        mixed = _is_mixture(_lines(now), _lines(fresh.stock.read(path)), _lines(wanted))
        return wanted if mixed else None


def _is_same(one: Tree, other: Tree) -> bool:
    """Whether two trees are one commit's."""
    commits = [tree.commit for tree in (one, other) if isinstance(tree, GitTree)]
    return one is other or (len(commits) == 2 and commits[0] == commits[1])


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def _is_mixture(mixed: list[bytes], one: list[bytes], other: list[bytes]) -> bool:
    """Whether every line of `mixed` is from one of the two sides and no line that both have is missing."""
    counts, left, right = Counter(mixed), Counter(one), Counter(other)
    counts.pop(b"", None)
    return counts <= (left | right) and all(counts[line] >= count for line, count in (left & right).items() if line)


def _only_watched(plant: Plant) -> bool:
    """A tombstone over text is reported by verify once all entries are planted, never edited."""
    return plant.kind == "tombstone" and "code" not in plant.options
