"""Calls and overrides that no longer fit the signature they meet."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.names import Call, Function, ModuleNames
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict


def misfit(function: Function, call: Call, bound: bool) -> str:
    """Why a call does not fit a function ("" if it does); `bound` when the first parameter is given already."""
    given = [p for p in function.parameters if p.kind in ("positional", "either")]
    given = given[1:] if bound else given
    kinds = {p.kind for p in function.parameters}
    names = {p.name for p in function.parameters if p.kind in ("either", "keyword")}
    if unknown := [word for word in call.keywords if word not in names and "**" not in kinds]:
        return f"no parameter `{unknown[0]}`"
    if call.open:
        return ""
    if call.positional > len(given) and "*" not in kinds:
        return f"takes {len(given)} positional arguments, {call.positional} are given"
    filled = {p.name for p in given[: call.positional]} | set(call.keywords)
    needed = [p for p in given[call.positional :] if p.required]
    needed += [p for p in function.parameters if p.kind == "keyword" and p.required]
    missing = [p.name for p in needed if p.name not in filled]
    return f"`{missing[0]}` is not given" if missing else ""


def calls(context: Context) -> Iterator[Finding]:
    """Calls in the fork's files, and upstream's calls of what the fork changed."""
    for path in [*context.own, *_callers_of_changed(context)]:
        names = context.merged.names(path)
        for call in names.calls if names else ():
            reason = _call_misfit(context.merged, path, names, call)
            if reason and _fitted_before(context, path, call):
                yield Finding(
                    Verdict.SIGNATURE, f"`{call.callee}(...)` no longer fits its callee: {reason}",
                    path, call.line, call.host, evidence="it fitted on the side it came from",
                )  # fmt: skip


def _callee(world: World, path: str, names: ModuleNames, call: Call) -> tuple[Function, bool] | None:
    """The function a call reaches, and whether its first parameter is bound; None if unknown."""
    if call.local:
        return None
    owner = _owner(names, call.host)
    if call.callee.startswith("super().") and owner:
        order, _ = world.lineage(path, owner)
        name = call.callee.removeprefix("super().")
        for up in order[1:]:
            if found := world.function_of(up[0], f"{up[1]}.{name}"):
                return found, True
        return None
    if call.callee.startswith("self.") and owner:
        found = world.method(path, owner, call.callee.removeprefix("self."))
        return _bound(found[1]) if found and found[1] else None
    return _named(world, path, call.callee)


def _named(world: World, path: str, callee: str) -> tuple[Function, bool] | None:
    target = world.resolve(path, callee)
    if target is None:
        return None
    if target.kind == "class":
        return _constructor(world, target.path, target.name)
    function = world.function_of(target.path, target.name)
    if function is None or not _plain(function):
        return None
    return function, target.kind == "method" and "classmethod" in function.decorators


def _constructor(world: World, path: str, name: str) -> tuple[Function, bool] | None:
    order, complete = world.lineage(path, name)
    if not complete or any(_made_for(world, owner) for owner in order):
        return None
    found = world.method(path, name, "__init__")
    return (found[1], True) if found and found[1] and _plain(found[1]) else None


def _made_for(world: World, owner: tuple[str, str]) -> bool:
    """Whether a decorator or `__new__` decides how the class is called."""
    found = world.class_of(*owner)
    members = found.members if found else {}
    return bool(found and found.decorators) or "__new__" in members


def _plain(function: Function) -> bool:
    """Whether the decorators leave the signature alone, as far as anyone can tell."""
    return not set(function.decorators) - {"staticmethod", "classmethod", "abstractmethod", "abc.abstractmethod"}


def _bound(function: Function) -> tuple[Function, bool] | None:
    return (function, "staticmethod" not in function.decorators) if _plain(function) else None


def _owner(names: ModuleNames, host: str) -> str:
    """The class around a method."""
    while host:
        if host in names.classes:
            return host
        host = host.rpartition(".")[0]
    return ""


def _call_misfit(world: World, path: str, names: ModuleNames, call: Call) -> str:
    found = _callee(world, path, names, call)
    return misfit(found[0], call, found[1]) if found else ""


def _fitted_before(context: Context, path: str, call: Call) -> bool:
    """Whether the same call fitted where it came from; a call that no side has is new trouble."""

    def fits(world: World, there: str) -> bool | None:
        names, state = world.names(there), None
        for other in names.calls if names else ():
            if other[1:5] == call[1:5] and other.host.rpartition(".")[2] == call.host.rpartition(".")[2]:
                state = not _call_misfit(world, there, names, other)
        return state

    having = [fits(world, there) for world, there in context.parents(path)]
    return context.fell(path, fits) or all(state is None for state in having)


def _callers_of_changed(context: Context) -> list[str]:
    """Upstream's own files that name a function whose signature merged has otherwise than upstream."""
    words = set()
    for path in context.own:
        here, there = context.merged.names(path), context.theirs.names(path)
        if here is None or there is None:
            continue
        for name, function in there.functions.items():
            now = here.functions.get(name)
            if now is not None and _narrower(function, now):
                short = name.rpartition(".")[2]
                words.add((name.rpartition(".")[0].rpartition(".")[2] if short == "__init__" else short).encode())
    return context.others_holding(words)


