"""Put back what an audit found lost, taking the code from the side that had it.

Text moves, not syntax trees: lines of the side that has a half are laid against merged, and the
smallest difference that brings the half back is taken over byte for byte. Every step is judged by
the audit's own count: it must mend something in its host and harm nothing anywhere in the file,
or it is undone. What cannot be placed that way is left alone and named.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial

from stackctl.carry.transplant import transplant
from stackctl.census.audit import Audit
from stackctl.census.delta import Census, Key
from stackctl.census.imports import import_followed
from stackctl.census.placement import misplaced
from stackctl.census.sides import SIDES, Sides, is_python
from stackctl.census.survival import Judged, Survival
from stackctl.facts.statements import Fact, read_facts
from stackctl.model.report import Report
from stackctl.model.verdict import Level, Verdict
from stackctl.trees.source import Source, SourceError
from stackctl.trees.tree import Tree

_MENDABLE = frozenset(
    {Verdict.LOST, Verdict.UPSTREAM_LOST, Verdict.RESURRECTED, Verdict.DUPLICATED, Verdict.ALTERED, Verdict.HOST_GONE}
)
_STEPS = 40
_ALIKE = 0.6  # two lines, one of which follows a rename of the other

Bad = Counter[tuple[Key, str, Verdict]]


@dataclass(frozen=True)
class Left:
    """A host whose halves could not be placed, and why."""

    path: str
    symbol: str
    reason: str


@dataclass
class Restored:
    """The files to write, and what was left for a person."""

    changes: dict[str, bytes] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)


def restore(trees: Sequence[Tree], report: Report | None = None) -> dict[str, bytes]:
    """The changed files of merged, by path. `report` limits the work to the files it has findings in."""
    from stackctl.facts.cache import FactsCache

    sides = Sides(*trees, FactsCache.default())
    if report is not None:
        named = {finding.path for finding in report.findings} & set(sides.differing)
        sides.__dict__["differing"] = {path: sides.differing[path] for path in named}
    audit = Audit(sides)
    audit.judge()
    return restore_audit(audit).changes


def restore_audit(audit: Audit) -> Restored:
    """Put back what one audit found lost in its merged tree."""
    restored = Restored()
    by_path: dict[str, list[Judged]] = defaultdict(list)
    for item in audit.judged:
        if item.verdict in _MENDABLE:
            by_path[_merged_path(audit, item)].append(item)
    for path, items in sorted(by_path.items()):
        _restore_path(audit, path, items, restored)
    return restored


def _merged_path(audit: Audit, item: Judged) -> str:
    return audit.census.place("merged", item.key.path, item.key.host)[0]


def _restore_path(audit: Audit, path: str, items: list[Judged], restored: Restored) -> None:
    whole = next((item for item in items if item.key.kind == "file"), None)
    if whole is not None:
        _restore_file(audit, path, whole, restored)
        return
    if path not in audit.sides.merged or not audit.sides.merged.is_file(path):
        restored.left.append(Left(path, "", "merged has no such file"))
        return
    try:
        bench = _Bench(audit, path)
    except SourceError as error:
        restored.left.append(Left(path, "", f"merged cannot be parsed: {error.reason}"))
        return
    hosts: dict[str, list[Judged]] = defaultdict(list)
    for item in items:
        hosts[item.key.host].append(item)
    # Outer hosts first: a class that comes back brings its methods along.
    for host, batch in sorted(hosts.items()):
        if not bench.mend(host, batch):
            restored.left.append(Left(path, host, "no place found that harms nothing else"))
    if bench.text != bench.source.text:
        restored.changes[path] = bench.source.encode(bench.text)


def _restore_file(audit: Audit, path: str, item: Judged, restored: Restored) -> None:
    """A whole file that is missing comes back as it was; one that should not be there is left to a person."""
    tree = audit.sides.tree("ours" if item.side == "ours" else "theirs")
    if item.verdict in (Verdict.LOST, Verdict.UPSTREAM_LOST) and item.sign > 0 and path in tree:
        restored.changes[path] = tree.read(path)
    else:
        restored.left.append(Left(path, "", item.evidence or str(item.verdict)))


class _Bench:
    """One file of merged on the workbench: its text so far, and what is still wrong with it."""

    def __init__(self, audit: Audit, path: str) -> None:
        self._audit = audit
        self._path = path
        self.source = Source.decode(audit.sides.read("merged", path))
        if is_python(path):
            _ = self.source.module
        self.text = self.source.text
        self._home = audit.moves["merged"].home(path, "")[0]
        self._files = self._related()
        self._free: set[str] = set()  # texts of merged that stand where something is lost, or should not stand
        self._bad = self._judge(self.text) or Counter()

    def _related(self) -> list[str]:
        """The files whose facts can count under the same names as this one's."""
        moves = self._audit.moves["merged"]
        paths = {self._path, self._home, moves.gone(self._home) or self._home}
        paths |= {new for (new, _), (old, _) in moves.hosts.items() if old in paths}
        paths |= {old for (new, _), (old, _) in moves.hosts.items() if new in paths}
        return sorted(paths)

    def _judge(self, text: str) -> Bad | None:
        """Everything wrong with the file if its text were this; None if it would not parse."""
        try:
            facts = self._facts(text)
        except (SourceError, RecursionError):
            return None
        census, sides, moves = Census(), self._audit.sides, self._audit.moves
        for path in self._files:
            as_text = path in self._audit.by_text
            for side in SIDES:
                mine = side == "merged" and path == self._path
                census.add(side, path, facts if mine else sides.facts(side, path, as_text), moves[side])
        survival = Survival(census, partial(import_followed, sides))
        judged = [*survival.judge(), *misplaced(census, survival.counts)]
        bad = [item for item in judged if item.verdict.level is not Level.NOTE]
        self._free |= {text for item in bad for text in (item.key.text, item.instead)}
        return Counter((item.key, item.side, item.verdict) for item in bad)

    def _facts(self, text: str) -> list[Fact]:
        if is_python(self._path) and self._path not in self._audit.by_text:
            return read_facts(Source(text, self.source.encoding))
        from stackctl.facts.text import read_text_facts

        return read_text_facts(text.encode("utf-8", "surrogatepass"), is_python(self._path))

    def mend(self, host: str, items: list[Judged]) -> bool:
        """Bring the halves of one host back, all of them or none. True if nothing of them is wrong any more."""
        before, bad = self.text, self._bad
        keys = {item.key for item in items}
        for _ in range(_STEPS):
            open_items = [item for item in items if any(key == item.key for key, _, _ in self._bad)]
            if not open_items:
                return True
            if not any(self._step(item) for item in open_items):
                break
        if any(key in keys for key, _, _ in self._bad):
            self.text, self._bad = before, bad
            return False
        return True

    def _step(self, item: Judged) -> bool:
        """Take the first change that mends something and harms nothing."""
        return any(self._try(text) for text in _proposals(self._audit, self._path, self.text, item))

    def _try(self, text: str) -> bool:
        if text == self.text:
            return False
        free, bad = set(self._free), self._judge(text)
        if bad is None or bad - self._bad or bad == self._bad or not self._gone(text) <= free:
            self._free = free
            return False
        self.text, self._bad = text, bad
        return True

    def _gone(self, text: str) -> set[str]:
        """What stands in merged and would not any more: a line of ours that already follows upstream's
        renames was once put back as ours has it, since that is no worse by the census."""
        before, after = (Counter((f.host, f.kind, f.text) for f in self._facts(one)) for one in (self.text, text))
        return {fact[2] for fact in before - after}


