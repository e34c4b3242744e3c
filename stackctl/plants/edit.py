"""Change the text of one module: insert and remove whole lines, rewrite expressions by libcst.

libcst reads only the smallest statement that is rewritten, so everything outside it stays byte for
byte, and oddities elsewhere in a file (form feeds, mixed newlines) cannot stop a plant.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.trees.source import Source

if TYPE_CHECKING:
    import libcst as cst

Builder = Callable[["cst.BaseExpression"], "cst.BaseExpression"]


def insert(source: Source, line: int, code: str, indent: str, blanks: tuple[int, int] = (0, 0)) -> str:
    """The module's text with `code` put in before line `line` (one past the end appends).

    `code` is dedented and indented by `indent`; `blanks` empty lines go before and after it. Newlines
    are those of the neighbouring line, so a file with mixed ones keeps its local style.
    """
    lines = list(source.lines)
    newline = _newline_at(source, line)
    if line > len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += newline
    body = _indented(textwrap.dedent(code).strip("\n"), indent)
    rows = [""] * blanks[0] + body + [""] * blanks[1]
    return "".join([*lines[: line - 1], *(row + newline for row in rows), *lines[line - 1 :]])


def _indented(code: str, indent: str) -> list[str]:
    """The lines of `code` indented; the inside of a string over lines, docstrings aside, is kept as it is."""
    fixed: set[int] = set()
    tree = ast.parse(code)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        if text and id(node) not in docstrings:
            fixed.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    rows = code.split("\n")
    return [row if number in fixed or not row.strip() else indent + row for number, row in enumerate(rows, 1)]


def _has_docstring(node: ast.AST) -> bool:
    documented = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return documented and ast.get_docstring(node, clean=False) is not None  # type: ignore[arg-type]


def alone(source: Source, statement: ast.stmt) -> bool:
    """Whether a statement has its lines for itself: nothing before it, nothing but a comment after it."""
    first = min([(statement.lineno, statement.col_offset), *((d.lineno, d.col_offset) for d in getattr(statement, "decorator_list", ()))])
    last, end = statement.end_lineno or statement.lineno, statement.end_col_offset or 0
    before = source.lines[first[0] - 1].encode()[: first[1]].decode(errors="replace")
    after = source.lines[last - 1].encode()[end:].decode(errors="replace").strip().removeprefix(";").lstrip()
    return not before.strip(" \t\x0c@") and (not after or after.startswith("#"))


def remove_statement(source: Source, statement: ast.stmt, first: int = 0) -> str:
    """The module's text without the lines of a statement (from line `first`). Raises Unplantable if it shares them."""
    if not alone(source, statement):
        raise Unplantable(Verdict.AMBIGUOUS, "the statement shares its line with another", statement.lineno)
    start = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))])
    return remove(source, first or start, statement.end_lineno or statement.lineno)


def _newline_at(source: Source, line: int) -> str:
    """The newline of the line above an insertion, else of the one below, else the file's own."""
    for index in (line - 2, line - 1):
        if 0 <= index < len(source.lines):
            for newline in ("\r\n", "\n", "\r"):
                if source.lines[index].endswith(newline):
                    return newline
    return source.newline


def remove(source: Source, first: int, last: int) -> str:
    """The module's text without lines `first` to `last`."""
    return "".join([*source.lines[: first - 1], *source.lines[last:]])


def replace(source: Source, first: int, last: int, code: str, indent: str) -> str:
    """The module's text with lines `first` to `last` replaced by `code`, indented by `indent`."""
    kept = Source(remove(source, first, last), source.encoding, source.bom)
    return insert(kept, first, code, indent)


def rewrite(source: Source, statement: ast.stmt, builders: Mapping[ast.expr, Builder]) -> str:
    """The module's text with expressions of one statement rebuilt by libcst.

    Each builder gets the libcst node of its `ast` node and returns the new one. Multi-line text in it
    is relative to the statement's own indentation. Raises Unplantable where libcst cannot read on.
    """
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    first, last = statement.lineno, statement.end_lineno or statement.lineno
    _refuse_f_strings(statement, builders)
    fragment = "".join(source.lines[first - 1 : last])
    ended = fragment.rstrip("\r\n")  # libcst loses a bare "\r" at the end
    fragment, newline = ended, fragment[len(ended) :]
    shift = first - 1
    # `elif x:` is a statement of its own to ast and none to libcst; "if  " keeps its columns.
    branch = fragment.lstrip().startswith("elif") and isinstance(statement, ast.If)
    if branch:
        fragment = fragment.replace("elif", "if  ", 1)
    if fragment[:1] in " \t\x0c":
        fragment, shift = f"if 1:{source.newline}{fragment}", shift - 1
    config = cst.PartialParserConfig(default_newline=_newline_at(source, first + 1))
    try:
        wrapper = MetadataWrapper(cst.parse_module(fragment, config), unsafe_skip_copy=True)
    except cst.ParserSyntaxError as error:
        raise Unplantable(Verdict.UNPARSABLE, f"libcst cannot read this statement: {error.message}", first) from None
    wanted = {_range(source, node, shift): build for node, build in builders.items()}
    found: dict[cst.CSTNode, Builder] = {}
    for node, place in wrapper.resolve(PositionProvider).items():
        key = (place.start.line, place.start.column, place.end.line, place.end.column)
        if key in wanted and isinstance(node, cst.BaseExpression):
            found.setdefault(node, wanted.pop(key))
    if wanted:
        raise Unplantable(Verdict.UNPARSABLE, "libcst and ast disagree about this statement", first)
    code = wrapper.module.visit(_Replacer(found)).code
    if shift != first - 1:
        code = code[len(f"if 1:{source.newline}") :]
    if branch:
        code = code.replace("if  ", "elif", 1)
    return "".join([*source.lines[: first - 1], code, newline, *source.lines[last:]])


def _refuse_f_strings(statement: ast.stmt, places: Mapping[ast.expr, Builder]) -> None:
    """Before Python 3.12 `ast` has wrong positions inside them."""
    if any(node in places for text in ast.walk(statement) if isinstance(text, ast.JoinedStr) for node in ast.walk(text)):
        raise Unplantable(Verdict.AMBIGUOUS, "the place is inside an f-string", statement.lineno)


def capture(source: Source, statement: ast.stmt, node: ast.expr) -> cst.BaseExpression:
    """The libcst node of one expression of a statement, with its formatting."""
    found: list[cst.BaseExpression] = []

    def keep(original: cst.BaseExpression) -> cst.BaseExpression:
        found.append(original)
        return original

    rewrite(source, statement, {node: keep})
    return found[0]


def _range(source: Source, node: ast.expr, shift: int) -> tuple[int, int, int, int]:
    end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or 0
    start = source.column(node.lineno, node.col_offset)
    return (node.lineno - shift, start, end_line - shift, source.column(end_line, end_offset))


def _Replacer(found: Mapping[cst.CSTNode, Builder]) -> cst.CSTTransformer:  # noqa: N802 - a class made on first use
    """A transformer that puts each found node's replacement in its place."""
    import libcst as cst

    class Replacer(cst.CSTTransformer):
        def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:
            build = found.get(original_node)
            return build(updated_node) if build and isinstance(updated_node, cst.BaseExpression) else updated_node

    return Replacer()
