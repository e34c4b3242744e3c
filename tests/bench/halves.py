"""Every half of a Python file that can be taken away alone, with the edit that takes it away.

Written apart from `stackctl.facts`, on purpose: a measuring bed that reads with the code it measures
is blind where that code is blind.
"""

from __future__ import annotations

import ast
import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackctl.trees.source import Source, SourceError

KINDS = ("statement", "definition", "keyword", "import", "decorator", "element", "branch")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.If, ast.Match)
Span = tuple[int, int]


@dataclass(frozen=True)
class Half:
    """One half: `symbol` is its host, `key` its normalised text, `symbols` where a finding may name it."""

    kind: str
    symbol: str
    key: str
    line: int
    symbols: tuple[str, ...]
    cut: Span = field(compare=False)
    filler: str = field(default="", compare=False)
    inside: tuple[str, ...] = field(default=(), compare=False)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two halves of two files the same."""
        return self.kind, self.symbol, self.key


def take_away(source: Source, half: Half) -> str | None:
    """The text without `half`, or None if that is no Python or says the same as before."""
    start, end = half.cut
    text = source.text[:start] + half.filler + source.text[end:]
    try:
        same = ast.dump(Source(text).module) == ast.dump(source.module)
    except SourceError:
        return None
    return None if same else text


def halves_of(source: Source) -> list[Half]:
    """Every half of a file, in reading order. Empty for a file that does not parse."""
    try:
        return list(_Reader(source).body(source.module, ""))
    except SourceError:
        return []


def added(base: list[Half], ours: list[Half], merged: list[Half]) -> list[Half]:
    """The halves of `merged` that ours has and base has not: what a fork can lose there.

    A definition or a branch counts only if nothing in it comes from the base: a merge that loses
    such a half loses this half alone.
    """
    old = Counter(half.identity for half in base)
    new = Counter(half.identity for half in ours) - old
    lines = Counter(line for half in base for line in half.inside)
    return [half for half in merged if new[half.identity] and not any(lines[line] for line in half.inside)]


class _Reader:
    """Walks one module and yields its halves."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.starts = [0]
        for line in source.lines:
            self.starts.append(self.starts[-1] + len(line))

    def body(self, owner: ast.AST, symbol: str) -> Iterator[Half]:
        """The halves of every statement below `owner`."""
        for name in ("body", "orelse", "finalbody"):
            block = getattr(owner, name, None)
            if isinstance(block, list):
                for position, node in enumerate(block):
                    elif_ = name == "orelse" and isinstance(owner, ast.If) and self._is_elif(node)
                    yield from self.statement(node, symbol, len(block) == 1, position == 0, elif_)
        for handler in getattr(owner, "handlers", ()):
            yield from self._handler(owner, handler, symbol)
        for case in getattr(owner, "cases", ()):
            yield from self.body(case, symbol)

    def statement(self, node: ast.stmt, symbol: str, only: bool, first: bool, elif_: bool) -> Iterator[Half]:
        """The halves that one statement is or holds."""
        if isinstance(node, _DEFINITIONS):
            yield from self._definition(node, symbol, only)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from self._import(node, symbol, only)
        elif isinstance(node, _COMPOUND):
            yield from self._branch(node, symbol, only, elif_)
            yield from self.body(node, symbol)
        elif not (first and _is_text(node)) and not isinstance(node, ast.Pass):
            yield self._half("statement", symbol, ast.unparse(node), node, *self._lines(node, only))
            yield from self._parts(node, symbol)

    def _definition(self, node: ast.AST, symbol: str, only: bool) -> Iterator[Half]:
        name = f"{symbol}.{node.name}" if symbol else node.name
        (start, end), filler = self._lines(node, only)
        cut = (start, end if filler else self._past_blanks(end)), filler
        yield self._half("definition", symbol, node.name, node, *cut, (name, symbol), self._inside(node, symbol))
        for decorator in node.decorator_list:
            span = self._whole_lines(decorator)
            key = ast.unparse(decorator)
            yield self._half("decorator", name, key, decorator, span, "", (name, symbol))
            yield from self._parts(decorator, name, (name, symbol))
        yield from self.body(node, name)

    def _import(self, node: ast.Import | ast.ImportFrom, symbol: str, only: bool) -> Iterator[Half]:
        module = "." * getattr(node, "level", 0) + (getattr(node, "module", "") or "")
        for alias in node.names:
            key = f"{module}:{alias.name} as {alias.asname}"
            cut = self._lines(node, only) if len(node.names) == 1 else (self._listed(alias, node.names), "")
            yield self._half("import", symbol, key, alias, *cut)

    def _branch(self, node: ast.stmt, symbol: str, only: bool, elif_: bool) -> Iterator[Half]:
        key = f"{type(node).__name__} {_header(node)}"
        cut = self._elif(node) if elif_ else self._compound(node, only)
        if cut:
            yield self._half("branch", symbol, key, node, *cut, (symbol,), self._inside_branch(node, symbol))
        if isinstance(node, ast.If) and node.orelse and not self._is_elif(node.orelse[0]):
            span = self._else(node)
            if span:
                inside = tuple(line for part in node.orelse for line in self._inside(part, symbol))
                yield self._half("branch", symbol, f"else of {key}", node.orelse[0], span, "", (symbol,), inside)
        yield from self._parts(_expressions(node), symbol)

    def _handler(self, owner: ast.AST, handler: ast.ExceptHandler, symbol: str) -> Iterator[Half]:
        if len(owner.handlers) > 1 or owner.finalbody:
            key = f"except {ast.unparse(handler.type) if handler.type else ''}"
            span = self._whole_lines(handler)
            yield self._half("branch", symbol, key, handler, span, "", (symbol,), self._inside(handler, symbol))
        yield from self.body(handler, symbol)

    def _parts(self, node: ast.AST | list, symbol: str, symbols: tuple[str, ...] = ()) -> Iterator[Half]:
        """Keywords of calls and elements of literals in an expression or simple statement."""
        for part in node if isinstance(node, list) else [node]:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Call):
                    yield from self._keywords(inner, symbol, symbols)
                elif isinstance(inner, ast.List | ast.Set | ast.Dict):
                    yield from self._elements(inner, symbol, symbols)

    def _keywords(self, call: ast.Call, symbol: str, symbols: tuple[str, ...]) -> Iterator[Half]:
        neighbours = sorted([*call.args, *call.keywords], key=lambda item: (item.lineno, item.col_offset))
        callee = ast.unparse(call.func)
        for keyword in call.keywords:
            if keyword.arg:
                key = f"{callee}({ast.unparse(keyword)})"
                span = self._listed(keyword, neighbours)
                yield self._half("keyword", symbol, key, keyword, span, "", symbols or (symbol,))

    def _elements(self, literal: ast.AST, symbol: str, symbols: tuple[str, ...]) -> Iterator[Half]:
        items = (
            [_Pair(k, v) for k, v in zip(literal.keys, literal.values, strict=True) if k]
            if isinstance(literal, ast.Dict)
            else literal.elts
        )
        if len(items) < 2 or (isinstance(literal, ast.Dict) and None in literal.keys):
            return
        for item in items:
            span = self._listed(item, items)
            yield self._half("element", symbol, _text(item), item, span, "", symbols or (symbol,))

    def _half(
        self,
        kind: str,
        symbol: str,
        key: str,
        node: ast.AST,
        cut: Span,
        filler: str,
        symbols: tuple[str, ...] = (),
        inside: tuple[str, ...] = (),
    ) -> Half:
        return Half(kind, symbol, key, node.lineno, symbols or (symbol,), cut, filler, inside)

    def _inside(self, node: ast.AST, symbol: str) -> tuple[str, ...]:
        """Symbol and text of every statement in `node`, itself included."""
        found = (inner for inner in ast.walk(node) if isinstance(inner, ast.stmt) and not isinstance(inner, ast.Pass))
        return tuple(f"{symbol}: {_header(inner)}" for inner in found if not isinstance(inner, ast.Import))

    def _inside_branch(self, node: ast.stmt, symbol: str) -> tuple[str, ...]:
        """As `_inside`, without what an `else` or `elif` after the branch holds."""
        if not isinstance(node, ast.If):
            return self._inside(node, symbol)
        nested = tuple(line for part in node.body for line in self._inside(part, symbol))
        return (f"{symbol}: {_header(node)}", *nested)

    def _lines(self, node: ast.stmt, only: bool) -> tuple[Span, str]:
        """The cut that takes one statement away: whole lines, or a `pass` in its place."""
        start, end = self._span(node)
        if only:
            return (start, end), "pass"
        return self._whole_lines(node), ""

    def _past_blanks(self, end: int) -> int:
        """Past the blank lines that part a definition from what follows: a merge that loses it loses them."""
        number = bisect.bisect_left(self.starts, end)
        while number < len(self.source.lines) and not self.source.lines[number].strip():
            number += 1
        return self.starts[number]

    def _compound(self, node: ast.stmt, only: bool) -> tuple[Span, str] | None:
        """The cut for a compound statement; an `if` before an `elif` leaves its place to that."""
        if isinstance(node, ast.If) and node.orelse:
            if not self._is_elif(node.orelse[0]):
                return None
            start, next_ = self._span(node)[0], self._span(node.orelse[0])[0]
            return (start, next_ + len("elif")), "if"
        return self._lines(node, only)

    def _elif(self, node: ast.If) -> tuple[Span, str]:
        """The cut for an `elif`: what follows it joins what stands before."""
        return (self.starts[node.lineno - 1], self.starts[node.body[-1].end_lineno]), ""

    def _else(self, node: ast.If) -> Span | None:
        """The lines of the `else` of an `if`, or None if it does not stand on lines of its own."""
        first = node.body[-1].end_lineno
        for number in range(first, node.orelse[0].lineno):
            if self.source.lines[number].strip().startswith("else:"):
                return self.starts[number], self.starts[node.orelse[-1].end_lineno]
        return None

    def _is_elif(self, node: ast.stmt) -> bool:
        """Whether an `if` statement is written `elif`."""
        return isinstance(node, ast.If) and self.source.text.startswith("elif", self._span(node)[0])

    def _listed(self, item: ast.AST, items: list) -> Span:
        """The cut for one of several items between commas: its own lines if it has them, else its text."""
        start, end = self._span(item)
        lines = self.starts[item.lineno - 1], self.starts[item.end_lineno]
        before, after = self.source.text[lines[0] : start], self.source.text[end : lines[1]].partition("#")[0]
        position = items.index(item)
        if not before.strip() and after.strip() in (",", "") and (after.strip() or position == len(items) - 1):
            return lines
        if position + 1 < len(items):
            return start, self._span(items[position + 1])[0]
        return (self._span(items[position - 1])[1] if position else start), end

    def _whole_lines(self, node: ast.AST) -> Span:
        """From the start of a node's first line (decorators included) to the end of its last."""
        first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", ()))])
        return self.starts[first - 1], self.starts[node.end_lineno]

    def _span(self, node: ast.AST) -> Span:
        """The node's own text; a definition's starts at its first decorator's line, indentation left out."""
        start = self.starts[node.lineno - 1] + self.source.column(node.lineno, node.col_offset)
        if getattr(node, "decorator_list", None):
            line = self._whole_lines(node)[0]
            start = line + node.col_offset
        return start, self.starts[node.end_lineno - 1] + self.source.column(node.end_lineno, node.end_col_offset)


class _Pair:
    """A key and its value in a dict literal, with the position of both."""

    def __init__(self, key: ast.expr, value: ast.expr) -> None:
        self.text = f"{ast.unparse(key)}: {ast.unparse(value)}"
        self.lineno, self.col_offset = key.lineno, key.col_offset
        self.end_lineno, self.end_col_offset = value.end_lineno, value.end_col_offset


def _text(item: ast.AST | _Pair) -> str:
    return item.text if isinstance(item, _Pair) else ast.unparse(item)


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring or another bare constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """The expressions in the header of a compound statement."""
    items = [item.context_expr for item in getattr(node, "items", ())]
    single = [getattr(node, name, None) for name in ("test", "iter", "subject")]
    return items + [part for part in single if part is not None]


def _header(node: ast.stmt) -> str:
    """A simple statement's text, or the first line of a compound one."""
    if isinstance(node, _DEFINITIONS):
        return f"definition {node.name}"
    return ast.unparse(node).split(":\n")[0] if isinstance(node, _COMPOUND) else ast.unparse(node)