def _narrower(before: Function, after: Function) -> bool:
    """Whether a call that fitted before may fail now: something can be given no more, or must be given."""
    names, kinds = {p.name for p in after.parameters}, {p.kind for p in after.parameters}
    gone = [p for p in before.parameters if p.name not in names and "**" not in kinds]
    optional = {p.name for p in before.parameters if p.required}
    needed = [p for p in after.parameters if p.required and p.name not in optional]
    order = [p.name for p in before.parameters if p.kind in ("positional", "either")]
    now = [p.name for p in after.parameters if p.kind in ("positional", "either")]
    return bool(gone or needed or now[: len(order)] != order)


def overrides(context: Context) -> Iterator[Finding]:
    """Overrides in the fork's files that callers of the inherited method can no longer call."""
    for path in context.own:
        names = context.merged.names(path)
        for name in names.classes if names else ():
            yield from _overrides(context, path, name)


def _overrides(context: Context, path: str, name: str) -> Iterator[Finding]:
    order, _ = context.merged.lineage(path, name)
    names = context.merged.names(path)
    for method, kind in names.classes[name].members.items() if names else ():
        own = names.functions.get(f"{name}.{method}") if kind == "method" else None
        if own is None or not _plain(own):
            continue
        for call, where in _calls_through_self(context.merged, order[1:], method):
            reason = misfit(own, call, "staticmethod" not in own.decorators)
            if reason and not _misfitted_before(context, path, name, method, call):
                yield Finding(
                    Verdict.SIGNATURE, f"override `{method}` does not fit how {where} calls it: {reason}",
                    path, own.line, f"{name}.{method}", evidence=f"{where} line {call.line}",
                )  # fmt: skip
                break


def _calls_through_self(world: World, order: list[tuple[str, str]], method: str) -> Iterator[tuple[Call, str]]:
    for owner_path, owner in order:
        names = world.names(owner_path)
        for call in names.calls if names else ():
            if call.callee == f"self.{method}" and call.host.startswith(f"{owner}."):
                yield call, f"{owner_path}:{call.host}"


def _misfitted_before(context: Context, path: str, name: str, method: str, call: Call) -> bool:
    """Whether the override failed the same call on a side already."""
    for world, there in context.parents(path):
        own = world.function_of(there, f"{name}.{method}")
        order, _ = world.lineage(there, name)
        for other, _where in _calls_through_self(world, order[1:], method):
            if own and other[2:5] == call[2:5] and misfit(own, other, "staticmethod" not in own.decorators):
                return True
    return False
