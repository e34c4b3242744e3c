"""A call of upstream's sent through a helper of ours."""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants import edit, render
from stackctl.plants.calls import Site, sites
from stackctl.plants.errors import Unplantable
from stackctl.plants.imports import judge_import, plant_import
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.layout import WIDTH, Bracket, Part, call, lay_out, prefixed
from stackctl.plants.module import Host, Module, is_expression, is_name, own_nodes, parse_expression
from stackctl.plants.render import Place
from stackctl.plants.view import View, host_of

if TYPE_CHECKING:
    import libcst as cst

_PARTIAL = "import functools"


class Reroute(Kind):
    """`self.f(a, b)` becomes `await self._preprocess(self.f, a, b)`, at every site in the host.

    Keyword arguments are bound by functools.partial, since helpers of this kind take positional ones.
    Upstream's own hop, `await loop.run_in_executor(None, self.f, a, b)`, is taken out and not nested, its
    `loop` with it. With `late` the call is made inside a lambda, so that what it names is looked up where
    it runs. Judged with stock upstream at hand, the arguments must still be upstream's.
    """

    name = "reroute"
    summary = "a call sent through a helper"
    options = {
        "call": Option(str, "the callee as it is written at the site", required=True, code="expression"),
        "through": Option(str, "the helper", required=True, code="expression"),
        "first": Option(str, "an argument of the helper that stands before the callee", code="expression"),
        "late": Option(dict, "put the call into a lambda, these names replaced by what they stand for"),
        "keywords": Option(dict, "keyword arguments of the helper itself"),
        "hop": Option(dict, "keyword arguments of the helper where upstream had a hop of its own"),
        "count": Option(int, "how many sites the host has; default 1"),
        "enclosing": Option(str, 'take only calls in a "comprehension", whole, or only others ("call")'),
        "fallback": Option(str, "the helper where `through` is not bound in the module; it takes no `first`", code="expression"),
        "also": Option(list, "other helpers that count as this one, as patterns: '*._preprocess'"),
    }
    examples = (
        Example(
            {"call": "self.f", "through": "self._off"},
            "class A:\n    async def go(self, a, b):\n        return self.f(a, b)\n",
            "class A:\n    async def go(self, a, b):\n        return await self._off(self.f, a, b)\n",
            host="pkg.mod:A.go",
        ),
        Example(
            {"call": "self.f", "through": "self._off"},
            "import asyncio\n\nclass A:\n    async def go(self, a):\n        loop = asyncio.get_running_loop()\n"
            "        return await loop.run_in_executor(None, self.f, a)\n",
            "import asyncio\n\nclass A:\n    async def go(self, a):\n        return await self._off(self.f, a)\n",
            host="pkg.mod:A.go",
            says="upstream's own hop is taken out",
        ),
        Example(
            {"call": "self.f", "through": "self._off"},
            "import os\n\nclass A:\n    async def go(self, a, b):\n        return self.f(a, key=b)\n",
            "import functools\nimport os\n\nclass A:\n    async def go(self, a, b):\n"
            "        return await self._off(functools.partial(self.f, key=b), a)\n",
            host="pkg.mod:A.go",
            says="keyword arguments are bound by functools.partial",
        ),
        Example(
            {"call": "tok.encode", "through": "off", "first": "self", "late": {"tok": "self.tok"}},
            "from ours import off\n\nclass A:\n    async def go(self, a):\n        tok = self.tok\n        return tok.encode(a)\n",
            "from ours import off\n\nclass A:\n    async def go(self, a):\n        tok = self.tok\n"
            "        return await off(self, lambda: self.tok.encode(a))\n",
            host="pkg.mod:A.go",
        ),
        Example(
            {"call": "self.f", "through": "self._off"},
            "class A:\n    async def go(self, a):\n        self.f(a)\n        self.f(a)\n",
            verdict=Verdict.AMBIGUOUS,
            host="pkg.mod:A.go",
            says="two sites, one declared",
        ),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        if plant.options.get("enclosing", "call") not in ("call", "comprehension"):
            return ['enclosing is "call" or "comprehension"']
        if plant.options.get("count", 1) < 1:
            return ["count is 1 or more"]
        for key in ("late", "keywords", "hop"):
            for name, value in plant.options.get(key, {}).items():
                if not is_name(name) or not is_expression(value):
                    return [f"{key} gives {name!r} = {value!r}: a name and an expression are wanted"]
        if bad := [pattern for pattern in plant.options.get("also", ()) if not isinstance(pattern, str)]:
            return [f"also holds {bad[0]!r}, where text is wanted"]
        return [] if plant.symbol else ["a reroute's host is a function: module:Class.function"]

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = self.path(plant, view)
        module = view.module(path)
        host = host_of(module, plant, path)
        found = _sites(plant, module, host)
        judged = _count(plant, found, host, path) or self._shapes(plant, view, path, found)
        if judged:
            return judged
        if any(_uses_partial(site) for site in found):
            needed = judge_import(module, _PARTIAL, path)
            if needed.verdict is Verdict.LOST:
                return Judgement(Verdict.LOST, "`import functools`, which this site needs, is gone", path, needed.line, "")
        return Judgement(Verdict.INTACT, path=path, line=found[0].node.lineno, symbol=plant.symbol)

    def _shapes(self, plant: Plant, view: View, path: str, found: list[Site]) -> Judgement | None:
        """What is wrong with sites that are all there: not awaited, or other arguments than upstream's."""
        for site in found:
            if not site.awaited:
                return Judgement(Verdict.ALTERED, f"`{site.through}` is not awaited", path, site.node.lineno, plant.symbol)
            if site.through == plant.options["through"] and (extra := _extra(plant, site)):
                message = f"`{site.through}` itself is given {', '.join(f'`{word}`' for word in extra)}"
                return Judgement(Verdict.ALTERED, message, path, site.node.lineno, plant.symbol)
        stock = _stock_sites(plant, view)
        if len(stock) != len(found):
            return None
        for site, theirs in zip(found, stock, strict=True):
            if theirs.state != "through" and site.through == plant.options["through"]:
                missing = _missing(plant, site, theirs)
                if missing:
                    return Judgement(
                        Verdict.ALTERED, f"the call lacks {', '.join(f'`{word}`' for word in missing)}", path,
                        site.node.lineno, plant.symbol, f"stock upstream {view.release} has it at this site",
                    )  # fmt: skip
        return None

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        path = self.path(plant, view)
        judgement = self.judge(plant, entry, view)
        if judgement.verdict in (Verdict.AMBIGUOUS, Verdict.DUPLICATED):
            raise Unplantable(judgement.verdict, judgement.message, judgement.line)
        plant = _with_helper(plant, view, path)
        rounds = 0
        while (todo := self._next(plant, view, path)) is not None:
            rounds += 1
            if rounds > 2 * plant.options.get("count", 1):  # `f(f(x))`: each makes the other differ from stock's
                raise Unplantable(Verdict.UNDECIDED, "one site is inside another, so neither can be as upstream has it", todo[0].node.lineno)
            _rewrite(plant, view, path, *todo)
        module = view.module(path)
        if any(_uses_partial(site) for site in _sites(plant, module, host_of(module, plant, path))):
            plant_import(view, path, _PARTIAL)

    def _next(self, plant: Plant, view: View, path: str) -> tuple[Site, Site] | None:
        """The next site that is not as it should be, and the one whose arguments it gets."""
        module = view.module(path)
        found = _sites(plant, module, host_of(module, plant, path))
        stock = _stock_sites(plant, view)
        for index, site in enumerate(found):
            theirs = stock[index] if len(stock) == len(found) and stock[index].state != "through" else None
            lacking = theirs is not None and bool(_missing(plant, site, theirs))
            if site.state != "through":
                return site, theirs if theirs and lacking else site
            if theirs and (not site.awaited or lacking or _extra(plant, site)):
                return site, theirs
        return None



def _sites(plant: Plant, module: Module, host: Host) -> list[Site]:
    options = plant.options
    throughs = tuple(filter(None, (options["through"], options.get("fallback"), *options.get("also", ()))))
    return sites(module, host, options["call"], throughs, options.get("enclosing", ""))


def _stock_sites(plant: Plant, view: View) -> list[Site]:
    """The same sites in stock upstream; none if it is not known or has no such host."""
    if view.stock is None:
        return []
    try:
        path = view.stock.path_of(plant.module)
        module = view.stock.module(path)
        return _sites(plant, module, host_of(module, plant, path))
    except Unplantable:
        return []


def _count(plant: Plant, found: list[Site], host: Host, path: str) -> Judgement | None:
    """What is wrong with the number of sites, or None."""
    wanted = plant.options.get("count", 1)
    done = [site for site in found if site.state == "through"]
    where = {"path": path, "symbol": plant.symbol}
    if len(found) > wanted:
        verdict = Verdict.DUPLICATED if len(done) > wanted else Verdict.AMBIGUOUS
        message = f"`{plant.options['call']}` is called at {len(found)} sites here, {wanted} declared"
        return Judgement(verdict, message, line=found[-1].node.lineno, **where)
    if len(done) == wanted:
        return None
    if len(found) < wanted:
        message = f"`{plant.options['call']}` is called at {len(found)} sites here, {wanted} declared"
        return Judgement(Verdict.HOST_GONE, message, line=host.lineno if hasattr(host, "lineno") else 1, **where)
    left = next(site for site in found if site.state != "through")
    how = "on upstream's own executor" if left.state == "hop" else "directly"
    of = f" at {wanted - len(done)} of {wanted} sites" if wanted > 1 else ""
    message = f"`{plant.options['call']}` is called {how}{of}, not through `{plant.options['through']}`"
    return Judgement(Verdict.LOST, message, line=left.node.lineno, **where)


def _with_helper(plant: Plant, view: View, path: str) -> Plant:
    """The plant with a helper that is there: a plain name must be bound, or the planted call would fail when it runs."""
    name = plant.options["through"]
    if not name.isidentifier() or name in view.module(path).bound:
        return plant
    if fallback := plant.options.get("fallback"):
        return replace(plant, options={**plant.options, "through": fallback, "first": ""})
    raise Unplantable(Verdict.UNDECIDED, f"`{name}` is not bound in {path}, so nothing can be sent through it")


def _uses_partial(site: Site) -> bool:
    return isinstance(site.call, ast.Call) and any(
        isinstance(argument, ast.Call) and ast.unparse(argument.func) == "functools.partial" for argument in site.call.args
    )


def _missing(plant: Plant, site: Site, theirs: Site) -> list[str]:
    """What the stock call passes, or the helper should get, that a site of ours lacks."""
    if site.state != "through":
        has = _arguments(site, late := plant.options.get("late", {}))
        return [word for word in _arguments(theirs, late) if word not in has]
    passed = {text for node in ast.walk(site.node) if isinstance(node, ast.Call) for text in _texts(node)}
    code = ast.unparse(site.node)
    late = plant.options.get("late", {})
    return [word for word in [*_arguments(theirs, late), *_keyword_texts(plant, theirs)] if word not in passed and word not in code]


def _extra(plant: Plant, site: Site) -> list[str]:
    """Keywords that the helper itself is given and that are not its own: a half of the call left outside."""
    helper = site.node.value if isinstance(site.node, ast.Await) else site.node
    own = plant.options.get("keywords", {}).keys() | plant.options.get("hop", {}).keys()
    return [_keyword(keyword) for keyword in getattr(helper, "keywords", ()) if keyword.arg not in own]


def _texts(call: ast.Call) -> list[str]:
    return [*(ast.unparse(argument) for argument in call.args), *map(_keyword, call.keywords)]


def _arguments(site: Site, late: dict[str, str]) -> list[str]:
    """The arguments of a plain or hopped call as text, keywords as key=value; of a comprehension, all of it."""
    call = _Spelt(late).visit(copy.deepcopy(site.call)) if late else site.call
    if not isinstance(call, ast.Call):
        return [ast.unparse(call)]
    if site.state != "hop":
        return _texts(call)
    bound = call.args[1]
    return [*_texts(call)[2:], *(map(_keyword, bound.keywords) if isinstance(bound, ast.Call) else ())]


class _Spelt(ast.NodeTransformer):
    """Local names replaced by what they stand for."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        return parse_expression(self.names[node.id]) if node.id in self.names else node


def _keyword(keyword: ast.keyword) -> str:
    value = ast.unparse(keyword.value)
    return f"{keyword.arg}={value}" if keyword.arg else f"**{value}"


def _keyword_texts(plant: Plant, site: Site) -> list[str]:
    """The helper's own keywords at this site."""
    keywords = dict(plant.options.get("keywords", {}))
    if site.state == "hop":
        keywords |= plant.options.get("hop", {})
    return [f"{key}={value}" for key, value in keywords.items()]


def _rewrite(plant: Plant, view: View, path: str, site: Site, model: Site) -> None:
    """Put the rerouted call in the place of `site`, with the arguments of `model` (itself or stock's)."""
    module = view.module(path)
    brackets = _needs_brackets(site.node, module.parents(host_of(module, plant, path)))

    def build(node: cst.BaseExpression) -> cst.BaseExpression:
        place = Place(module, site.statement, site.node, brackets=bool(node.lpar))
        doc = _call_text(plant, node if model is site else _formatted(plant, view, model), model)
        return render.parse(_awaited(doc, place, brackets))

    view.edit(path, edit.rewrite(module.source, site.statement, {site.node: build}))
    if site.state == "hop":
        _drop_loop(plant, view, path)


def _formatted(plant: Plant, view: View, model: Site) -> cst.BaseExpression:
    """Stock's expression as stock has it written."""
    assert view.stock is not None
    source = view.stock.module(view.stock.path_of(plant.module)).source
    return edit.capture(source, model.statement, model.node)


def _awaited(doc: Bracket, place: Place, brackets: bool) -> str:
    """The await, in brackets where it needs them or where its first line would be too long without."""
    if not brackets and place.before + len(f"await {doc.head}") > WIDTH:
        inner = f"{place.indent}    "
        text = lay_out(doc, inner, place.margin + len(f"{inner}await "), 0, place.margin)
        return f"(\n{inner}await {text}\n{place.indent})"
    taken = place.before + len("await ") + (2 if brackets else 0)
    text = lay_out(doc, place.indent, taken, place.after, place.margin)
    return f"(await {text})" if brackets else f"await {text}"


def _needs_brackets(node: ast.expr, up: dict[ast.AST, ast.AST]) -> bool:
    """Whether an await in this place must be bracketed: `(await f(x)).y`, `(await f(x))[0]`, `(await f(x)) ** 2`."""
    outer = up[node]
    return (
        (isinstance(outer, ast.Attribute | ast.Subscript) and outer.value is node)
        or (isinstance(outer, ast.Call) and outer.func is node)
        or (isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Pow))
        or (isinstance(outer, ast.Await) and outer.value is node)
    )


