"""What waits for a person in a series that is carried: units, the proposal for each, and what was decided.

A decision names the half and the proposal that it was about ("half:proposal"): with another proposal, on
another release, it is asked again. `accepted` halves are planted as proposed, of `dropped` ones upstream's
text stands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from stackctl.carry.merge3 import DROPPED, Half
from stackctl.carry.proposing import DROP, PLANT, UNDECIDED, Elsewhere, Proposal
from stackctl.model.errors import StackctlError

if TYPE_CHECKING:
    from stackctl.carry.carrying import Carrier

Unit = tuple[str, int]  # a file's path, and the unit's number there
ACCEPTED, LEFT = "accepted", "dropped"  # the keys of an entry's plant


@dataclass
class Decisions:
    """The questions of one series on one release."""

    carrier: Carrier

    @cached_property
    def asked(self) -> tuple[Half, ...]:
        """The halves as they are where nothing was decided yet."""
        return self.carrier.undecided().halves

    @cached_property
    def units(self) -> dict[Unit, int]:
        """The number of every unit that waits for a person, by its file and its number there."""
        keys = dict.fromkeys((half.path, half.unit) for half in self.asked if half.unit)
        return {key: number for number, key in enumerate(keys, 1)}

    @cached_property
    def _units_by_half(self) -> dict[tuple[str, str, str], Unit]:
        return {(half.path, *half.pair): (half.path, half.unit) for half in self.asked if half.unit}

    def unit_of(self, half: Half) -> Unit | None:
        """The unit that a half is of, if it waits or waited for a person."""
        return self._units_by_half.get((half.path, *half.pair))

    def number_of(self, half: Half) -> int:
        """The number of a half's unit, 0 if it is of none."""
        unit = self.unit_of(half)
        return self.units[unit] if unit else 0

    @cached_property
    def proposals(self) -> dict[Unit, Proposal]:
        """The proposal of each unit that has one, or what there is to show of it."""
        found: dict[Unit, Proposal] = {}
        for path in dict.fromkeys(path for path, _ in self.units):
            halves = [half for half in self.asked if half.path == path]
            asked = self.carrier.propose(path, halves, Elsewhere(self.carrier.follower.elsewhere, self._gone(path), partial(self.carrier.port, path)))
            found |= {(path, each.unit): each for each in asked}
        return found

    def _gone(self, path: str) -> _Gone:
        return _Gone(self.carrier, path)

    # What a person decided.

    @cached_property
    def _said(self) -> dict[str, dict[str, set[str]]]:
        """The decisions that the manifests keep: key, half's name, the proposals it was about ("" for any)."""
        found: dict[str, dict[str, set[str]]] = {ACCEPTED: defaultdict(set), LEFT: defaultdict(set)}
        for plant in self.carrier.plants:
            for key, names in found.items():
                for word in plant.options.get(key, ()):
                    name, _, about = str(word).partition(":")
                    names[name].add(about)
        return found

    @property
    def any(self) -> bool:
        """Whether a person decided anything."""
        return any(self._said.values())

    def _holds(self, key: str, half: Half) -> bool:
        """Whether a decision on a half is about what is proposed now."""
        about = self._said[key].get(half.name)
        if not about:
            return False
        unit = self.unit_of(half)
        proposal = self.proposals.get(unit) if unit else None
        return "" in about or (proposal is not None and proposal.digest in about)

    def agreed(self, path: str) -> frozenset[tuple[str, str]]:
        """The halves of a file, by `Half.pair`, that are planted as proposed."""
        if not self._said[ACCEPTED]:
            return frozenset()
        return frozenset(half.pair for half in self.asked if half.path == path and self._holds(ACCEPTED, half))

    def ported(self, half: Half) -> Proposal | None:
        """The proposal for a half that a person agreed to port to another file."""
        unit = self.unit_of(half)
        proposal = self.proposals.get(unit) if unit and not half.settled and self._said[ACCEPTED] else None
        return proposal if proposal and proposal.path and self._holds(ACCEPTED, half) else None

    def decided(self, half: Half) -> Half:
        """A half with what a person decided about it."""
        if half.settled or not self._holds(LEFT, half):
            return half
        return replace(half, state=DROPPED, evidence=f"a person agreed that upstream's text stands: {half.evidence}")

    def chosen(self, accept: Sequence[str], drop: Sequence[str]) -> dict[int, dict[str, list[str]]]:
        """What to write into each entry's manifest for the units named ("3", "all-proven").

        Raises StackctlError where a unit has nothing that could be accepted.
        """
        numbers = {str(number): unit for unit, number in self.units.items()}
        proven = [unit for unit in self.units if (p := self.proposals.get(unit)) and p.proven]
        wanted = {unit: LEFT for word in drop if (unit := numbers.get(word))}
        taken = [unit for word in accept if (unit := numbers.get(word))] + (proven if "all-proven" in accept else [])
        for unit in taken:
            if unit not in self.proposals or self.proposals[unit].kind == UNDECIDED:
                raise StackctlError(
                    f"unit {self.units[unit]} has no proposal", unit[0],
                    f"edit the branch and say --continue, or leave it out: --drop {self.units[unit]}",
                )  # fmt: skip
            wanted[unit] = ACCEPTED if self.proposals[unit].kind == PLANT else LEFT
        found: dict[int, dict[str, list[str]]] = {}
        for entry in self.carrier.entries:
            rows = self._words(self.carrier.halves(entry.number), wanted)
            if rows:
                found[entry.number] = rows
        return found

    def _words(self, halves: Iterable[Half], wanted: dict[Unit, str]) -> dict[str, list[str]]:
        rows: dict[str, list[str]] = defaultdict(list)
        for half in halves:
            unit = self.unit_of(half)
            if unit in wanted and not half.settled:
                proposal = self.proposals.get(unit)
                rows[wanted[unit]].append(f"{half.name}:{proposal.digest}" if proposal else half.name)
        return dict(rows)


@dataclass(frozen=True)
class _Gone:
    """Since when a definition of a file is not there: the first release between the two that lacks it."""

    carrier: Carrier
    path: str

    def __call__(self, host: str) -> str:
        name = re.compile(rb"\b(?:def|class)\s+%s\b" % re.escape(host.rpartition(".")[2].encode())) if host else None
        for tag, tree in self.carrier.releases_between:
            paths = {self.path, self.carrier.renames.get(self.path, self.path)}
            texts = [tree.read(path) for path in paths if tree.is_file(path)]
            if not texts or (name and not any(name.search(text) for text in texts)):
                return f"gone since {tag}"
        return ""


def deleted(carrier: Carrier, path: str, halves: Sequence[Half]) -> list[Proposal]:
    """What to say of a file that the new release has no more: since when, and the code most like what ours edits.

    Leaving ours out is proposed only where nothing is like it: else it may have moved, and is a person's to port.
    """
    code = "\n".join(carrier.base_code(path, half) for half in halves)
    found = carrier.follower.elsewhere(code)
    since = _Gone(carrier, path)("")
    words = "; ".join(filter(None, [halves[0].evidence, since, f"what ours edits is most like {found}" if found else ""]))
    known = found is not None or "most similar code now" in words
    words += "" if known else "; nothing like it is in the new release"
    return [Proposal(halves[0].unit, UNDECIDED if known else DROP, words, found.code if found else "")]
