"""Attributes of modules and mock targets: `module.name` where the module no longer has the name."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.names import Patch
from stackctl.facts.world import Found, World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict


def module_attributes(context: Context) -> Iterator[Finding]:
    """Reads `module.name` in the fork's files that resolved on a side."""
    for path in context.own:
        names = context.merged.names(path)
        seen: set[tuple[str, str]] = set()
        for use in names.uses if names else ():
            head, _, rest = use.text.partition(".")
            if (use.host, use.text) in seen or not rest:
                continue
            seen.add((use.host, use.text))
            missing = _missing(context.merged, path, use.text)
            if missing and _was_there(context, path, use.text):
                yield Finding(
                    Verdict.UNRESOLVED, f"`{use.text}`: {missing}", path, use.line, use.host,
                    evidence="it resolved on a side",
                )  # fmt: skip


def patch_targets(context: Context) -> Iterator[Finding]:
    """Strings and objects that tests patch: the attribute must exist where it is patched."""
    for path in context.own:
        names = context.merged.names(path)
        for patch in names.patches if names else ():
            if _target_gone(context.merged, path, patch) and _target_fell(context, path, patch):
                yield Finding(
                    Verdict.UNRESOLVED, f"patch target `{patch.target}.{patch.name}` does not exist any more",
                    path, patch.line, patch.host, evidence=f"`{patch.name}` was there on a side",
                )  # fmt: skip


def _missing(world: World, path: str, dotted: str) -> str:
    """What part of `module.name` the tree lacks; "" if nothing, or unknown."""
    parts = dotted.split(".")
    for size in range(len(parts) - 1, 0, -1):
        found = world.resolve(path, ".".join(parts[:size]))
        if found is None:
            continue
        if found.kind != "module":
            return ""
        return "" if _has(world, found, parts[size]) else f"{found.path} has no `{parts[size]}`"
    return ""


def _has(world: World, module: Found, name: str) -> bool:
    exports = world.exports(module.path)
    return exports is None or name in exports or bool(world.submodule(module.path, name)) or name.startswith("__")


def _was_there(context: Context, path: str, dotted: str) -> bool:
    def there(world: World, path: str) -> bool | None:
        names = world.names(path)
        if names is None or not any(use.text == dotted for use in names.uses):
            return None
        if world.resolve(path, dotted.rpartition(".")[0]) is None:
            return None
        return not _missing(world, path, dotted)

    return context.fell(path, there)


def _target(world: World, path: str, patch: Patch) -> Found | None:
    """The module or class whose attribute is patched."""
    if not patch.quoted:
        return world.resolve(path, patch.target)
    head, rest = patch.target, ""
    while head:
        if module := world.module(head, path):
            if not rest:
                return Found("module", module)
            return world.resolve(module, rest) if module in world.files else None
        head, _, last = head.rpartition(".")
        rest = f"{last}.{rest}".rstrip(".")
    return None


def _target_fell(context: Context, path: str, patch: Patch) -> bool:
    def there(world: World, path: str) -> bool | None:
        names = world.names(path)
        if names is None or not any(other[1:4] == patch[1:4] for other in names.patches):
            return None
        if (found := _target(world, path, patch)) is not None:
            return _holds(world, found, patch.name)
        return False if patch.quoted and world.has_top(patch.target, path) else None

    return context.fell(path, there)


def _target_gone(world: World, path: str, patch: Patch) -> bool:
    found = _target(world, path, patch)
    if found is None:
        return patch.quoted and world.has_top(patch.target, path)
    return _holds(world, found, patch.name) is False


def _holds(world: World, found: Found, name: str) -> bool | None:
    """Whether a module or class has an attribute; None if that cannot be known."""
    if found.kind == "module":
        return _has(world, found, name)
    if found.kind != "class":
        return None
    order, complete = world.lineage(found.path, found.name)
    for path, owner in order:
        if name in world.attributes(path, owner):
            return True
    return False if complete and not name.startswith("__") else None
