"""The halves of one Python file: what can be lost on its own, said in one normal form.

A fact is a host (the qualified name inside the module), a kind, a normalised text and the chain of
branches it stands under. Simple statements are whole, compound ones give their header, imports one
fact per name, signatures one per parameter, literals one per element. Formatting, quotes and
comments do not count: two texts are equal if Python would read the same program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stackctl.trees.source import Source

FORMAT = 4
_ELEMENTS = (ast.List, ast.Set, ast.Dict)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MEMO_LIMIT = 200_000
# Four sides of a merge share nearly all their statements: unparsing each distinct text once is
# what keeps the audit of a release step within its budget.
_memo: dict[bytes, str] = {}


class Fact(NamedTuple):
    """One half. `under` is the chain of branch headers between the host's body and this half."""

    host: str
    kind: str
    text: str
    under: tuple[str, ...]
    line: int
    end: int


def read_facts(source: Source) -> list[Fact]:
    """All facts of one file, in source order. Raises SourceError where Python cannot parse it."""
    return list(_Reader(source).module())


class _Reader:
    """One pass over one module."""

    def __init__(self, source: Source) -> None:
        self._module = source.module
        self._lines = [line.encode("utf-8", "surrogatepass") for line in source.lines]

    def module(self) -> Iterator[Fact]:
        yield from self._body(self._module.body, "", ())

    def _body(self, body: Sequence[ast.stmt], host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        for node in body:
            yield from self._statement(node, host, under)

    def _statement(self, node: ast.stmt, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        if isinstance(node, _DEFINITIONS):
            yield from self._definition(node, host, under)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from self._import(node, host, under)
        elif (reader := _COMPOUND.get(type(node))) is not None:
            yield from reader(self, node, host, under)
        elif not _is_filler(node):
            yield from self._simple(node, host, under)

    def _fact(self, host: str, kind: str, text: str, under: tuple[str, ...], node: ast.AST) -> Fact:
        return Fact(host, kind, text, under, node.lineno, node.end_lineno or node.lineno)

    def _definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, host: str, under: tuple[str, ...]
    ) -> Iterator[Fact]:
        yield self._fact(host, "definition", f"{_WORDS[type(node)]} {node.name}", under, node)
        inner = f"{host}.{node.name}" if host else node.name
        for decorator in node.decorator_list:
            yield self._fact(inner, "decorator", f"@{self._text(decorator)}", (), decorator)
        yield from self._bases(node, inner) if isinstance(node, ast.ClassDef) else self._signature(node, inner)
        body = node.body
        if isinstance(body[0], ast.Expr) and _is_text(body[0].value):
            words = " ".join(body[0].value.value.split())
            yield self._fact(inner, "docstring", words, (), body[0])
            body = body[1:]
        yield from self._body(body, inner, ())

    def _bases(self, node: ast.ClassDef, host: str) -> Iterator[Fact]:
        for base in node.bases:
            yield self._fact(host, "base", self._text(base), (), base)
        for keyword in node.keywords:
            yield self._fact(host, "base", f"{keyword.arg or '**'}={self._text(keyword.value)}", (), keyword)

    def _signature(self, node: ast.FunctionDef | ast.AsyncFunctionDef, host: str) -> Iterator[Fact]:
        for name, argument, default in parameters(node.args):
            yield self._fact(host, "parameter", name, (), argument)
            if argument.annotation is not None:
                yield self._fact(host, "annotation", f"{name}: {self._text(argument.annotation)}", (), argument)
            if default is not None:
                yield self._fact(host, "default", f"{name}={self._text(default)}", (), argument)
        # A bare star or slash changes how every parameter beside it can be given.
        for mark in ["/"] * bool(node.args.posonlyargs) + ["*"] * bool(node.args.kwonlyargs and not node.args.vararg):
            yield self._fact(host, "parameter", mark, (), node.args.args[0] if node.args.args else node)
        if node.returns is not None:
            yield self._fact(host, "annotation", f"-> {self._text(node.returns)}", (), node.returns)

    def _import(self, node: ast.Import | ast.ImportFrom, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        for alias in node.names:
            words = f"import {alias.name}"
            if isinstance(node, ast.ImportFrom):
                words = f"from {'.' * node.level}{node.module or ''} {words}"
            if alias.asname:
                words += f" as {alias.asname}"
            yield self._fact(host, "import", words, under, alias)

    def _simple(self, node: ast.stmt, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        literal = _literal_of(node)
        if literal is None:
            yield self._fact(host, "statement", self._text(node), under, node)
            return
        yield self._fact(host, "statement", self._frame(node, literal), under, node)
        yield from self._elements(literal, host, self._owner(node), under)

    def _frame(self, node: ast.stmt, literal: ast.expr) -> str:
        """The statement's text with the literal emptied."""
        saved = {name: getattr(literal, name) for name in ("elts", "keys", "values") if hasattr(literal, name)}
        try:
            for name in saved:
                setattr(literal, name, [])
            if isinstance(literal, ast.Set):
                literal.elts = [ast.Starred(ast.Name("...", ast.Load()), ast.Load())]
            return ast.unparse(node)
        finally:
            for name, value in saved.items():
                setattr(literal, name, value)

    def _owner(self, node: ast.stmt) -> str:
        if isinstance(node, ast.Assign):
            return " = ".join(self._text(target) for target in node.targets)
        if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            return self._text(node.target)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return f"{self._text(node.value.func)}()"
        return "return" if isinstance(node, ast.Return) else ""

    def _elements(self, literal: ast.expr, host: str, owner: str, under: tuple[str, ...]) -> Iterator[Fact]:
        if not isinstance(literal, ast.Dict):
            for element in literal.elts:
                yield self._fact(host, "element", f"{owner} has {self._text(element)}", under, element)
            return
        for key, value in zip(literal.keys, literal.values, strict=True):
            if key is None:
                yield self._fact(host, "element", f"{owner} has **{self._text(value)}", under, value)
                continue
            name = f"{owner}[{self._text(key)}]"
            if isinstance(value, _ELEMENTS) and (value.values if isinstance(value, ast.Dict) else value.elts):
                yield self._fact(host, "element", f"{name} = {_EMPTY[type(value)]}", under, key)
                yield from self._elements(value, host, name, under)
            else:
                yield Fact(host, "element", f"{name} = {self._text(value)}", under, key.lineno, value.end_lineno or 0)

    def _if(self, node: ast.If, host: str, under: tuple[str, ...], first: str = "") -> Iterator[Fact]:
        header = f"if {self._text(node.test)}"
        first = first or header
        yield self._header(node, host, header, under)
        yield from self._body(node.body, host, (*under, header))
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            yield from self._if(node.orelse[0], host, under, first)
        else:
            # Which `if` an `else` hangs on is part of where its statements are: taking one side
            # of a conflict whole has left upstream's `else` on our `if` before.
            yield from self._body(node.orelse, host, (*under, f"else of {first}"))

    def _header(self, node: ast.stmt, host: str, text: str, under: tuple[str, ...]) -> Fact:
        return Fact(host, "branch", text, under, node.lineno, node.body[0].lineno if node.body else node.lineno)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        if isinstance(node, ast.While):
            header = f"while {self._text(node.test)}"
        else:
            word = "async for" if isinstance(node, ast.AsyncFor) else "for"
            header = f"{word} {self._text(node.target)} in {self._text(node.iter)}"
        yield self._header(node, host, header, under)
        yield from self._body(node.body, host, (*under, header))
        yield from self._body(node.orelse, host, (*under, f"else of {header}"))

    def _with(self, node: ast.With | ast.AsyncWith, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        header = "async with " if isinstance(node, ast.AsyncWith) else "with "
        header += ", ".join(ast.unparse(item) for item in node.items)
        yield self._header(node, host, header, under)
        yield from self._body(node.body, host, (*under, header))

    def _try(self, node: ast.Try, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        yield self._header(node, host, "try", under)
        yield from self._body(node.body, host, (*under, "try"))
        for handler in node.handlers:
            header = "except" + (f" {self._text(handler.type)}" if handler.type else "")
            header += f" as {handler.name}" if handler.name else ""
            yield Fact(host, "branch", header, under, handler.lineno, handler.body[0].lineno)
            yield from self._body(handler.body, host, (*under, header))
        yield from self._body(node.orelse, host, (*under, "else of try"))
        yield from self._body(node.finalbody, host, (*under, "finally"))

    def _match(self, node: ast.Match, host: str, under: tuple[str, ...]) -> Iterator[Fact]:
        header = f"match {self._text(node.subject)}"
        yield Fact(host, "branch", header, under, node.lineno, node.lineno)
        for case in node.cases:
            words = f"case {ast.unparse(case.pattern)}" + (f" if {self._text(case.guard)}" if case.guard else "")
            yield Fact(host, "branch", words, (*under, header), case.pattern.lineno, case.body[0].lineno)
            yield from self._body(case.body, host, (*under, header, words))

    def _text(self, node: ast.AST) -> str:
        raw = self._segment(node)
        known = _memo.get(raw)
        if known is None:
            if len(_memo) > _MEMO_LIMIT:
                _memo.clear()
            known = _memo[raw] = ast.unparse(node)
        return known

    def _segment(self, node: ast.AST) -> bytes:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if first == last:
            return self._lines[first][node.col_offset : node.end_col_offset]
        parts = [self._lines[first][node.col_offset :], *self._lines[first + 1 : last]]
        return b"".join([*parts, self._lines[last][: node.end_col_offset]])


def parameters(arguments: ast.arguments) -> Iterator[tuple[str, ast.arg, ast.expr | None]]:
    """(name with its stars, node, default) of every parameter, in order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    for index, argument in enumerate(positional):
        yield argument.arg, argument, arguments.defaults[index - missing] if index >= missing else None
    if arguments.vararg:
        yield f"*{arguments.vararg.arg}", arguments.vararg, None
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument.arg, argument, default
    if arguments.kwarg:
        yield f"**{arguments.kwarg.arg}", arguments.kwarg, None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_filler(node: ast.stmt) -> bool:
    """`pass` and `...` come and go with their neighbours and carry nothing."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...
    )


def _literal_of(node: ast.stmt) -> ast.expr | None:
    """The list, set or dict that a simple statement is about: its value, or the one argument of its call."""
    value = getattr(node, "value", None) if isinstance(node, _HOLDERS) else None
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    filled = isinstance(value, _ELEMENTS) and (value.values if isinstance(value, ast.Dict) else value.elts)
    return value if filled or isinstance(value, (ast.List, ast.Dict)) else None


_HOLDERS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_WORDS = {ast.FunctionDef: "def", ast.AsyncFunctionDef: "async def", ast.ClassDef: "class"}
_EMPTY = {ast.List: "[]", ast.Set: "{*...}", ast.Dict: "{}"}
_COMPOUND = {
    ast.If: _Reader._if,
    ast.For: _Reader._loop,
    ast.AsyncFor: _Reader._loop,
    ast.While: _Reader._loop,
    ast.With: _Reader._with,
    ast.AsyncWith: _Reader._with,
    ast.Try: _Reader._try,
    ast.TryStar: _Reader._try,
    ast.Match: _Reader._match,
}
