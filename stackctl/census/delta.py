"""Who changed what: the halves of four sides, counted per host."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stackctl.census.moves import Moves
from stackctl.census.sides import SIDES
from stackctl.facts.statements import Fact

# Statements so plain that a second one says nothing: two branches may both end in `return`.
_TRIVIAL = ("return", "raise", "continue", "break", "try", "finally", "else", "except", "yield", "del ", "assert")


class Key(NamedTuple):
    """What a half is, wherever it stands in its host: the identity that is counted."""

    path: str
    host: str
    kind: str
    text: str


class Count(NamedTuple):
    """How often one key occurs on each side."""

    base: int
    ours: int
    theirs: int
    merged: int

    @property
    def lowest(self) -> int:
        """The fewest that a merge of both changes may hold."""
        if self.ours == self.base:
            return self.theirs
        if self.theirs == self.base:
            return self.ours
        if self.ours > self.base and self.theirs > self.base:
            return max(self.ours, self.theirs)
        return max(0, min(self.ours + self.theirs - self.base, self.ours, self.theirs))

    @property
    def highest(self) -> int:
        """The most that a merge of both changes may hold."""
        if self.ours == self.base:
            return self.theirs
        if self.theirs == self.base:
            return self.ours
        if self.ours < self.base and self.theirs < self.base:
            return min(self.ours, self.theirs)
        return max(self.ours, self.theirs)


@dataclass
class Census:
    """All facts of the files under comparison, by key and side, in one system of names.

    Facts of a host that one side moved carry the name the host had in base, so that a half is
    counted where it belongs; `real` says where a host really stands on each side.
    """

    facts: dict[Key, dict[str, list[Fact]]] = field(default_factory=dict)
    hosts: dict[tuple[str, str], list[Key]] = field(default_factory=lambda: defaultdict(list))
    real: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)

    def add(self, side: str, path: str, facts: Iterable[Fact], moves: Moves) -> None:
        """Count `facts` of the file `path` of one side, under the names that base had for their hosts."""
        names: dict[str, tuple[str, str]] = {}
        for fact in facts:
            if fact.host not in names:
                names[fact.host] = home = moves.home(path, fact.host)
                if home != (path, fact.host):
                    self.real[side, *home] = (path, fact.host)
            home = names[fact.host]
            key = Key(*home, fact.kind, fact.text)
            if key not in self.facts:
                self.facts[key] = {}
                self.hosts[home].append(key)
            self.facts[key].setdefault(side, []).append(fact)

    def place(self, side: str, path: str, host: str) -> tuple[str, str]:
        """Where a host really stands on one side: (path, qualified name)."""
        return self.real.get((side, path, host), (path, host))

    def count(self, key: Key) -> Count:
        """How often `key` occurs on each side."""
        sides = self.facts[key]
        return Count(*(len(sides.get(side, ())) for side in SIDES))

    def of(self, key: Key, side: str) -> list[Fact]:
        """The occurrences of `key` on one side."""
        return self.facts[key].get(side, []) if key in self.facts else []

    def changed_by(self, side: str) -> Iterator[tuple[Key, int]]:
        """Every key that `side` has more often (+n) or less often (-n) than base."""
        for key in list(self.facts):
            count = self.count(key)
            if number := getattr(count, side) - count.base:
                yield key, number


def is_trivial(text: str) -> bool:
    """Whether a second statement like this one in the same place would be no surprise."""
    return text.startswith(_TRIVIAL)


def may_repeat(census: Census, key: Key, count: Count) -> bool:
    """Whether both sides may have added this text on their own and a merge rightly holds both.

    The same binding, element or branch twice in one place is the mark of a bad resolution; a
    `return` in two places is not, nor is one text under two branches.
    """
    if count.merged > count.ours + count.theirs - count.base:
        return False
    if is_trivial(key.text):
        return True
    placed = {side: Counter(fact.under for fact in census.of(key, side)) for side in SIDES}
    return all(number <= max(placed["ours"][at], placed["theirs"][at]) for at, number in placed["merged"].items())
