"""Follow a definition or a module-level value that upstream moved to another file, text unchanged.

Only what is alike in every token, and stands at exactly one place of the new tree, is followed.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from stackctl.carry.fork import State
from stackctl.carry.kept import Kept
from stackctl.carry.merge3 import CARRIED, PROPOSAL, Half
from stackctl.carry.proposing import Similar
from stackctl.carry.texts import DEFINITIONS, Text
from stackctl.carry.world import World
from stackctl.trees.git import Repository
from stackctl.trees.source import Source, SourceError
from stackctl.trees.tree import GitTree, read_all

_GONE = "upstream no longer has"
_IDENTIFIER = re.compile(rb"\b[A-Za-z_]\w{5,}\b")
_FEW = 5  # with fewer identifiers anything is alike
_HALF = 0.5


@dataclass
class Follower:
    """Looks for what one release had, in the files that the next one changed."""

    repository: Repository
    base: GitTree
    theirs: GitTree
    kept: Kept
    world: World
    _parsed: dict[str, Text | None] = field(default_factory=dict)
    _bases: dict[str, Text | None] = field(default_factory=dict)
    _places: dict[tuple[object, ...], tuple[str, str] | None] = field(default_factory=dict)

    @cached_property
    def _changed(self) -> dict[str, bytes]:
        """The Python files of the new release that the base does not have so."""
        paths = [
            path for path in self.theirs.paths()
            if path.endswith(".py") and self.theirs.is_file(path) and (path not in self.base or self.base.blob(path) != self.theirs.blob(path))
        ]  # fmt: skip
        return dict(read_all(self.theirs, paths))

    def follow(
        self, halves: Sequence[Half], files: dict[str, State | None], fork: Mapping[str, State | None]
    ) -> list[Half]:
        """The halves with those of moved hosts made in their new place; `files` is changed accordingly."""
        groups: dict[tuple[str, str], list[Half]] = defaultdict(list)
        for half in halves:
            if half.state == PROPOSAL and half.evidence.startswith(_GONE) and half.path in fork:
                groups[half.path, half.host].append(half)
        moved: dict[tuple[str, str], list[Half]] = {}
        for (path, host), some in groups.items():
            state = fork[path]
            if state is not None and (made := self._follow(path, host, some, state, files)):
                moved[path, host] = made
        result = [
            half
            for half in halves
            if not (half.state == PROPOSAL and half.evidence.startswith(_GONE) and (half.path, half.host) in moved)
        ]
        return [*result, *(half for some in moved.values() for half in some)]

    def _follow(
        self, path: str, host: str, halves: Sequence[Half], state: State, files: dict[str, State | None]
    ) -> list[Half] | None:
        place = self._place(path, host, halves)
        if place is None or place[0] == path:
            return None
        target, name = place
        now = files.get(target) or State(self.theirs.mode(target), self.theirs.read(target))
        try:
            base, ours, source = (Source.decode(each) for each in (self.base.read(path), state.data, now.data))
        except SourceError:
            return None
        hosts = {host: name} if host else {}
        made = self.kept.follow(base.text, ours.text, source.text, hosts, [(half.rows, half.base_rows) for half in halves], self.world)
        if made is None:
            return None
        files[target] = State(now.mode, source.encode(made.text))
        how = f"its host moved from {path}, text unchanged; "
        return [replace(half, path=target, host=name, how=how + half.how, state=CARRIED) for half in made.halves]

    def _place(self, path: str, host: str, halves: Sequence[Half]) -> tuple[str, str] | None:
        """(path, name) of where a host, or the module-level value that some halves edit, stands now."""
        key = path, host, () if host else tuple(sorted({half.base_rows for half in halves}))
        if key not in self._places:
            text = self._base_text(path)
            found = None if text is None else self._definition(text, host) if host else self._value(text, halves)
            self._places[key] = found
        return self._places[key]

    def _base_text(self, path: str) -> Text | None:
        if path not in self._bases:
            try:
                self._bases[path] = Text(Source.decode(self.base.read(path)).text)
            except SourceError:
                self._bases[path] = None
        return self._bases[path]

    def _definition(self, base: Text, host: str) -> tuple[str, str] | None:
        """(path, name) of the only definition of the new release with the body that `host` had."""
        node = base.hosts.get(host)
        if node is None or not isinstance(node, DEFINITIONS):
            return None
        wanted = _body(node)
        lines = sorted((line.strip() for line in base.lines[node.body[0].lineno - 1 : node.end_lineno]), key=len)
        found = []
        for path in self._holding([line.encode() for line in lines[-2:]]):
            text = self._text(path)
            for name, candidate in text.hosts.items() if text else ():
                if isinstance(candidate, type(node)) and _body(candidate) == wanted:
                    found.append((path, name))
        return found[0] if len(found) == 1 else None

    def _value(self, base: Text, halves: Sequence[Half]) -> tuple[str, str] | None:
        """The only file of the new release that gives the module-level name the value that it had."""
        rows = {row for half in halves for row in range(*half.base_rows)}
        nodes = [node for node in base.tree.body if isinstance(node, ast.Assign) and node.lineno - 1 in rows]
        if len(nodes) != 1 or not isinstance(nodes[0].targets[0], ast.Name):
            return None
        name, wanted, found = nodes[0].targets[0].id, ast.dump(nodes[0]), []
        for path in self._holding([f"{name} =".encode()]):
            text = self._text(path)
            alike = (
                [
                    node
                    for node in text.tree.body
                    if isinstance(node, ast.Assign) and ast.dump(node.targets[0]) == ast.dump(nodes[0].targets[0])
                ]
                if text
                else []
            )
            found += [(path, "") for node in alike if ast.dump(node) == wanted]
        return found[0] if len(found) == 1 else None

    def _holding(self, needles: Iterable[bytes]) -> list[str]:
        wanted = list(needles)
        return [path for path, data in self._changed.items() if all(needle in data for needle in wanted)]

    def _text(self, path: str) -> Text | None:
        if path not in self._parsed:
            try:
                self._parsed[path] = Text(Source.decode(self._changed[path]).text)
            except SourceError:
                self._parsed[path] = None
        return self._parsed[path]

    @cached_property
    def _words(self) -> dict[str, frozenset[bytes]]:
        """The longer identifiers of each changed file."""
        return {path: frozenset(_IDENTIFIER.findall(data)) for path, data in self._changed.items()}

    @cached_property
    def _weights(self) -> dict[bytes, float]:
        """How much an identifier says: the fewer files have it, the more."""
        counts = Counter(word for words in self._words.values() for word in words)
        return {word: math.log(1 + len(self._words) / count) for word, count in counts.items()}

    def elsewhere(self, code: str) -> Similar | None:
        """The definition of a changed file that has most of some code's identifiers; None if none has half of them."""
        wanted = frozenset(_IDENTIFIER.findall(code.encode("utf-8", "replace")))
        rarest = max(self._weights.values(), default=1.0)
        total = sum(self._weights.get(word, rarest) for word in wanted)
        if len(wanted) < _FEW:
            return None
        ranked = sorted(((self._weight(wanted & words), path) for path, words in self._words.items()), reverse=True)
        best: Similar | None = None
        for weight, path in ranked[:3]:
            text = self._text(path) if weight >= total * _HALF else None
            for name, node in text.hosts.items() if text else ():
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                inside = text.code(node)
                share = self._weight(wanted & frozenset(_IDENTIFIER.findall(inside.encode()))) / total
                if share >= _HALF and (best is None or share > best.share):
                    best = Similar(node.lineno, inside, share, name, path)
        return best

    def _weight(self, words: Iterable[bytes]) -> float:
        return sum(self._weights.get(word, 0.0) for word in words)

    def similar_file(self, path: str) -> str:
        """Words for the evidence: where the definitions of a deleted file are now, by name."""
        data = self.base.read(path)
        names = re.findall(rb"^[ ]*(?:class|def|async def)\s+(\w{6,})", data, re.MULTILINE)
        found = []
        for other, text in self._changed.items():
            hits = sum(bool(re.search(rb"(?:class|def)\s+%s\b" % name, text)) for name in names if name in text)
            if hits and not name_is_common(hits, len(names)):
                found.append((hits, other))
        best = [f"{other} ({hits} of its definitions)" for hits, other in sorted(found, reverse=True)[:3]]
        return f"; the most similar code now: {', '.join(best)}" if best else ""


def name_is_common(hits: int, names: int) -> bool:
    """Whether so few names in common say nothing."""
    return hits * 5 < names


def _body(node: ast.AST) -> str:
    return "".join(ast.dump(each) for each in node.body)
