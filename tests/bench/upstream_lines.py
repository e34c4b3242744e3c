"""Physical lines of code that upstream added and the merge kept, each removable alone."""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator

from halves import Half

from stackctl.trees.source import Source, SourceError

_QUIET = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_added(base: Source | None, theirs: Source, merged: Source) -> Iterator[Half]:
    """The lines of code of `merged` that theirs has and base has not, by a line diff of base and theirs."""
    new = Counter(_added_lines(base.lines if base else [], theirs.lines))
    try:
        code, hosts = _code_lines(merged), _hosts(merged.module)
    except (SourceError, tokenize.TokenError, SyntaxError):
        return
    offset = 0
    for number, line in enumerate(merged.lines, 1):
        if number in code and new[line] > 0:
            new[line] -= 1
            symbols = hosts.get(number, ("",))
            yield Half("line", symbols[0], line.strip(), number, symbols, (offset, offset + len(line)))
        offset += len(line)


def _added_lines(old: list[str], new: list[str]) -> Iterator[str]:
    """The lines that a diff of two files adds."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag in ("insert", "replace"):
            yield from new[start:end]


def _code_lines(source: Source) -> set[int]:
    """The lines that hold code: no blanks, no comments, no inside of a string of several lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type not in _QUIET:
            if token.start[0] == token.end[0]:
                lines.add(token.start[0])
            else:
                lines -= set(range(token.start[0], token.end[0] + 1))
    return lines - _text_lines(source)


def _text_lines(source: Source) -> set[int]:
    """The lines of docstrings and other bare constants."""
    bare = [
        node for node in ast.walk(source.module) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return {number for node in bare for number in range(node.lineno, node.end_lineno + 1)}


def _hosts(module: ast.Module) -> dict[int, tuple[str, ...]]:
    """For each line the symbols a finding on it may carry: the innermost definition, and on a header its owner."""
    hosts: dict[int, tuple[str, ...]] = {}

    def visit(node: ast.AST, symbol: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{symbol}.{child.name}" if symbol else child.name
                first = min([child.lineno, *(part.lineno for part in child.decorator_list)])
                for number in range(first, child.end_lineno + 1):
                    hosts[number] = (name, symbol) if number < child.body[0].lineno else (name,)
                visit(child, name)
            else:
                visit(child, symbol)

    visit(module, "")
    return hosts
