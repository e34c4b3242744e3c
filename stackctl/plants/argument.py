"""One argument of a call of upstream's, changed or added."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants import edit, render
from stackctl.plants.calls import call_nodes, dotted, statement_of
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.layout import WIDTH, lay_out
from stackctl.plants.layout import call as bracket
from stackctl.plants.module import Module, is_name, parse_expression, same, words
from stackctl.plants.render import Place
from stackctl.plants.view import View, host_of

if TYPE_CHECKING:
    import libcst as cst

_HOLE = "value"


class Argument(Kind):
    """An argument addressed by its place or its keyword: given `value`, or added with it.

    `value` may hold `{value}`, which stands for what upstream passes there.
    """

    name = "argument"
    summary = "an argument of a call, changed or added"
    options = {
        "call": Option(str, "the callee as it is written at the site", required=True, code="expression"),
        "position": Option(int, "which positional argument, from 0"),
        "keyword": Option(str, "which keyword argument; added if it is not there"),
        "value": Option(str, "the value; {value} stands for upstream's", required=True),
    }
    examples = (
        Example(
            {"call": "Batch", "position": 0, "value": "own({value})"},
            "def go(self):\n    return Batch(self.tok, size=1)\n",
            "def go(self):\n    return Batch(own(self.tok), size=1)\n",
            host="pkg.mod:go",
        ),
        Example(
            {"call": "gather", "keyword": "ipc", "value": "True"},
            "def go():\n    gather(\n        1,  # one\n    )\n    other()\n",
            "def go():\n    gather(\n        1,  # one\n        ipc=True,\n    )\n    other()\n",
            host="pkg.mod:go",
        ),
        Example({"call": "gather", "keyword": "ipc", "value": "True"}, "def go(y):\n    gather(x for x in y)\n",
                "def go(y):\n    gather((x for x in y), ipc=True)\n", host="pkg.mod:go", says="a generator gets brackets of its own"),
        Example({"call": "len", "position": 0, "value": "own({value})"}, "def go(y):\n    return f\"{len(y)} things\"\n",
                verdict=Verdict.LOST, host="pkg.mod:go", says="inside an f-string"),
        Example({"call": "gather", "keyword": "x", "value": "1"}, "def go():\n    gather()\n    gather()\n",
                verdict=Verdict.AMBIGUOUS, host="pkg.mod:go", says="two calls, one expected"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        options = plant.options
        if ("position" in options) == ("keyword" in options):
            return ["give either position or keyword"]
        if options.get("position", 0) < 0:
            return ["position counts from 0"]
        if not is_name(options.get("keyword", "x")):
            return [f"keyword {options['keyword']!r} is not a name"]
        try:
            _template(options["value"])
        except (SyntaxError, ValueError):
            return [f"value {options['value']!r} is not an expression"]
        return []

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = self.path(plant, view)
        module = view.module(path)
        call = _call(module, plant, path)
        where = {"path": path, "line": call.lineno, "symbol": plant.symbol}
        found = _argument(call, plant)
        name = plant.options.get("keyword") or f"argument {plant.options['position'] + 1}"
        if found is None:
            return Judgement(Verdict.LOST, f"`{plant.options['call']}` is not given {name}", **where)
        if _matches(found, _template(plant.options["value"])):
            return Judgement(Verdict.INTACT, **where)
        message = f"`{plant.options['call']}` is given `{ast.unparse(found)}` as {name}, not `{plant.options['value']}`"
        return Judgement(Verdict.LOST, message, **where)

    def words(self, plant: Plant) -> frozenset[str]:
        hole, keyword = f"__{_HOLE}__", plant.options.get("keyword")
        value = ast.unparse(_template(plant.options["value"]))
        return frozenset(word for word in words(f"{hole}({keyword}={value})" if keyword else value) if hole not in word)

    def leftover(self, plant: Plant, entry: Entry, view: View) -> bool:
        if "{value}" not in plant.options["value"]:
            return False
        try:
            return self.judge(plant, entry, view).verdict is Verdict.INTACT
        except Unplantable:
            return False

    def uproot(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        module = view.module(path)
        found = _argument(_call(module, plant, path), plant)
        assert found is not None
        inner = _in_hole(found, _template(plant.options["value"]))
        text = ast.get_source_segment(module.source.text, inner) or ast.unparse(inner)
        statement = statement_of(found, module.parents(host_of(module, plant, path)))
        view.edit(path, edit.rewrite(module.source, statement, {found: lambda _: render.parse(text)}))

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        if self.judge(plant, entry, view).verdict is Verdict.INTACT:
            return
        module = view.module(path)
        call = _call(module, plant, path)
        statement = statement_of(call, module.parents(host_of(module, plant, path)))
        place = Place(module, statement, call)
        view.edit(path, edit.rewrite(module.source, statement, {call: lambda node: _changed(node, plant, place, call)}))



def _call(module: Module, plant: Plant, path: str) -> ast.Call:
    host = host_of(module, plant, path)
    found = [call for call, _ in call_nodes(host) if dotted(call.func) == plant.options["call"]]
    if len(found) != 1:
        verdict = Verdict.AMBIGUOUS if found else Verdict.HOST_GONE
        message = f"`{plant.options['call']}` is called {len(found)} times here, once expected"
        raise Unplantable(verdict, message, getattr(host, "lineno", 1))
    return found[0]


def _argument(call: ast.Call, plant: Plant) -> ast.expr | None:
    if "keyword" in plant.options:
        return next((keyword.value for keyword in call.keywords if keyword.arg == plant.options["keyword"]), None)
    position = plant.options["position"]
    return call.args[position] if position < len(call.args) else None


def _template(value: str) -> ast.expr:
    """The value as code, the hole as a name that no one uses."""
    return parse_expression(value.replace("{value}", f"__{_HOLE}__"))


def _matches(found: ast.expr, template: ast.expr) -> bool:
    """Whether `found` is the template with something in its hole (a bare hole matches nothing of ours)."""
    if isinstance(template, ast.Name) and template.id == f"__{_HOLE}__":
        return False
    return _fits(found, template)


def _fits(found: ast.AST, template: ast.AST) -> bool:
    if isinstance(template, ast.Name) and template.id == f"__{_HOLE}__":
        return True
    if type(found) is not type(template):
        return False
    if not _holds_hole(template):
        return same(found, template)
    ours, theirs = list(ast.iter_child_nodes(found)), list(ast.iter_child_nodes(template))
    return len(ours) == len(theirs) and all(map(_fits, ours, theirs))


def _in_hole(found: ast.AST, template: ast.AST) -> ast.expr:
    """What stands in the template's hole."""
    if isinstance(template, ast.Name) and template.id == f"__{_HOLE}__":
        assert isinstance(found, ast.expr)
        return found
    pairs = zip(ast.iter_child_nodes(found), ast.iter_child_nodes(template), strict=True)
    return next(_in_hole(ours, theirs) for ours, theirs in pairs if _holds_hole(theirs))