def _call_text(plant: Plant, node: cst.BaseExpression, model: Site) -> Bracket:
    """The rerouted call as something to lay out."""
    options = plant.options
    node = node.with_changes(lpar=(), rpar=())
    first = [options["first"]] if options.get("first") else []
    keywords = _keyword_texts(plant, model)
    if "late" in options:
        lazy = prefixed("lambda: ", render.expression(_late(node, options["late"])))
        return call(options["through"], (*first, lazy, *keywords))
    positional, bound = _split(node, model)
    callee: Part = call("functools.partial", (options["call"], *bound)) if bound else options["call"]
    return call(options["through"], (*first, callee, *positional, *keywords))


def _split(node: cst.BaseExpression, model: Site) -> tuple[list[Part], list[Part]]:
    """The positional arguments of a call, and those that only functools.partial can carry."""
    import libcst as cst
    from libcst.helpers import ensure_type

    whole = ensure_type(node.expression if isinstance(node, cst.Await) else node, cst.Call)
    arguments, bound = list(whole.args), []
    if model.state == "hop":
        inner = arguments[1].value
        bound = [render.argument(each) for each in inner.args[1:]] if isinstance(inner, cst.Call) else []
        arguments = arguments[2:]
    positional = [render.argument(each) for each in arguments if each.keyword is None and each.star != "**"]
    bound += [render.argument(each) for each in arguments if each.keyword is not None or each.star == "**"]
    return positional, bound


