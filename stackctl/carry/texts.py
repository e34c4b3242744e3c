"""The text of one Python file with its tree: spans of nodes, lines of statements, edits that keep all else.

Also the difference of two texts by lines, as Git's patience algorithm finds it.
"""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from stackctl.trees.source import Source

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_BODIES = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Hunk:
    """Lines [start, end) of the base that a side has as `lines`, which are its own [first, last)."""

    start: int
    end: int
    first: int
    last: int
    lines: tuple[str, ...]

    def touches(self, other: Hunk) -> bool:
        """Whether no line stands between the two: what Git calls a conflict."""
        return self.start <= other.end and other.start <= self.end


def line_hunks(base: Sequence[str], side: Sequence[str]) -> list[Hunk]:
    """What `side` changed, hunk by hunk."""
    return [
        Hunk(i1, i2, j1, j2, tuple(side[j1:j2]))
        for i1, i2, j1, j2 in _gaps(list(_matches(base, side, 0, len(base), 0, len(side))), len(base), len(side))
    ]


def _gaps(pairs: list[tuple[int, int]], rows: int, columns: int) -> Iterator[tuple[int, int, int, int]]:
    i = j = 0
    for row, column in [*pairs, (rows, columns)]:
        if row > i or column > j:
            yield i, row, j, column
        i, j = row + 1, column + 1


def _matches(one: Sequence[str], two: Sequence[str], a: int, b: int, c: int, d: int) -> Iterator[tuple[int, int]]:
    """Pairs of equal lines, in order: anchored on lines that are unique on both sides."""
    while a < b and c < d and one[a] == two[c]:
        yield a, c
        a, c = a + 1, c + 1
    tail = 0
    while a < b - tail and c < d - tail and one[b - tail - 1] == two[d - tail - 1]:
        tail += 1
    b, d = b - tail, d - tail
    if a < b and c < d:
        anchors = _anchors(one, two, a, b, c, d)
        if anchors:
            for row, column in [*anchors, (b, d)]:
                yield from _matches(one, two, a, row, c, column)
                if row < b:
                    yield row, column
                a, c = row + 1, column + 1
        else:
            for i, j, size in SequenceMatcher(None, one[a:b], two[c:d], autojunk=False).get_matching_blocks():
                yield from ((a + i + k, c + j + k) for k in range(size))
    yield from ((b + k, d + k) for k in range(tail))


