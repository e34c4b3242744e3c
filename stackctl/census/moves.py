"""What one side moved or renamed: files by their lines, definitions by their statements.

Only what the other side changed is looked for: a half that hangs on a host that is gone must be
followed to where the host went before anyone calls it lost.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stackctl.census.sides import Sides, is_python
from stackctl.facts.search import read_many
from stackctl.facts.statements import Fact

_FILE_LIKENESS = 0.5
_SAME_NAME = 0.45
_OTHER_NAME = 0.6
_FAR = 0.8
_SHORTEST_LINE = 12
_FEWEST_LINES = 3
_DEFINED = re.compile(rb"\b(?:class|def)[ \t\f]+(\w+)")


@dataclass
class Moves:
    """Where one side's files and definitions were in base."""

    files: dict[str, str] = field(default_factory=dict)
    hosts: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def home(self, path: str, host: str) -> tuple[str, str]:
        """The (path, host) in base of what stands at (path, host) on this side."""
        prefix, rest = host, ""
        while self.hosts and prefix:
            if found := self.hosts.get((path, prefix)):
                return found[0], found[1] + rest
            head, _, tail = prefix.rpartition(".")
            prefix, rest = head, f".{tail}{rest}"
        return self.files.get(path, path), host

    def gone(self, path: str) -> str:
        """Where the base file `path` went, or ""."""
        return next((new for new, old in self.files.items() if old == path), "")

    def describe(self) -> list[tuple[str, str]]:
        """(from, to) of every move, for the evidence and the summary."""
        named = [(old, new) for new, old in self.files.items()]
        named += [(":".join(old), ":".join(new)) for new, old in self.hosts.items()]
        return sorted(named)


@dataclass(frozen=True)
class _Lost:
    """A definition of base (its header's `text`, the body's longer `lines`) that one side no longer has there."""

    path: str
    name: str
    text: str
    lines: tuple[bytes, ...]

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


def merge_moves(first: Moves, second: Moves) -> Moves:
    """The moves of the merged tree: both sides'."""
    return Moves({**second.files, **first.files}, {**second.hosts, **first.hosts})


def find_moves(sides: Sides, side: str, other: str) -> Moves:
    """The moves `side` made of files and definitions that `other` changed.

    Merged has no part in them, so they are kept: it is merged that changes from audit to audit.
    """
    key = _key(sides, side, other)
    stored = sides.cache.get("moves", key)
    if stored is not None:
        return Moves(dict(stored[0]), {tuple(new): tuple(old) for new, old in stored[1]})
    moves = _found_moves(sides, side, other)
    sides.cache.put("moves", key, (list(moves.files.items()), list(moves.hosts.items())))
    return moves


def _key(sides: Sides, side: str, other: str) -> str:
    """What the moves are found from: the three sides' blobs, and the code here."""
    blobs = [(path, *found[:3]) for path, found in sides.differing.items() if len(set(found[:3])) > 1]
    return hashlib.sha256(repr((side, other, blobs)).encode(errors="surrogateescape") + Path(__file__).read_bytes()).hexdigest()


def _found_moves(sides: Sides, side: str, other: str) -> Moves:
    moves = Moves()
    touched = [path for path, blobs in sides.differing.items() if _touched(sides, path, other, side)]
    added = [p for p in sides.differing if p in sides.tree(side) and p not in sides.base]
    for path in touched:
        if path not in sides.tree(side) and (target := closest_file(sides, "base", path, side, added)):
            moves.files[target] = path
    lost = [lost for path in touched if is_python(path) for lost in _lost(sides, path, side, other, moves)]
    held = _holders(sides, side, lost)
    for each in lost:
        _follow(sides, side, each, held.get(each, []), moves)
    return moves


