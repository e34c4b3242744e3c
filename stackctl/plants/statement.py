"""One statement of ours before or after one of upstream's."""

from __future__ import annotations

import ast
import textwrap

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants import edit
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.module import Host, Module, parse_statements, same, start_line, statements, suites, words
from stackctl.plants.view import View, host_of


class Statement(Kind):
    """A statement in the suite of its anchor, before or after it.

    Others may stand between the two. `anchor` is code, compared by structure: a whole simple statement,
    or the header of a compound one (`if x:`), which must be in the host exactly once.
    """

    name = "statement"
    summary = "a statement before or after an anchor"
    options = {
        "code": Option(str, "one statement", required=True, code="statements"),
        "after": Option(str, "the anchor that it follows"),
        "before": Option(str, "the anchor that it precedes"),
        "blank": Option(bool, "leave an empty line above it"),
        "end": Option(bool, "the host's last statement is the anchor"),
    }
    examples = (
        Example(
            {"code": "self.c()", "after": "self.a()"},
            "class A:\n    def __init__(self):\n        # one\n        self.a()\n\n        # two\n        self.b()\n",
            "class A:\n    def __init__(self):\n        # one\n        self.a()\n        self.c()\n\n        # two\n        self.b()\n",
            host="pkg.mod:A.__init__",
        ),
        Example(
            {"code": "init()", "after": "if metrics:"},
            "def go():\n    if metrics:\n        a()\n    b()\n",
            "def go():\n    if metrics:\n        a()\n    init()\n    b()\n",
            host="pkg.mod:go",
        ),
        Example({"code": "x()", "after": "a()"}, "def go():\n    a()\n    a()\n", verdict=Verdict.AMBIGUOUS,
                host="pkg.mod:go", says="the anchor is there twice"),
        Example({"code": "x()", "after": "a()"}, "def go():\n    x()\n    a()\n", "def go():\n    a()\n    x()\n",
                Verdict.MISPLACED, host="pkg.mod:go", says="before its anchor and not after it"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        options = plant.options
        problems = []
        if sum(key in options for key in ("after", "before", "end")) != 1:
            problems.append("give one of after, before and end")
        if len(parse_statements(textwrap.dedent(options["code"]))) != 1:
            problems.append("code must be one statement")
        for key in ("after", "before"):
            if key in options and _parsed_anchor(options[key]) is None:
                problems.append(f"{key} {options[key]!r} is not a statement or a header")
        return problems

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = self.path(plant, view)
        module = view.module(path)
        host = host_of(module, plant, path)
        wanted = _code(plant)
        suite, index = _anchor(module, host, plant)
        here, elsewhere = _ours(module, plant, view, suite)
        line = suite[index].lineno
        where = {"path": path, "symbol": plant.symbol}
        text = ast.unparse(wanted).split("\n")[0]
        if len(here) > 1 or (here and any(other in list(statements(host)) for other in elsewhere)):
            return Judgement(Verdict.DUPLICATED, f"`{text}` is here more than once", line=suite[here[-1]].lineno, **where)
        if not here and elsewhere:
            message = f"`{text}` is not by its anchor but at line {elsewhere[0].lineno}"
            return Judgement(Verdict.MISPLACED, message, line=elsewhere[0].lineno, **where)
        if not here:
            return Judgement(Verdict.LOST, f"`{text}` is not here", line=line, **where)
        if (here[0] > index) != ("before" not in plant.options) and "end" not in plant.options:
            return Judgement(Verdict.MISPLACED, f"`{text}` is on the wrong side of its anchor", line=suite[here[0]].lineno, **where)
        return Judgement(Verdict.INTACT, line=suite[here[0]].lineno, **where)

    def words(self, plant: Plant) -> frozenset[str]:
        return words(textwrap.dedent(plant.options["code"]))

    def leftover(self, plant: Plant, entry: Entry, view: View) -> bool:
        """More copies than stock upstream has: upstream's own form may be this very statement."""
        try:
            return bool(_surplus(view.module(self.path(plant, view)), plant, view))
        except Unplantable:
            return False

    def uproot(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        while found := _surplus(view.module(path), plant, view):
            _take_out(view, path, found[-1])

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        while (judgement := self.judge(plant, entry, view)).verdict in (Verdict.DUPLICATED, Verdict.MISPLACED):
            _take_out(view, path, self._extra(plant, view, path))
        if judgement.verdict is Verdict.INTACT:
            return
        module = view.module(path)
        suite, index = _anchor(module, host_of(module, plant, path), plant)
        anchor = suite[index]
        if not edit.alone(module.source, anchor):
            raise Unplantable(Verdict.AMBIGUOUS, "the anchor shares its line with another statement", anchor.lineno)
        start = start_line(anchor)
        line = module.above_comments(start) if "before" in plant.options else (anchor.end_lineno or 0) + 1
        blank = int(plant.options.get("blank", False))
        view.edit(path, edit.insert(module.source, line, plant.options["code"], module.indent(start), (blank, 0)))

    def _extra(self, plant: Plant, view: View, path: str) -> ast.stmt:
        """The copy to take out first: one elsewhere before one by the anchor."""
        module = view.module(path)
        suite, _ = _anchor(module, host_of(module, plant, path), plant)
        here, elsewhere = _ours(module, plant, view, suite)
        return elsewhere[-1] if elsewhere else suite[here[-1]]



def _code(plant: Plant) -> ast.stmt:
    return parse_statements(textwrap.dedent(plant.options["code"]))[0]


def _copies(module: Module, wanted: ast.stmt) -> dict[str, list[ast.stmt]]:
    """Host to every statement of it that is `wanted`, in source order."""
    found: dict[str, list[ast.stmt]] = {}
    for symbol, hosts in module.hosts.items():
        for host in hosts:
            for suite in suites(host):
                found.setdefault(symbol, []).extend(s for s in suite if type(s) is type(wanted) and same(s, wanted))
    return {symbol: sorted(copies, key=lambda copy: copy.lineno) for symbol, copies in found.items() if copies}


def _surplus(module: Module, plant: Plant, view: View) -> list[ast.stmt]:
    """The copies that stock upstream has not: one `return None` more is ours, the others are not.

    Where stock is not known, only those in the host can be told to be ours.
    """
    wanted = _code(plant)
    stock = _stock_copies(plant, view, wanted)
    surplus: list[ast.stmt] = []
    for symbol, copies in _copies(module, wanted).items():
        if stock is None:
            surplus += copies if symbol == plant.symbol else []
        else:
            surplus += copies[len(stock.get(symbol, ())) :]
    return sorted(surplus, key=lambda copy: copy.lineno)


def _stock_copies(plant: Plant, view: View, wanted: ast.stmt) -> dict[str, list[ast.stmt]] | None:
    if view.stock is None:
        return None
    path = view.stock.path_of(plant.module)
    if view.stock.lacks(path, words(ast.unparse(wanted))):
        return {}
    try:
        return _copies(view.stock.module(path), wanted)
    except Unplantable:
        return {}


def _ours(module: Module, plant: Plant, view: View, suite: list[ast.stmt]) -> tuple[list[int], list[ast.stmt]]:
    """The places of the statement in its anchor's suite, and the copies of ours that are not there."""
    wanted = _code(plant)
    stock = _stock_copies(plant, view, wanted)
    here = [place for place, other in enumerate(suite) if same(other, wanted)]
    elsewhere: list[ast.stmt] = []
    for symbol, copies in _copies(module, wanted).items():
        rest = [copy for copy in copies if not any(copy is suite[place] for place in here)]
        theirs = len(stock.get(symbol, ())) if stock is not None else 0 if symbol == plant.symbol else len(rest)
        elsewhere += rest[theirs:]
    return here, sorted(elsewhere, key=lambda copy: copy.lineno)


def _take_out(view: View, path: str, statement: ast.stmt) -> None:
    module = view.module(path)
    if any(len(suite) == 1 and suite[0] is statement for hosts in module.hosts.values() for host in hosts for suite in suites(host)):
        raise Unplantable(Verdict.MISPLACED, "the misplaced statement is alone in its block", statement.lineno)
    view.edit(path, edit.remove_statement(module.source, statement))


def _anchor(module: Module, host: Host, plant: Plant) -> tuple[list[ast.stmt], int]:
    """The suite of the anchor and its place in it."""
    if plant.options.get("end"):
        wanted = _code(plant)
        last = [index for index, other in enumerate(host.body) if not same(other, wanted)]
        return host.body, last[-1] if last else 0
    text = plant.options.get("after") or plant.options["before"]
    anchor = _parsed_anchor(text)
    found = [
        (suite, index)
        for suite in suites(host)
        for index, statement in enumerate(suite)
        if anchor and (same(statement, anchor[0]) if anchor[1] else _same_header(statement, anchor[0]))
    ]
    if len(found) != 1:
        verdict = Verdict.AMBIGUOUS if found else Verdict.HOST_GONE
        message = f"the anchor `{text}` is here {len(found)} times, once expected"
        raise Unplantable(verdict, message, getattr(host, "lineno", 1))
    return found[0]


def _parsed_anchor(text: str) -> tuple[ast.stmt, bool] | None:
    """An anchor's statement, and whether it is to be compared whole (False: by its header)."""
    try:
        if text.rstrip().endswith(":"):
            return parse_statements(f"{text.rstrip()}\n    pass")[0], False
        return parse_statements(text)[0], True
    except (SyntaxError, IndexError):
        return None


def _same_header(statement: ast.stmt, header: ast.stmt) -> bool:
    """Whether two compound statements differ in their suites alone."""
    if type(statement) is not type(header):
        return False
    skip = ("body", "orelse", "handlers", "finalbody", "cases", "decorator_list")
    return all(
        _dumped(getattr(statement, name, None)) == _dumped(getattr(header, name, None))
        for name in statement._fields
        if name not in skip
    )


def _dumped(value: object) -> object:
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    return ast.dump(value) if isinstance(value, ast.AST) else value
