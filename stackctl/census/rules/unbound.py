"""Names that nothing binds: the use stayed, the import or definition went."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.names import ModuleNames
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_KNOWN = frozenset(dir(builtins)) | {
    "__file__", "__path__", "__annotations__", "__class__", "WindowsError", "reveal_type", "__module__", "__qualname__",
}  # fmt: skip


def unbound_names(context: Context) -> Iterator[Finding]:
    """Every name in the fork's files that was bound on a side, or is new, and is bound nowhere now."""
    for path in context.own:
        names = context.merged.names(path)
        if names is None or not names.unbound:
            continue
        known = _KNOWN | _starred(context.merged, path, names)
        for use in names.unbound:
            if use.text in known or _opaque(context.merged, path, names) or not _fell(context, path, use.text):
                continue
            yield Finding(
                Verdict.UNRESOLVED, f"`{use.text}` is used, and nothing binds it any more", path, use.line, use.host,
                evidence=_evidence(context, path, use.text),
            )  # fmt: skip


def _fell(context: Context, path: str, name: str) -> bool:
    """Whether the name is bound on the sides that use it; a name that no side knows is new trouble."""
    states = []

    def bound(world: World, there: str) -> bool | None:
        names = world.names(there)
        state = None
        if names is not None and any(use.text == name for use in names.unbound):
            state = False
        elif names is not None and name in names.bound:
            state = True
        states.append(state)
        return state

    return context.fell(path, bound) or all(state is None for state in states)


def _starred(world: World, path: str, names: ModuleNames) -> set[str]:
    found: set[str] = set()
    for item in names.imports:
        if item.name == "*" and (module := world.module(item.module, path, item.level)):
            found |= world.exports(module) or set()
    return found


def _opaque(world: World, path: str, names: ModuleNames) -> bool:
    """Whether a star import brings names that cannot be known."""
    for item in names.imports:
        if item.name == "*":
            module = world.module(item.module, path, item.level)
            if not module or world.exports(module) is None:
                return True
    return False


def _evidence(context: Context, path: str, name: str) -> str:
    for world, there in context.parents(path):
        names = world.names(there)
        if names and name in names.bound:
            return f"{world.tree.label} binds it at line {names.bound[name]}"
    return "no side uses it unbound"