def _proposals(audit: Audit, path: str, text: str, item: Judged) -> Iterator[str]:
    """Texts of the file in which one half might be right, best first."""
    for side in ("ours",) if item.side == "ours" else ("theirs", "ours"):
        there = _place_on(audit, side, item.key)
        source = audit.sides.source(side, there)
        if source is None:
            continue
        other = source.text.replace("\r\n", "\n").replace("\n", _newline(text))
        yield from _line_proposals(text, other, item, audit.census, side)
        yield from _token_proposals(audit, text, other, item, side)


def _place_on(audit: Audit, side: str, key: Key) -> str:
    return audit.moves[side].gone(key.path) or audit.census.place(side, key.path, key.host)[0]


def _newline(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _line_proposals(text: str, other: str, item: Judged, census: Census, side: str) -> Iterator[str]:
    """Whole lines of the side taken over, within the host if both have it, else within the file."""
    mine, yours = text.splitlines(keepends=True), other.splitlines(keepends=True)
    wanted = {line for fact in census.of(item.key, side) for line in range(fact.line - 1, max(fact.end, fact.line))}
    here = _span(text, item.key.host)
    there = _span(other, census.place(side, item.key.path, item.key.host)[1])
    if here is None or there is None:
        here, there = (0, len(mine)), (0, len(yours))
    yield from _blocks(mine, yours, here, there, wanted, item)


def _span(text: str, host: str) -> tuple[int, int] | None:
    """The half-open line range of a definition, decorators included; of the whole file for the module."""
    if not host:
        return 0, len(text.splitlines())
    try:
        body: list[ast.stmt] = Source(text).module.body
    except SourceError:
        return None
    found: list[ast.stmt] = []
    for name in host.split("."):
        # A property and its setter share one name, and so do definitions under two branches.
        found = [node for node in _flat(body) if getattr(node, "name", None) == name]
        if not found:
            return None
        body = [inner for node in found for inner in getattr(node, "body", [])]
    first = min(line for node in found for line in [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return first - 1, max(node.end_lineno or node.lineno for node in found)


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The definitions of one scope, those under branches included."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
        else:
            for name in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, name, [])
                yield from _flat([b for n in inner for b in (n.body if isinstance(n, ast.ExceptHandler) else [n])])


def _blocks(
    mine: list[str], yours: list[str], here: tuple[int, int], there: tuple[int, int], wanted: set[int], item: Judged
) -> Iterator[str]:
    """Each difference that holds a wanted line (or, for a removal, an unwanted one), applied in several ways."""
    one, two = mine[here[0] : here[1]], yours[there[0] : there[1]]
    unwanted = set(range(item.fact.line - 1, max(item.fact.end, item.fact.line))) if item.fact and item.sign < 0 else set()
    if item.verdict is Verdict.DUPLICATED and item.fact:
        unwanted = set(range(item.fact.line - 1, max(item.fact.end, item.fact.line)))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        touched = any(there[0] + j in wanted for j in range(j1, j2)) or any(here[0] + i in unwanted for i in range(i1, i2))
        if tag == "equal" or not touched:
            continue
        start, end, new = here[0] + i1, here[0] + i2, two[j1:j2]
        yield _joined(mine, start, end, new)
        if surplus := unwanted & set(range(start, end)):
            yield "".join(line for number, line in enumerate(mine) if number not in surplus)
        part = _only_wanted(two, j1, j2, {line - there[0] for line in wanted})
        if tag == "replace":
            # Beside what upstream brought to the same place, ours comes second: an `elif` of ours
            # that stood last before the `else` stays there.
            yield _joined(mine, end, end, new)
            yield _joined(mine, start, start, new)
            yield from _splits(mine, start, end, new)
        if part and part != new:
            at = start + _place_beside(one[i1:i2], new, part)
            yield from (_joined(mine, place, place, part) for place in dict.fromkeys((at, end, start)))


def _place_beside(mine: list[str], yours: list[str], part: list[str]) -> int:
    """Where among lines of merged some lines of the side go: above what is most like the line that stands below them."""
    first = next(index for index in range(len(yours)) if yours[index] == part[0])
    below = [line for line in yours[first + len(part) :] if line.strip()][:1]
    if yours[first : first + len(part)] != part or not below:
        return len(mine)
    alike = [SequenceMatcher(None, line, below[0]).ratio() for line in mine]
    return alike.index(max(alike)) if alike and max(alike) >= _ALIKE else len(mine)


def _splits(mine: list[str], start: int, end: int, new: list[str]) -> Iterator[str]:
    """A replacement of fewer lines than the difference spans: its first or last ones."""
    for at in range(start + 1, end):
        yield _joined(mine, start, at, new)
        yield _joined(mine, at, end, new)


def _only_wanted(lines: list[str], first: int, last: int, wanted: set[int]) -> list[str]:
    """The wanted lines of a block, each with the comments and decorators right above it and the blank lines below it."""
    keep: set[int] = set()
    for line in range(first, last):
        if line in wanted:
            keep.add(line)
            above = line - 1
            while above >= first and lines[above].lstrip().startswith(("#", "@")):
                keep.add(above)
                above -= 1
            below = line + 1
            while below < last and not lines[below].strip():
                keep.add(below)
                below += 1
    return [lines[line] for line in sorted(keep)]


def _joined(mine: list[str], start: int, end: int, new: list[str]) -> str:
    if new and start and not mine[start - 1].endswith(("\n", "\r")):
        new = [_newline("".join(mine)), *new]
    return "".join([*mine[:start], *new, *mine[end:]])


def _token_proposals(audit: Audit, text: str, other: str, item: Judged, side: str) -> Iterator[str]:
    """The side's edit of one statement or header carried over token by token, the other side's edit kept."""
    key = item.key
    old = audit.sides.source("base", key.path)
    if old is None or not is_python(key.path):
        return
    names = (key.host, audit.census.place(side, key.path, key.host)[1], audit.census.place("merged", key.path, key.host)[1])
    texts = (old.text.replace("\r\n", "\n").replace("\n", _newline(text)), other, text)
    spans = [_span(content, name) for content, name in zip(texts, names, strict=True)]
    if any(span is None for span in spans):
        return
    pieces = [content.splitlines(keepends=True)[s[0] : s[1]] for content, s in zip(texts, spans, strict=True) if s]
    base, edited, target = ("".join(piece) for piece in pieces)
    wanted = {line - spans[1][0] for f in audit.census.of(key, side) for line in range(f.line - 1, max(f.end, f.line))}
    lines = text.splitlines(keepends=True)
    head, tail = "".join(lines[: spans[2][0]]), "".join(lines[spans[2][1] :])
    for result in transplant(base, edited, target, wanted):
        yield head + result + tail