def _anchors(one: Sequence[str], two: Sequence[str], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """The longest ascending run of lines that each side has once and that say something."""
    left, right = Counter(one[a:b]), Counter(two[c:d])
    where = {line: column for column, line in enumerate(two[c:d], c) if right[line] == 1 and line.strip()}
    pairs = [(row, where[line]) for row, line in enumerate(one[a:b], a) if left[line] == 1 and line in where]
    tails: list[int] = []
    last: dict[int, tuple[int, int]] = {}
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    for pair in pairs:
        at = bisect_left(tails, pair[1])
        tails[at : at + 1] = [pair[1]]
        before[pair] = last.get(at - 1)
        last[at] = pair
    found, pair = [], last.get(len(tails) - 1)
    while pair is not None:
        found.append(pair)
        pair = before[pair]
    return found[::-1]


class Text:
    """One parsed module. Lines count from 0 here; raises SourceError where Python cannot parse it."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self.text = text
        self.lines = self.source.lines
        self.tree = self.source.module
        self._keys: dict[int, str] = {}

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [], 0
        for line in self.lines:
            starts.append(at)
            at += len(line)
        return [*starts, at]

    @cached_property
    def hosts(self) -> dict[str, ast.AST]:
        """Every definition by its dotted name; "" is the module. The last of several by one name counts."""
        found: dict[str, ast.AST] = {"": self.tree}
        for node, name in _definitions(self.tree, ""):
            found[name] = node
        return found

    @cached_property
    def twice(self) -> set[str]:
        """The names that are defined more than once: no address."""
        counts = Counter(name for _, name in _definitions(self.tree, ""))
        return {name for name, count in counts.items() if count > 1}

    def key(self, node: ast.AST) -> str:
        """The node's normal form: what Python reads, without places."""
        if id(node) not in self._keys:
            self._keys[id(node)] = ast.dump(node)
        return self._keys[id(node)]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The node's characters, half open."""
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, offset: int) -> int:
        return self._starts[line - 1] + self.source.column(line, offset)

    def code(self, node: ast.AST) -> str:
        """The node's own characters."""
        start, end = self.span(node)
        return self.text[start:end]

    def rows(self, node: ast.stmt) -> tuple[int, int]:
        """The statement's lines, decorators included, half open."""
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        return first - 1, node.end_lineno or node.lineno

    def lead(self, body: Sequence[ast.stmt], index: int) -> int:
        """The first of the blank and comment lines that stand right above a statement of `body`."""
        row = self.rows(body[index])[0]
        stop = self.rows(body[index - 1])[1] if index else 0
        while row > stop and (not (line := self.lines[row - 1].strip()) or line.startswith("#")):
            row -= 1
        return row

    def indent(self, node: ast.stmt) -> str:
        """The white space before a statement."""
        line = self.lines[self.rows(node)[0]]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def replaced(self, edits: Sequence[tuple[int, int, str]]) -> str:
        """The text with spans of characters replaced."""
        text = self.text
        for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def with_lines(self, first: int, last: int, new: str) -> str:
        """The text with lines [first, last) replaced."""
        start, end = self._starts[first], self._starts[last]
        head = self.text[:start]
        if new and head and not head.endswith(("\n", "\r")):
            head += self.source.newline
        return head + new + self.text[end:]


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS):
            name = f"{prefix}.{child.name}" if prefix else child.name
            yield child, name
            yield from _definitions(child, name)
        elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _definitions(child, prefix)


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements right below a node."""
    for name in _BODIES:
        if isinstance(found := getattr(node, name, None), list) and found:
            yield found
    for handler in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        yield handler.body


def below(node: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """(body, index) of every statement of a host, those of definitions inside it left out."""
    for body in bodies(node):
        for index, child in enumerate(body):
            yield body, index
            if not isinstance(child, DEFINITIONS):
                yield from below(child)


def reindent(text: str, old: str, new: str) -> str:
    """Lines moved from one depth to another; the insides of strings stay as they are."""
    if old == new:
        return text
    lines, inside = text.splitlines(keepends=True), _inside_strings(text, old)
    return "".join(
        line if row in inside or not line.strip() or not line.startswith(old) else new + line[len(old) :]
        for row, line in enumerate(lines)
    )


def _inside_strings(text: str, indent: str) -> set[int]:
    """The lines that start inside a string."""
    wrapped = f"if 1:\n{text}" if indent else text
    shift, rows = (1 if indent else 0), set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(wrapped).readline):
            if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
                rows |= set(range(token.start[0] - shift, token.end[0] - shift))
    except (tokenize.TokenError, SyntaxError):
        return set(range(1, text.count("\n") + 1))
    return rows


def tokens(lines: Sequence[str]) -> list[str]:
    """The code of some lines: every token that is not white space, line end or comment."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
            if token.type not in skipped:
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    return found


def only_comments(lines: Sequence[str]) -> bool:
    """Whether every line is blank or a comment."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in lines)


def names_of(nodes: Sequence[ast.AST]) -> tuple[set[str], set[str]]:
    """(read, bound) names of some statements; attributes of self as "self.x"."""
    read, bound = set(), set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                (bound if isinstance(node.ctx, ast.Store) else read).add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                (bound if isinstance(node.ctx, ast.Store) else read).add(f"self.{node.attr}")
            elif isinstance(node, DEFINITIONS):
                bound.add(node.name)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
    return read, bound