def _late(node: cst.BaseExpression, names: dict[str, str]) -> cst.BaseExpression:
    """The expression with local names replaced by what they stand for, to be looked up where it runs."""
    import libcst as cst

    class Late(cst.CSTTransformer):
        def visit_Attribute_attr(self, node: cst.Attribute) -> None:  # noqa: N802
            self.skip = node.attr

        def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
            if original_node is getattr(self, "skip", None) or original_node.value not in names:
                return updated_node
            return cst.parse_expression(names[original_node.value])

        def visit_Arg(self, node: cst.Arg) -> None:  # noqa: N802
            self.keyword = node.keyword

        def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
            return updated_node.with_changes(keyword=original_node.keyword)

    result = node.visit(Late())
    assert isinstance(result, cst.BaseExpression)
    return result


def _drop_loop(plant: Plant, view: View, path: str) -> None:
    """Take out `loop = asyncio.get_running_loop()` once nothing in the host reads it."""
    module = view.module(path)
    host = host_of(module, plant, path)
    reads = {node.id for node in own_nodes(host) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for statement in own_nodes(host):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        value = ast.unparse(statement.value)
        if value in ("asyncio.get_running_loop()", "asyncio.get_event_loop()") and statement.targets[0].id not in reads:
            if edit.alone(module.source, statement):
                view.edit(path, edit.remove_statement(module.source, statement))
            return


