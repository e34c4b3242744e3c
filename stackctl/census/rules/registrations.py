"""One key claimed twice: upstream adopted a half of ours in another place, and both register."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.names import Call, ModuleNames
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

# Asking for a thing by name is not claiming the name.
_HARMLESS = frozenset({"getLogger", "get", "getenv", "import_module", "print", "warn", "filterwarnings", "setdefault"})


def double_registrations(context: Context) -> Iterator[Finding]:
    """Module-level calls of one function with one text, added by ours and by upstream in two files."""
    ours = _claims(context, context.own, context.ours)
    if not ours:
        return
    theirs = _claims(context, _added_by_theirs(context, {key.encode() for _, key in ours}), context.theirs)
    for (callee, key), places in ours.items():
        for path, call in places:
            others = [(p, c) for p, c in theirs.get((callee, key), []) if p != path]
            if others and (path, call.line) not in {(p, c.line) for p, c in others}:
                other, claim = others[0]
                yield Finding(
                    Verdict.DUPLICATED, f"`{callee}({key!r}, ...)` is claimed here and in {other}:{claim.line}",
                    path, call.line, call.host, evidence="ours added this one, upstream the other", action="review",
                )  # fmt: skip


def _claims(context: Context, paths: list[str], side: World) -> dict[tuple[str, str], list[tuple[str, Call]]]:
    """(callee, key) to the places in merged that one side added over base."""
    found: dict[tuple[str, str], list[tuple[str, Call]]] = defaultdict(list)
    for path in paths:
        names = context.merged.names(path)
        had, has = _keys(context.base.names(path)), _keys(side.names(path))
        for call in names.calls if names else ():
            claim = _claim(call)
            if claim and claim in has and claim not in had:
                found[claim].append((path, call))
    return found


def _keys(names: ModuleNames | None) -> set[tuple[str, str]]:
    return {claim for call in names.calls if (claim := _claim(call))} if names else set()


def _claim(call: Call) -> tuple[str, str] | None:
    """What a registering call claims: a statement of its own at module level whose first argument is a text."""
    last = call.callee.rpartition(".")[2]
    if not call.bare or call.host or not call.key or last in _HARMLESS:
        return None
    return last, call.key


def _added_by_theirs(context: Context, keys: set[bytes]) -> list[str]:
    paths = []
    for path, blobs in context.sides.differing.items():
        if path.endswith(".py") and blobs[2] and blobs[2] != blobs[0] and blobs[3]:
            data = context.sides.read("merged", path)
            if any(key in data for key in keys):
                paths.append(path)
    return paths
