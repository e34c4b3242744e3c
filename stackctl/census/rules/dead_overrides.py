"""Overrides whose host is gone: upstream removed the method, nothing calls the override any more."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict


def dead_overrides(context: Context) -> Iterator[Finding]:
    """Methods of the fork that overrode an inherited one on ours and override nothing in merged."""
    for path in context.own:
        names = context.merged.names(path)
        for name in names.classes if names else ():
            for method, kind in names.classes[name].members.items():
                if kind == "method" and not method.startswith("__") and (above := _lost_above(context, path, name, method)):
                    yield Finding(
                        Verdict.HOST_GONE, f"`{method}` overrides nothing any more: {above} no longer has it",
                        path, names.functions[f"{name}.{method}"].line, f"{name}.{method}",
                        evidence=f"in ours {above} has `{method}`",
                    )  # fmt: skip


def _lost_above(context: Context, path: str, name: str, method: str) -> str:
    """The class that had the overridden method in ours, if no ancestor has it in merged and nothing calls it."""
    there = next((p for world, p in context.parents(path) if world is context.ours), "")
    if not there or not (was := _above(context.ours, there, name, method)):
        return ""
    order, complete = context.merged.lineage(path, name)
    if len(order) < 2 or not complete or _above(context.merged, path, name, method):
        return ""
    theirs = context.theirs
    if (name in (theirs.names(path).classes if theirs.names(path) else ())) and theirs.function_of(path, f"{name}.{method}"):
        return ""  # upstream keeps this method itself
    return "" if _called(context.merged, order, method) else was


def _above(world: World, path: str, name: str, method: str) -> str:
    order, _ = world.lineage(path, name)
    for up in order[1:]:
        if world.function_of(up[0], f"{up[1]}.{method}"):
            return f"{up[0]}:{up[1]}"
    return ""


def _called(world: World, order: list[tuple[str, str]], method: str) -> bool:
    """Whether a class of the instance still calls the method through self."""
    for path, _ in order:
        names = world.names(path)
        if names and any(use.text.partition(".")[0] == method for use in names.self_reads):
            return True
    return False
