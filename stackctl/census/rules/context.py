"""What every rule starts from: the four trees as modules, and which files are the fork's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from stackctl.census.moves import Moves
from stackctl.census.sides import Sides
from stackctl.facts.names import ModuleNames
from stackctl.facts.world import World


class Context:
    """The merged tree against the sides it came from."""

    def __init__(self, sides: Sides, moves: dict[str, Moves]) -> None:
        self.sides = sides
        self.moves = moves
        self.merged = World(sides.merged, sides.cache)
        self.ours = World(sides.ours, sides.cache)
        self.theirs = World(sides.theirs, sides.cache)
        self.base = World(sides.base, sides.cache)

    @cached_property
    def own(self) -> list[str]:
        """The Python files of merged that upstream does not have exactly like this: the fork's side."""
        return [p for p, blobs in self.sides.differing.items() if p.endswith(".py") and blobs[3] and blobs[3] != blobs[2]]

    @cached_property
    def apart(self) -> list[str]:
        """The Python files that merged does not have exactly as ours has them."""
        return [p for p, blobs in self.sides.differing.items() if p.endswith(".py") and blobs[3] != blobs[1]]

    def parents(self, path: str) -> Iterator[tuple[World, str]]:
        """(world, path) of the file on the sides that a merged file came from."""
        for world, side in ((self.ours, "ours"), (self.theirs, "theirs")):
            home = self.moves["merged"].files.get(path, path)
            there = next((new for new, old in self.moves[side].files.items() if old == home), home)
            for candidate in dict.fromkeys((path, there)):
                if candidate in world.tree:
                    yield world, candidate
                    break

    def before(self, path: str, read: Callable[[ModuleNames], set[str]]) -> set[str]:
        """What a reader finds in the file on either parent side."""
        found: set[str] = set()
        for world, there in self.parents(path):
            if (names := world.names(there)) is not None:
                found |= read(names)
        return found
