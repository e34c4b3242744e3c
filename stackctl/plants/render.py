"""libcst expressions as something to lay out, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackctl.plants.layout import Bracket, Part, call, prefixed
from stackctl.plants.module import Module

if TYPE_CHECKING:
    import ast

    import libcst as cst


def code(node: cst.CSTNode) -> str:
    """The text of a node, as it is written, relative to its block."""
    import libcst as cst

    return cst.Module([]).code_for_node(node)


def expression(node: cst.BaseExpression) -> Part:
    """An expression. Calls and comprehensions without comments can be broken; others are kept as text."""
    import libcst as cst

    text = code(node)
    if "#" in text or getattr(node, "lpar", ()):
        return text
    if isinstance(node, cst.Call):
        return call(code(node.func), tuple(argument(each) for each in node.args))
    if isinstance(node, cst.Await):
        return prefixed("await ", expression(node.expression))
    if isinstance(node, cst.ListComp):
        return Bracket("[", (expression(node.elt), code(node.for_in).strip()), "]", "")
    # As a call's only argument it shares the call's brackets; beside another it needs its own.
    return f"({text})" if isinstance(node, cst.GeneratorExp) else text


def argument(node: cst.Arg) -> Part:
    """An argument of a call, with its keyword or stars."""
    head = f"{node.keyword.value}=" if node.keyword else node.star
    return prefixed(head, expression(node.value))


def parse(text: str) -> cst.BaseExpression:
    """The libcst expression of a text whose continuation lines are relative to its block."""
    import libcst as cst

    return cst.parse_expression(text)


class Place:
    """Where an expression stands: what surrounds it on its first and last line, and how that is indented.

    With `brackets` the place is that of the redundant brackets around it.
    """

    def __init__(self, module: Module, statement: ast.stmt, node: ast.expr, *, brackets: bool = False) -> None:
        lines, base = module.source.lines, module.indent(statement.lineno)
        first, column = node.lineno, module.source.column(node.lineno, node.col_offset)
        last = node.end_lineno or node.lineno
        end = module.source.column(last, node.end_col_offset or 0)
        if brackets:
            first, column = _back(lines, first, column)
            last, end = _forward(lines, last, end)
        line = lines[first - 1]
        self.indent = line[: len(line) - len(line.lstrip(" \t\x0c"))].removeprefix(base)
        self.margin = len(base.expandtabs(4))
        self.before = len(line[:column].expandtabs(4))
        self.after = len(lines[last - 1].rstrip()) - end


def _back(lines: list[str], line: int, column: int) -> tuple[int, int]:
    """The place of the opening bracket before a position."""
    while True:
        text = lines[line - 1][:column].rstrip()
        if text:
            return (line, len(text) - 1) if text.endswith("(") else (line, column)
        line, column = line - 1, len(lines[line - 2])


def _forward(lines: list[str], line: int, column: int) -> tuple[int, int]:
    """The place just after the closing bracket that follows a position."""
    while True:
        text = lines[line - 1]
        rest = text[column:].lstrip()
        if rest:
            return (line, len(text) - len(rest) + 1) if rest.startswith(")") else (line, column)
        line, column = line + 1, 0
