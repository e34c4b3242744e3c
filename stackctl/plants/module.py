"""One parsed Python module and its hosts, found by qualified name."""

from __future__ import annotations

import ast
import inspect
import io
import keyword
import re
import textwrap
import tokenize
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

from stackctl.trees.source import Source

Host = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_OPAQUE = (*DEFINITIONS, ast.Lambda)
_SUITES = ("body", "handlers", "orelse", "finalbody", "cases")
_BREAKS = frozenset({",", "*", "**", ";"})
_SIMPLE = (ast.Assign, ast.Expr, ast.Return, ast.AnnAssign, ast.AugAssign, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise)


class Module:
    """One module. `hosts` maps each qualified name to its definitions (two for a property pair)."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tree = source.module
        self._parents: dict[ast.AST, dict[ast.AST, ast.AST]] = {}
        self.calls: dict[ast.AST, list[tuple[ast.Call, str, bool]]] = {}  # (call, callee as text, inside a lambda) by host

    def parents(self, host: ast.AST) -> dict[ast.AST, ast.AST]:
        """Child to parent for every node below `host`."""
        if host not in self._parents:
            self._parents[host] = {child: node for node in ast.walk(host) for child in ast.iter_child_nodes(node)}
        return self._parents[host]

    @cached_property
    def hosts(self) -> dict[str, list[Host]]:
        found: dict[str, list[Host]] = {"": [self.tree]}
        _collect(self.tree, "", found)
        return found

    def host(self, symbol: str) -> Host | None:
        """The last definition of `symbol` (the one that Python keeps), or None."""
        return self.hosts.get(symbol, [None])[-1]

    def line_of(self, symbol: str) -> int:
        """The line of the nearest host that is still there, 1 for the module."""
        while symbol:
            if host := self.host(symbol):
                return host.lineno
            symbol = symbol.rpartition(".")[0]
        return 1

    def indent(self, line: int) -> str:
        """The leading white space of a line."""
        text = self.source.lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t\x0c"))]

    @cached_property
    def comment_lines(self) -> frozenset[int]:
        """The lines that hold a comment and nothing else. A string over lines may hold what only looks like one."""
        found = set()
        try:
            for token in tokenize.generate_tokens(iter([*self.source.lines, ""]).__next__):
                if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
                    found.add(token.start[0])
        except (tokenize.TokenError, IndentationError):  # stricter than ast here and there
            return frozenset()
        return frozenset(found)

    def above_comments(self, line: int) -> int:
        """The first line of the comment block that stands directly above `line`.

        A block that begins the file belongs to the file: a shebang, its encoding, a licence.
        """
        first = line
        while first - 1 in self.comment_lines:
            first -= 1
        return line if first == 1 else first

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names bound at module level (branches and try blocks included)."""
        return frozenset(name for statement in statements(self.tree) for name in binds(statement))


def _collect(node: ast.AST, prefix: str, found: dict[str, list[Host]]) -> None:
    for field in _SUITES:
        for child in getattr(node, field, ()):
            if isinstance(child, DEFINITIONS):
                name = f"{prefix}{child.name}"
                found.setdefault(name, []).append(child)
                _collect(child, f"{name}.", found)
            elif not isinstance(child, _SIMPLE):
                _collect(child, prefix, found)