def _holds_hole(template: ast.AST) -> bool:
    return any(isinstance(node, ast.Name) and node.id == f"__{_HOLE}__" for node in ast.walk(template))


def _changed(node: cst.BaseExpression, plant: Plant, place: Place, call: ast.Call) -> cst.BaseExpression:
    """The call with its argument changed or added, laid out anew only where it no longer fits its line."""
    import libcst as cst
    from libcst.helpers import ensure_type

    whole = ensure_type(node, cst.Call)
    found = _argument(call, plant)
    if found is None:
        return _added(whole, plant, place, call)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    index = sorted(values, key=lambda value: (value.lineno, value.col_offset)).index(found)
    argument = whole.args[index]
    value = plant.options["value"].replace("{value}", render.code(argument.value))
    new = whole.with_deep_changes(argument, value=render.parse(value))
    text = render.code(new)
    if "\n" in text or place.before + len(text) + place.after <= WIDTH:
        return new
    return render.parse(lay_out(render.expression(new), place.indent, place.before, place.after, place.margin))


def _added(whole: cst.Call, plant: Plant, place: Place, call: ast.Call) -> cst.BaseExpression:
    """The call with a keyword more: in its own line where the arguments stand one a line."""
    import libcst as cst

    name = plant.options.get("keyword")
    if name is None:
        raise Unplantable(Verdict.HOST_GONE, f"`{plant.options['call']}` has no such positional argument", call.lineno)
    last = whole.args[-1] if whole.args else None
    if last and isinstance(whole.whitespace_before_args, cst.ParenthesizedWhitespace) and isinstance(last.comma, cst.Comma):
        keyword = cst.Arg(
            value=render.parse(plant.options["value"]),
            keyword=cst.Name(name),
            equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
            comma=last.comma.with_changes(whitespace_after=_closing(last.comma.whitespace_after)),
        )
        between = cst.Comma(whitespace_after=_row(last.comma.whitespace_after, whole.whitespace_before_args))
        return whole.with_changes(args=[*whole.args[:-1], last.with_changes(comma=between), keyword])
    parts = (*(render.argument(each) for each in whole.args), f"{name}={plant.options['value']}")
    doc = bracket(render.code(whole.func), parts)
    return render.parse(lay_out(doc, place.indent, place.before, place.after, place.margin))


def _row(after: cst.BaseParenthesizableWhitespace, before: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The line break between two arguments: that before the first, with the last one's own comment kept."""
    import libcst as cst

    if isinstance(after, cst.ParenthesizedWhitespace) and isinstance(before, cst.ParenthesizedWhitespace):
        return before.with_changes(first_line=after.first_line, empty_lines=after.empty_lines)
    return before


def _closing(after: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The line break before the closing bracket, without the comment that stays with its own argument."""
    import libcst as cst

    if isinstance(after, cst.ParenthesizedWhitespace):
        return after.with_changes(first_line=cst.TrailingWhitespace(newline=after.first_line.newline), empty_lines=[])
    return after
