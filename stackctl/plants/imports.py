"""One import at module level."""

from __future__ import annotations

import ast
import sys

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants import edit
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.module import Module, parse_statements, words
from stackctl.plants.view import View

Name = tuple[str, str, str]  # (module, name imported from it or "", name bound)


class Import(Kind):
    """The names of one import statement, bound when the module is imported (not under TYPE_CHECKING)."""

    name = "import"
    summary = "an import at module level"
    options = {"code": Option(str, "one import statement", required=True, code="statements")}
    examples = (
        Example({"code": "import functools"}, "import asyncio\nimport json\n", "import asyncio\nimport functools\nimport json\n"),
        Example(
            {"code": "from pkg.b import f"},
            "import os\n\nfrom pkg.a import x\nfrom pkg.c import (\n    y,\n)\n",
            "import os\n\nfrom pkg.a import x\nfrom pkg.b import f\nfrom pkg.c import (\n    y,\n)\n",
        ),
        Example({"code": "import os"}, "import os.path\n", "import os.path\n", Verdict.INTACT, says="bound already"),
        Example({"code": "import os"}, "import (\n", verdict=Verdict.UNPARSABLE, says="a module that does not parse"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        parsed = parse_statements(plant.options["code"])
        if len(parsed) != 1 or not isinstance(parsed[0], ast.Import | ast.ImportFrom):
            return ["code must be one import statement"]
        return [] if plant.symbol == "" else ["an import's host is a module: end it with a colon"]

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = self.path(plant, view)
        return judge_import(view.module(path), plant.options["code"], path)

    def words(self, plant: Plant) -> frozenset[str]:
        return words(plant.options["code"])

    def leftover(self, plant: Plant, entry: Entry, view: View) -> bool:
        try:
            return bool(_copies(view.module(self.path(plant, view)), plant.options["code"]))
        except Unplantable:
            return False

    def uproot(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        while copies := _copies(view.module(path), plant.options["code"]):
            view.edit(path, edit.remove_statement(view.module(path).source, copies[-1]))

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        plant_import(view, self.path(plant, view), plant.options["code"])


def judge_import(module: Module, code: str, path: str) -> Judgement:
    """Whether every name of the import statement `code` is bound by an import of the same thing."""
    wanted = _names(parse_statements(code)[0])
    places = [(statement, name) for statement in _runtime_imports(module.tree.body) for name in _names(statement)]
    found = [name for _, name in places]
    lines = [statement.lineno for statement, name in places if name in wanted]
    twice = [statement.lineno for statement in module.tree.body for name in _names(statement) if name in wanted]
    for module_name, name, bound in wanted:
        if not any(_binds_same(other, (module_name, name, bound)) for other in found):
            what = f"`from {module_name} import {name}`" if name else f"`import {module_name}`"
            return Judgement(Verdict.LOST, f"{what} is not imported", path, _section_line(module))
    if len(twice) > len(wanted) and _copies(module, code):  # upstream's own fallbacks in branches are no copies
        return Judgement(Verdict.DUPLICATED, f"`{code.strip()}` is imported {len(twice)} times", path, twice[-1])
    return Judgement(Verdict.INTACT, path=path, line=min(lines, default=1))


def plant_import(view: View, path: str, code: str) -> None:
    """Put an import in the section it belongs to, in isort's order, or take out what is there twice."""
    module = view.module(path)
    judgement = judge_import(module, code, path)
    if judgement.verdict is Verdict.INTACT:
        return
    if judgement.verdict is Verdict.DUPLICATED:
        _remove_copy(view, path, code)
        return
    statement = parse_statements(code)[0]
    view.edit(path, edit.insert(module.source, _place(module, statement), code, ""))


def _remove_copy(view: View, path: str, code: str) -> None:
    """Remove the statement that is ours to the letter while another one binds the same names."""
    module = view.module(path)
    copies = _copies(module, code)
    if not copies:
        raise Unplantable(Verdict.AMBIGUOUS, f"`{code.strip()}` is imported twice in other words", 1)
    view.edit(path, edit.remove_statement(module.source, copies[-1]))


def _copies(module: Module, code: str) -> list[ast.stmt]:
    """The module-level statements that are `code` to the letter."""
    wanted = ast.dump(parse_statements(code)[0])
    return [statement for statement in module.tree.body if ast.dump(statement) == wanted]


def _names(statement: ast.stmt) -> list[Name]:
    if isinstance(statement, ast.ImportFrom):
        source = "." * statement.level + (statement.module or "")
        return [(source, alias.name, alias.asname or alias.name) for alias in statement.names]
    if isinstance(statement, ast.Import):
        return [(alias.name, "", alias.asname or alias.name.partition(".")[0]) for alias in statement.names]
    return []


def _binds_same(found: Name, wanted: Name) -> bool:
    """`import os.path` binds `os` too."""
    if found == wanted:
        return True
    return not found[1] and not wanted[1] and found[2] == wanted[2] == wanted[0] and found[0].startswith(f"{wanted[0]}.")


def _runtime_imports(body: list[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    """Imports that run with the module: at its level and in try blocks and branches, not for type checkers."""
    found: list[ast.Import | ast.ImportFrom] = []
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.append(statement)
        elif isinstance(statement, ast.Try) or isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.unparse(statement.test):
            found += _runtime_imports(statement.body)
    return found


def _sections(module: Module) -> list[list[ast.stmt]]:
    """Runs of imports at module level, split where a blank line or other code stands between them."""
    sections: list[list[ast.stmt]] = []
    previous: ast.stmt | None = None
    for statement in module.tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            gap = previous is None or _blank_between(module, previous, statement)
            if gap or not sections:
                sections.append([])
            sections[-1].append(statement)
            previous = statement
        else:
            previous = None
    return sections


def _blank_between(module: Module, first: ast.stmt, second: ast.stmt) -> bool:
    return any(not line.strip() for line in module.source.lines[first.end_lineno or 0 : second.lineno - 1])


def _group(statement: ast.stmt) -> str:
    """The kind of section an import belongs to: future, stdlib, or its top-level package."""
    source = _names(statement)[0][0]
    top = source.partition(".")[0]
    if top == "__future__":
        return "future"
    return "stdlib" if top in sys.stdlib_module_names else top


def _key(statement: ast.stmt) -> tuple[bool, str, str]:
    source, name, _ = _names(statement)[0]
    return (isinstance(statement, ast.ImportFrom), source, name)


def _place(module: Module, statement: ast.stmt) -> int:
    """The line to insert an import at: in its own group's fullest section, after the last that sorts before it."""
    sections = _sections(module)
    ranked = sorted(
        range(len(sections)),
        key=lambda index: (-sum(_group(other) == _group(statement) for other in sections[index]), index),
    )
    ranked = [index for index in ranked if any(_group(other) != "future" for other in sections[index])]
    if not ranked:
        return _after_docstring(module)
    section = [other for other in sections[ranked[0]] if _group(other) != "future"]
    before = [other for other in section if _key(other) <= _key(statement)]
    if before:
        return (before[-1].end_lineno or before[-1].lineno) + 1
    return module.above_comments(section[0].lineno)


def _after_docstring(module: Module) -> int:
    """The line after the docstring and the __future__ imports, or after the comments that begin the file."""
    line = 1
    while line in module.comment_lines:
        line += 1
    for statement in module.tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            break
        line = (statement.end_lineno or 0) + 1
    return line


def _section_line(module: Module) -> int:
    """Where a missing import is looked for: the first import's line."""
    return next((statement.lineno for statement in _runtime_imports(module.tree.body)), 1)