def own_nodes(host: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs as part of `host` itself: nested functions, classes and lambdas are left out."""
    for child in ast.iter_child_nodes(host):
        yield child
        if not isinstance(child, _OPAQUE):
            yield from own_nodes(child)


def suites(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every statement list of `node` itself, outermost first: body, else, handlers; not of nested definitions."""
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(node, name, None)
        if isinstance(suite, list) and suite:
            yield suite
            for statement in suite:
                if not isinstance(statement, DEFINITIONS):
                    yield from suites(statement)
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from suites(part)


def statements(host: Host) -> Iterator[ast.stmt]:
    """Every statement of `host` itself, nested blocks included, in no particular order of suites."""
    for suite in suites(host):
        yield from suite


def binds(statement: ast.stmt) -> Iterator[str]:
    """The names that one statement binds at its own level."""
    match statement:
        case ast.Import(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.With():
            yield from (
                node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )


def start_line(statement: ast.stmt) -> int:
    """The first line of a statement, decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def same(left: ast.AST, right: ast.AST) -> bool:
    """Whether two pieces of code are equal but for layout, comments and the indentation of docstrings."""
    return _equal(left, right, isinstance(left, (*DEFINITIONS, ast.Module)))


def _equal(left: Any, right: Any, clean: bool) -> bool:
    """Whether two trees are equal; with `clean` but for the indentation of docstrings.

    Most pairs differ at once: comparing `ast.dump` of both took a third of a census.
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(_equal(one, other, clean) for one, other in zip(left, right, strict=True))
    if not isinstance(left, ast.AST):
        return left == right if isinstance(left, str) else repr(left) == repr(right)
    fields = left._fields
    if clean and _documented(left) and _documented(right):
        one, other = left.body, right.body
        texts = (inspect.cleandoc(body[0].value.value) for body in (one, other))
        if len(set(texts)) > 1 or one[0].value.kind != other[0].value.kind or not _equal(one[1:], other[1:], clean):
            return False
        fields = tuple(field for field in fields if field != "body")
    for field in fields:
        one, other = getattr(left, field, None), getattr(right, field, None)
        if one is not other and (type(one) is not type(other) or not _equal(one, other, clean)):
            return False
    return True


def _documented(node: ast.AST) -> bool:
    return isinstance(node, (*DEFINITIONS, ast.Module)) and ast.get_docstring(node, clean=False) is not None


@lru_cache(4096)
def words(code: str) -> frozenset[str]:
    """What text must hold to hold a piece of code: its names, and as "a b" names that follow each other there."""
    tree = ast.parse(code)
    found: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(name := getattr(node, field, None), str):
                found.update(name.split("."))
    return frozenset(found - {"*"}).union(_pairs(tree, found))


def _pairs(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """Names with nothing between them but brackets and operators, however the code is laid out.

    `f(b=c, *d)` and `f(*d, b=c)` are one tree, so nothing is said across a comma or a star.
    """
    before, inside = "", 0
    for token in tokenize.generate_tokens(io.StringIO(ast.unparse(tree)).readline):
        kind = tokenize.tok_name[token.type]
        inside += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if token.type == tokenize.OP and token.string not in _BREAKS and not inside:
            continue
        name = token.string if token.type == tokenize.NAME and token.string in names and not inside else ""
        if before and name and before != "self":  # what follows `self` is told by its own name
            yield f"{before} {name}"
        before = name


def holds(text: str, words: frozenset[str]) -> bool:
    """Whether text, normalised as Python does its names, has all of `words`: if not, it cannot hold their code."""
    return all(word in text for word in words if " " not in word) and all(
        _pair(word).search(text) for word in words if " " in word
    )


@lru_cache(4096)
def _pair(word: str) -> re.Pattern[str]:
    first, second = map(re.escape, word.split(" "))
    return re.compile(rf"\b{first}(?:[^\w#]|#[^\r\n]*)*+{second}\b")


def is_name(word: object) -> bool:
    """Whether a word can be a name in Python."""
    return isinstance(word, str) and word.isidentifier() and not keyword.iskeyword(word)


def is_expression(text: object) -> bool:
    """Whether something is the text of one expression."""
    try:
        return isinstance(text, str) and parse_expression(text) is not None
    except (SyntaxError, ValueError):
        return False


def parse_expression(text: str) -> ast.expr:
    """One expression. Raises SyntaxError."""
    return ast.parse(text.strip(), mode="eval").body


def parse_statements(text: str) -> list[ast.stmt]:
    """The statements of a piece of code, dedented. Raises SyntaxError."""
    return ast.parse(textwrap.dedent(text)).body
