"""What one side moved or renamed: files by their lines, definitions by their statements.

Only what the other side changed is looked for: a half that hangs on a host that is gone must be
followed to where the host went before anyone calls it lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from stackctl.census.sides import Sides, is_python
from stackctl.facts.statements import Fact

_FILE_LIKENESS = 0.5
_SAME_NAME = 0.45
_OTHER_NAME = 0.6
_FAR = 0.8
_SHORTEST_LINE = 12


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


def merge_moves(first: Moves, second: Moves) -> Moves:
    """The moves of the merged tree: both sides'."""
    return Moves({**second.files, **first.files}, {**second.hosts, **first.hosts})


def find_moves(sides: Sides, side: str, other: str) -> Moves:
    """The moves `side` made of files and definitions that `other` changed."""
    moves = Moves()
    touched = [path for path, blobs in sides.differing.items() if _touched(sides, path, other, side)]
    added = [p for p in sides.differing if p in sides.tree(side) and p not in sides.base]
    for path in touched:
        if path not in sides.tree(side) and (target := closest_file(sides, "base", path, side, added)):
            moves.files[target] = path
    for path in touched:
        if is_python(path):
            _moved_hosts(sides, path, side, other, moves)
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


def _moved_hosts(sides: Sides, path: str, side: str, other: str, moves: Moves) -> None:
    """Follow the definitions of `path` that `other` changed and `side` no longer has there."""
    base = sides.facts("base", path)
    here = moves.gone(path) or path
    now = sides.facts(side, here)
    present = {name for name, _ in definitions(now)}
    changed = _changed_hosts(base, sides.facts(other, path))
    for name, fact in definitions(base):
        if name in present or not any(host == name or host.startswith(f"{name}.") for host in changed):
            continue
        if any(old[0] == path and name.startswith(f"{old[1]}.") for old in moves.hosts.values()):
            continue  # its class moved, and it went along
        target = _renamed(base, now, name, fact) or None
        found = (here, target) if target else _elsewhere(sides, path, side, base, name, fact)
        if found:
            moves.hosts[found] = (path, name)


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


def _renamed(base: list[Fact], now: list[Fact], name: str, fact: Fact) -> str:
    """The new name of a definition in the same file: a new definition with nearly the same body."""
    known = {other for other, _ in definitions(base)}
    content, word = body(base, name), fact.text.split()[-2]
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
    sides: Sides, path: str, side: str, base: list[Fact], name: str, fact: Fact
) -> tuple[str, str] | None:
    """The place in another file that `side` moved a definition to, if exactly one is alike enough."""
    content, short = body(base, name), name.rpartition(".")[2]
    header = f"{fact.text.split()[-2]} {short}".encode()
    lines = _distinctive(sides.read("base", path), fact)
    found: list[tuple[float, str, str]] = []
    for candidate, blobs in sides.differing.items():
        if candidate == path or not is_python(candidate) or blobs[0] == sides.blob(side, candidate):
            continue
        if candidate in sides.tree(side) and _may_hold(sides.read(side, candidate), header, lines):
            found += _alike(sides, side, candidate, content, short)
    found.sort(reverse=True)
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    return found[0][1], found[0][2]


def _distinctive(data: bytes, fact: Fact) -> list[bytes]:
    lines = data.splitlines()[fact.line : fact.end]
    return [line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE]


def _may_hold(data: bytes, header: bytes, lines: list[bytes]) -> bool:
    """Whether a file's bytes make it worth parsing: the same name, or most of the body's lines."""
    if header in data:
        return True
    return len(lines) >= 3 and sum(line in data for line in lines) >= _FAR * len(lines)


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
