"""What every rule starts from: the four trees as modules, and which files are the fork's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from stackctl.census.moves import Moves
from stackctl.census.sides import Sides
from stackctl.facts.search import holding
from stackctl.facts.world import World
from stackctl.trees.tree import GitTree, OverlayTree, Tree

Test = Callable[[World, str], bool | None]


class Context:
    """The merged tree against the sides it came from."""

    def __init__(self, sides: Sides, moves: dict[str, Moves], unsettled: frozenset[tuple[str, int]] = frozenset()) -> None:
        self.sides = sides
        self.moves = moves
        # (path, line in ours) of the halves of ours that are not simply intact
        self.unsettled = unsettled
        self.merged = World(sides.merged, sides.cache)
        self.ours = World(sides.ours, sides.cache)
        self.theirs = World(sides.theirs, sides.cache)
        self.base = World(sides.base, sides.cache)

    @cached_property
    def own(self) -> list[str]:
        """The Python files of merged that upstream does not have exactly like this: the fork's side."""
        return [p for p, blobs in self.sides.differing.items() if p.endswith(".py") and blobs[3] and blobs[3] != blobs[2]]

    @cached_property
    def parts(self) -> frozenset[str]:
        """Every folder's and file's name on any side, endings left off: no other name can be a module's."""
        names = {part for path in self.sides.paths for part in path.split("/")}
        return frozenset(name.partition(".")[0] for name in names)

    @cached_property
    def apart(self) -> list[str]:
        """The Python files that merged does not have exactly as ours has them."""
        return [p for p, blobs in self.sides.differing.items() if p.endswith(".py") and blobs[3] != blobs[1]]

    def parents(self, path: str) -> Iterator[tuple[World, str]]:
        """(world, path) of the file on the sides that a merged file came from."""
        for side in ("ours", "theirs"):
            if there := self._there(side, path):
                yield getattr(self, side), there

    def _there(self, side: str, path: str) -> str:
        """The path of a merged file on one side, moves followed; "" if it has none there."""
        home = self.moves["merged"].files.get(path, path)
        tree = self.sides.tree(side)
        for candidate in (path, self.moves[side].gone(home), home):
            if candidate and candidate in tree:
                return candidate
        return ""

    def fell(self, path: str, test: Test) -> bool:
        """Whether something that fails in merged should hold there, by the three-way rule.

        `test` says of one side whether it holds (None: that side does not have it at all). What
        one side broke on its own, or what never held, is not the merge's doing.
        """
        held = {}
        for side in ("base", "ours", "theirs"):
            there = self._there(side, path)
            held[side] = test(getattr(self, side), there) if there else None
        if held["ours"] is None and held["theirs"] is None:
            return any(test(getattr(self, side), path) for side in ("ours", "theirs", "base"))
        for side in ("ours", "theirs"):
            if held[side] is False and held["base"] is not False:
                return False
        return held["ours"] is True or held["theirs"] is True

    def others_holding(self, words: Iterable[bytes]) -> list[str]:
        """Upstream's own Python files of merged whose bytes hold one of `words`."""
        own = set(self.own)
        return [path for path in self.holding("merged", words) if path not in own]

    def holding(self, side: str, words: Iterable[bytes]) -> list[str]:
        """The Python files of one side whose bytes hold one of `words`, remembered per commit."""
        return self._holding(self.sides.tree(side), sorted(set(words) - {b""}))

    def _holding(self, tree: Tree, wanted: list[bytes]) -> list[str]:
        if wanted and isinstance(tree, OverlayTree):
            found = {path for path in self._holding(tree.base, wanted) if path not in tree.changes}
            own = ((path, data) for path, data in tree.changes.items() if data is not None and path.endswith(".py"))
            return sorted(found | {path for path, data in own if any(word in data for word in wanted)})
        if not wanted or not isinstance(tree, GitTree):
            return holding(tree, wanted)
        key = f"{tree.commit}:{hashlib.sha1(b'|'.join(wanted), usedforsecurity=False).hexdigest()}"
        found = self.sides.cache.get("grep", key)
        if found is None:
            found = holding(tree, wanted)
            self.sides.cache.put("grep", key, found)
        return found
