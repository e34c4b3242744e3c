"""Find calls in one host, in every shape they take: plain, on an executor, through a helper of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from stackctl.plants.module import DEFINITIONS, Module

_HOP = "run_in_executor"


@dataclass(frozen=True)
class Site:
    """One place where a call is made.

    `node` is the whole expression to replace (with its await), `call` the call itself as a plain call
    would be, `state` "plain", "hop" (upstream's own executor) or "through" (a helper).
    """

    node: ast.expr
    state: str
    callee: str
    call: ast.expr
    statement: ast.stmt
    awaited: bool = True
    through: str = ""


def dotted(node: ast.expr) -> str:
    """An expression as text; the common `a.b.c` without the cost of ast.unparse."""
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(parts)]) if isinstance(inner, ast.Name) else ast.unparse(node)


def statement_of(node: ast.AST, up: dict[ast.AST, ast.AST]) -> ast.stmt:
    """The innermost statement around a node."""
    while not isinstance(node, ast.stmt):
        node = up[node]
    return node


def call_nodes(host: ast.AST) -> Iterator[tuple[ast.Call, bool]]:
    """(call, inside a lambda) for every call of `host` itself; nested functions and classes are left out."""
    stack = [(child, False) for child in ast.iter_child_nodes(host)]
    while stack:
        node, in_lambda = stack.pop()
        if isinstance(node, DEFINITIONS):
            continue
        if isinstance(node, ast.Call):
            yield node, in_lambda
        inside = in_lambda or isinstance(node, ast.Lambda)
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]


def sites(module: Module, host: ast.AST, callee: str, throughs: tuple[str, ...], enclosing: str = "") -> list[Site]:
    """Every site of `callee` in `host`, in source order.

    `throughs` are patterns of helpers ("*._preprocess"). `enclosing` "comprehension" takes only calls in
    a comprehension, and the comprehension as the call; "call" only those outside of one.
    """
    if host not in module.calls:  # an entry asks a host for one callee after another
        module.calls[host] = [(call, dotted(call.func), in_lambda) for call, in_lambda in call_nodes(host)]
    found: list[Site] = []
    for call, name, in_lambda in module.calls[host]:
        if any(fnmatchcase(name, pattern) for pattern in throughs):
            found += _through(call, name, callee, enclosing, module.parents(host))
        elif name.rpartition(".")[2] == _HOP and len(call.args) > 1 and _reaches(call.args[1], callee) and not enclosing:
            found.append(_site(call, "hop", callee, call, module.parents(host)))
        elif name == callee and not in_lambda:
            found += _plain(call, callee, enclosing, module.parents(host))
    return sorted(found, key=lambda site: (site.node.lineno, site.node.col_offset))


def _plain(call: ast.Call, callee: str, enclosing: str, up: dict[ast.AST, ast.AST]) -> list[Site]:
    around = _comprehension(call, up)
    if (enclosing == "comprehension" and around is None) or (enclosing == "call" and around is not None):
        return []
    return [_site(around if enclosing == "comprehension" and around else call, "plain", callee, call, up)]


def _comprehension(call: ast.AST, up: dict[ast.AST, ast.AST]) -> ast.expr | None:
    """The outermost comprehension of the statement around a call."""
    found = None
    while not isinstance(call, ast.stmt):
        if isinstance(call, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            found = call
        call = up[call]
    return found


def _through(call: ast.Call, name: str, callee: str, enclosing: str, up: dict[ast.AST, ast.AST]) -> list[Site]:
    """The site that a call of a helper is, if one of its arguments reaches `callee`."""
    for argument in call.args:
        if isinstance(argument, ast.Lambda):
            inner = argument.body
            listed = isinstance(inner, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
            if enclosing and listed != (enclosing == "comprehension"):
                continue
            if any(isinstance(n, ast.Call) and _ends_alike(n.func, callee) for n in ast.walk(inner)):
                return [_site(call, "through", callee, inner, up, name)]
        elif _reaches(argument, callee):
            return [_site(call, "through", callee, call, up, name)]
    return []


def _site(
    node: ast.expr, state: str, callee: str, call: ast.expr, up: dict[ast.AST, ast.AST], through: str = ""
) -> Site:
    """A site whose node includes the await around it, if there is one."""
    outer = up[node]
    awaited = isinstance(outer, ast.Await)
    whole = outer if awaited and state != "plain" and isinstance(outer, ast.Await) else node
    return Site(whole, state, callee, call, statement_of(whole, up), awaited, through)


def _reaches(argument: ast.expr, callee: str) -> bool:
    """Whether an argument is the callee itself or a functools.partial of it."""
    if isinstance(argument, ast.Call) and dotted(argument.func).rpartition(".")[2] == "partial" and argument.args:
        return dotted(argument.args[0]) == callee
    return dotted(argument) == callee


def _ends_alike(func: ast.expr, callee: str) -> bool:
    """Whether a late-resolved callee is the declared one: the receiver may be spelt out ("tokenizer.encode")."""
    name = dotted(func)
    return name == callee or name.endswith(f".{callee}")