def relocated(sides: Sides) -> dict[str, str]:
    """New path in merged to the path on the side that added the file: Git puts a new file of one side
    into the folder that the other side renamed."""
    new = [path for path, (base, ours, theirs, merged) in sides.differing.items() if merged and not (base or ours or theirs)]
    found: dict[str, str] = {}
    if not new:
        return found
    for path, (base, ours, theirs, merged) in sides.differing.items():
        if not base and not merged and bool(ours) != bool(theirs):
            target = closest_file(sides, "ours" if ours else "theirs", path, "merged", new)
            if target and target not in found:
                found[target] = path
    return found


def forget_kept(sides: Sides, moves: Moves) -> None:
    """Forget the moves of what merged has in both places: there the old one is a file or host of its own."""
    for new, old in list(moves.files.items()):
        if old in sides.merged and new in sides.merged:
            del moves.files[new]
    standing: dict[str, set[str]] = {}
    for (path, name), (old_path, old_name) in list(moves.hosts.items()):
        for file in (path, old_path):
            if file not in standing:
                standing[file] = {found for found, _ in definitions(sides.facts("merged", file))}
        if old_name in standing[old_path] and name in standing[path]:
            del moves.hosts[path, name]


def _touched(sides: Sides, path: str, other: str, side: str) -> bool:
    """Whether both sides changed this base file."""
    base = sides.blob("base", path)
    return bool(base) and sides.blob(other, path) not in ("", base) and sides.blob(side, path) != base


def closest_file(sides: Sides, origin: str, path: str, side: str, added: Iterable[str]) -> str:
    """The one of `added` on `side` that holds most of the lines that `path` has on `origin`, or ""."""
    blob, lines = sides.blob(origin, path), sides.lines(origin, path)
    suffix, best, score = path.rpartition(".")[2], "", _FILE_LIKENESS
    alike = [candidate for candidate in added if candidate.endswith(suffix)]
    if lines and (same := next((c for c in alike if sides.blob(side, c) == blob), "")):
        return same
    for candidate in alike:
        value = _dice(lines, sides.lines(side, candidate))
        if value > score:
            best, score = candidate, value
    return best


def _dice(one: Counter, other: Counter) -> float:
    total = one.total() + other.total()
    if 2 * min(one.total(), other.total()) < _FILE_LIKENESS * total:
        return 0.0  # sizes too far apart to be alike, whatever they hold
    return 2 * (one & other).total() / total if total else 0.0


def _lost(sides: Sides, path: str, side: str, other: str, moves: Moves) -> Iterator[_Lost]:
    """The definitions of `path` that `other` changed and `side` no longer has there, outer before inner."""
    base = sides.facts("base", path)
    present = {name for name, _ in definitions(sides.facts(side, moves.gone(path) or path))}
    changed = _changed_hosts(base, sides.facts(other, path))
    lines = sides.read("base", path).splitlines()
    for name, fact in definitions(base):
        if name not in present and any(host == name or host.startswith(f"{name}.") for host in changed):
            body = [line.strip() for line in lines[fact.line : fact.end]]
            yield _Lost(path, name, fact.text, tuple(line for line in body if len(line) >= _SHORTEST_LINE))


def _follow(sides: Sides, side: str, lost: _Lost, holders: list[str], moves: Moves) -> None:
    """Note where `side` moved a definition to, if that can be told."""
    if any(old[0] == lost.path and lost.name.startswith(f"{old[1]}.") for old in moves.hosts.values()):
        return  # its class moved, and it went along
    base, here = sides.facts("base", lost.path), moves.gone(lost.path) or lost.path
    target = _renamed(base, sides.facts(side, here), lost.name, lost.text)
    found = (here, target) if target else _elsewhere(sides, side, lost, body(base, lost.name), holders)
    if found:
        moves.hosts[found] = (lost.path, lost.name)


def definitions(facts: Iterable[Fact]) -> list[tuple[str, Fact]]:
    """(qualified name, fact) of every definition, outer before inner."""
    found = []
    for fact in facts:
        if fact.kind == "definition":
            name = fact.text.rpartition(" ")[2]
            found.append((f"{fact.host}.{name}" if fact.host else name, fact))
    return found


