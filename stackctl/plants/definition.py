"""A function, method or class of ours inside a module of upstream's."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants import edit
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.module import DEFINITIONS, Host, Module, parse_statements, same, start_line, words
from stackctl.plants.view import View, host_of

_CODE = """def ours(self):
    return 1
"""


class Definition(Kind):
    """One definition (or several of one name, such as a property's getter and setter) added to a host.

    Judged by its code: another layout is the same definition, another comment is reported as such,
    other code is `altered`.
    """

    name = "definition"
    summary = "a function, method or class added to a module or class"
    options = {
        "code": Option(str, "the definition as Python text", required=True, code="statements"),
        "after": Option(str, "the definition in the same host that it follows; default: the host's last statement"),
    }
    examples = (
        Example(
            {"code": _CODE, "after": "first"},
            "class A:\n    def first(self):\n        pass\n\n    def last(self):\n        pass\n",
            "class A:\n    def first(self):\n        pass\n\n    def ours(self):\n        return 1\n\n"
            "    def last(self):\n        pass\n",
            host="pkg.mod:A",
        ),
        Example({"code": _CODE}, "", "def ours(self):\n    return 1\n", says="an empty module"),
        Example({"code": _CODE, "after": "gone"}, "class A:\n    x = 1\n", host="pkg.mod:A", says="the anchor is gone"),
        Example({"code": _CODE}, "class B:\n    x = 1\n", verdict=Verdict.HOST_GONE, host="pkg.mod:A", says="no such host"),
    )  # fmt: skip

    def code(self, plant: Plant) -> str:
        """The text of the definition, dedented."""
        return textwrap.dedent(plant.options["code"]).strip("\n") + "\n"

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        parsed = parse_statements(self.code(plant))
        names = {getattr(statement, "name", None) for statement in parsed}
        if len(names) != 1 or not all(isinstance(statement, DEFINITIONS) for statement in parsed):
            return ["code must be one definition, or several of one name"]
        return []

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = self.path(plant, view)
        module = view.module(path)
        wanted = parse_statements(self.code(plant))
        name = wanted[0].name  # type: ignore[attr-defined]
        symbol = ".".join(filter(None, [plant.symbol, name]))
        host = host_of(module, plant, path)
        found = module.hosts.get(symbol, [])
        if not found:
            place = next(iter(_twins(module, name, wanted, plant, view)), None)
            verdict = Verdict.MISPLACED if place else Verdict.LOST
            message = f"`{name}` is defined in {place or 'the module'} instead" if place else f"`{name}` is not defined here"
            return Judgement(verdict, message, path, getattr(host, "lineno", 1), symbol)
        if len(found) > len(wanted):
            message = f"`{name}` is defined {len(found)} times, {len(wanted)} declared"
            return Judgement(Verdict.DUPLICATED, message, path, found[-1].lineno, symbol)
        if len(found) < len(wanted):
            message = f"{len(found)} of the {len(wanted)} definitions of `{name}` are here"
            return Judgement(Verdict.LOST, message, path, found[0].lineno, symbol)
        if not all(map(same, found, wanted)):
            return Judgement(Verdict.ALTERED, f"`{name}` is not as the entry has it", path, found[0].lineno, symbol)
        text = "".join(module.source.lines[start_line(found[0]) - 1 : found[-1].end_lineno])
        if _comments(text) != _comments(self.code(plant)):
            return Judgement(Verdict.COMMENT_LOST, f"comments in `{name}` differ", path, found[0].lineno, symbol)
        return Judgement(Verdict.INTACT, path=path, line=found[0].lineno, symbol=symbol)

    def words(self, plant: Plant) -> frozenset[str]:
        return words(self.code(plant))

    def leftover(self, plant: Plant, entry: Entry, view: View) -> bool:
        return bool(self._ours(plant, view))

    def uproot(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        while nodes := self._ours(plant, view):
            _take_out(view, path, nodes[-1])

    def _ours(self, plant: Plant, view: View) -> list[ast.stmt]:
        """The definitions in the host that are ours to the letter."""
        wanted = parse_statements(self.code(plant))
        symbol = ".".join(filter(None, [plant.symbol, wanted[0].name]))  # type: ignore[attr-defined]
        try:
            found = view.module(self.path(plant, view)).hosts.get(symbol, [])
        except Unplantable:
            return []
        return [node for node in found if any(same(node, code) for code in wanted)]

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        path, judgement = self.path(plant, view), self.judge(plant, entry, view)
        module = view.module(path)
        _check_anchor(module, plant)  # before anything is taken out
        if judgement.verdict is Verdict.INTACT:
            return
        self._clear(plant, view, path, judgement)
        module = view.module(path)
        host = host_of(module, plant, path)
        if not host.body:  # an empty module
            view.edit(path, edit.insert(module.source, len(module.source.lines) + 1, self.code(plant), ""))
            return
        after = _anchor(module, plant, host)
        if plant.symbol and not edit.alone(module.source, host.body[0]) and host.body[0].lineno == host.lineno:  # type: ignore[union-attr]
            raise Unplantable(Verdict.AMBIGUOUS, f"{plant.symbol} stands on one line", host.body[0].lineno)
        indent = module.indent(start_line(host.body[0])) if plant.symbol else ""
        blanks = 1 if plant.symbol else 2
        view.edit(path, edit.insert(module.source, (after.end_lineno or 0) + 1, self.code(plant), indent, (blanks, 0)))

    def _clear(self, plant: Plant, view: View, path: str, judgement: Judgement) -> None:
        """Take out copies that are altered, incomplete, duplicated or in another host."""
        if judgement.verdict is Verdict.LOST and not view.module(path).hosts.get(judgement.symbol):
            return
        name = judgement.symbol.rpartition(".")[2]
        wanted = parse_statements(self.code(plant))
        while True:
            module = view.module(path)
            nodes = list(module.hosts.get(judgement.symbol, []))
            if judgement.verdict is Verdict.MISPLACED:
                nodes = [n for ns in _twins(module, name, wanted, plant, view).values() for n in ns]
            if not nodes:
                return
            _take_out(view, path, nodes[-1])


def _take_out(view: View, path: str, node: ast.stmt) -> None:
    module = view.module(path)
    suites = [getattr(owner, field, None) for owner in ast.walk(module.tree) for field in ("body", "orelse", "finalbody")]
    if [node] in suites:
        raise Unplantable(Verdict.AMBIGUOUS, "a copy of the definition is alone in its block", node.lineno)
    view.edit(path, edit.remove_statement(module.source, node, _extent(module, node)[0]))


def _twins(module: Module, name: str, wanted: list[ast.stmt], plant: Plant, view: View) -> dict[str, list[ast.stmt]]:
    """Definitions elsewhere in the module that are ours to the letter and that stock upstream has not."""
    stock: set[str] | None = None
    if view.stock:
        try:
            stock = set(view.stock.module(view.stock.path_of(plant.module)).hosts)
        except Unplantable:
            stock = set()
    return {
        symbol: nodes
        for symbol, nodes in module.hosts.items()
        if stock is not None and symbol not in stock and _is_twin(symbol, name, nodes, wanted)
    }  # type: ignore[return-value]


def _is_twin(symbol: str, name: str, nodes: list[ast.AST], wanted: list[ast.stmt]) -> bool:
    return symbol.rpartition(".")[2] == name and len(nodes) == len(wanted) and all(map(same, nodes, wanted))



def _check_anchor(module: Module, plant: Plant) -> list[Host]:
    """The definitions that are the declared anchor, none if none is declared. Raises Unplantable if it is gone."""
    after = plant.options.get("after")
    found = module.hosts.get(".".join(filter(None, [plant.symbol, after])), []) if after else []
    if after and not found:
        raise Unplantable(Verdict.HOST_GONE, f"the anchor `{after}` is not defined in {plant.symbol or 'the module'}")
    return found


def _anchor(module: Module, plant: Plant, host: ast.Module | ast.ClassDef) -> ast.stmt:
    """The statement that the definition follows."""
    found = _check_anchor(module, plant)
    if not found:
        return host.body[-1]
    # One in a branch is followed by the whole branch: an `else` may come next.
    return next(statement for statement in host.body if any(node is found[-1] for node in ast.walk(statement)))


def _extent(module: Module, node: ast.stmt) -> tuple[int, int]:
    """The lines of a definition with the blank lines above it, which came with it."""
    lines, first = module.source.lines, start_line(node)
    while first > 1 and not lines[first - 2].strip():
        first -= 1
    return first, node.end_lineno or first


def _comments(text: str) -> list[str]:
    """The comments of a piece of code in order."""
    reader = io.StringIO(textwrap.dedent(text)).readline
    try:
        return [token.string.rstrip() for token in tokenize.generate_tokens(reader) if token.type == tokenize.COMMENT]
    except (tokenize.TokenError, IndentationError):
        return []