def _changed_hosts(base: list[Fact], other: list[Fact]) -> set[str]:
    before = Counter((fact.host, fact.kind, fact.text, fact.under) for fact in base)
    after = Counter((fact.host, fact.kind, fact.text, fact.under) for fact in other)
    return {host for host, *_ in (before - after) + (after - before)}


def body(facts: Iterable[Fact], name: str) -> Counter[tuple[str, str, str]]:
    """The content of one definition, without its own name."""
    inside = f"{name}."
    return Counter(
        (fact.host[len(name) :], fact.kind, fact.text)
        for fact in facts
        if (fact.host == name or fact.host.startswith(inside)) and fact.kind not in ("docstring", "annotation")
    )


def _renamed(base: list[Fact], now: list[Fact], name: str, text: str) -> str:
    """The new name of a definition in the same file: a new definition with nearly the same body."""
    known = {other for other, _ in definitions(base)}
    content, word = body(base, name), text.split()[-2]
    best, score = "", 0.0
    for candidate, found in definitions(now):
        if candidate in known or found.text.split()[-2] != word:
            continue
        same = candidate.rpartition(".")[2] == name.rpartition(".")[2]
        value = _dice(content, body(now, candidate))
        if value >= (_SAME_NAME if same else _OTHER_NAME) and value + same > score:
            best, score = candidate, value + same
    return best


def _elsewhere(
    sides: Sides, side: str, lost: _Lost, content: Counter[tuple[str, str, str]], holders: list[str]
) -> tuple[str, str] | None:
    """The place in another file that `side` moved a definition to, if exactly one is alike enough."""
    found = sorted((alike for path in holders for alike in _alike(sides, side, path, content, lost.short)), reverse=True)
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    return found[0][1], found[0][2]


def _holders(sides: Sides, side: str, lost: list[_Lost]) -> dict[_Lost, list[str]]:
    """Other files that `side` changed and whose bytes make them worth parsing: each is read once for all the lost.

    Such a file defines the same name, or holds most of the body's lines.
    """
    named, lined = defaultdict(list), defaultdict(list)
    for each in lost:
        named[each.short.encode()].append(each)
        for line, times in Counter(each.lines).items() if len(each.lines) >= _FEWEST_LINES else ():
            lined[line].append((each, times))
    found: dict[_Lost, list[str]] = defaultdict(list)
    for path, data in _changed_files(sides, side) if lost else ():
        holding = {each for name in _DEFINED.findall(data) for each in named.get(name, ())}
        held: Counter[_Lost] = Counter()
        for line in lined.keys() & {line.strip() for line in data.splitlines()}:
            held.update(dict(lined[line]))
        holding |= {each for each, times in held.items() if times >= _FAR * len(each.lines)}
        for each in holding:
            if each.path != path:
                found[each].append(path)
    return found


def _changed_files(sides: Sides, side: str) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of the Python files that `side` has otherwise than base."""
    tree = sides.tree(side)
    paths = [p for p, blobs in sides.differing.items() if is_python(p) and p in tree and blobs[0] != tree.blob(p)]
    return read_many(tree, [path for path in paths if tree.is_file(path)])


def _alike(
    sides: Sides, side: str, path: str, content: Counter[tuple[str, str, str]], short: str
) -> list[tuple[float, str, str]]:
    """(likeness, path, name) of every new definition in `path` that is alike enough."""
    known = {name for name, _ in definitions(sides.facts("base", path))}
    now, found = sides.facts(side, path), []
    for name, _ in definitions(now):
        if name in known:
            continue
        same = name.rpartition(".")[2] == short
        value = _dice(content, body(now, name))
        if value >= (_SAME_NAME if same else _FAR) and (same or content.total() >= 3):
            found.append((value + same, path, name))
    return found
