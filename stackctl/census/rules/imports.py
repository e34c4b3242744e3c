"""Imports that resolved on a side and do not in the merged tree, function-local ones included."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.names import Import, ModuleNames
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict


def unresolved_imports(context: Context) -> Iterator[Finding]:
    """Every import in the fork's files whose module or name is gone."""
    for path in [*context.own, *_readers_of_removed(context)]:
        names = context.merged.names(path)
        for item in names.imports if names else ():
            if item.name != "*" and (reason := _broken(context, path, item)):
                yield _finding(path, item, reason)


def _broken(context: Context, path: str, item: Import) -> str:
    """Why an import is a finding: it fails here, and a merge of both sides should have it."""
    if not item.level and item.module.partition(".")[0] not in context.parts:
        return ""  # from outside: most imports are
    state = context.merged.state(item, path)
    if state == "ok":
        return ""

    def resolves(world: World, there: str) -> bool | None:
        state = world.state(item, there)
        if state == "outside" or ((names := world.names(there)) is not None and not _has(names, item)):
            return None
        return state == "ok"

    if not context.fell(path, resolves):
        return ""
    return f"merged has no {item.name} in {item.module}" if state == "no name" else f"merged has no module {item.module}"


def _has(names: ModuleNames, item: Import) -> bool:
    return any(i.module == item.module and i.name == item.name and i.level == item.level for i in names.imports)


def _readers_of_removed(context: Context) -> list[str]:
    """Upstream's own files that import something merged no longer has although upstream does."""
    words = set()
    for path, blobs in context.sides.differing.items():
        if not path.endswith(".py") or not blobs[2] or blobs[3] == blobs[2]:
            continue
        if not blobs[3]:
            words.add(path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2].encode())
            continue
        had, has = context.theirs.exports(path), context.merged.exports(path)
        if had is not None and has is not None:
            words |= {name.encode() for name in had - has}
    return context.others_holding(words)


def _finding(path: str, item: Import, reason: str) -> Finding:
    words = f"from {'.' * item.level}{item.module} import {item.name}" if item.name else f"import {item.module}"
    guard = "; its `except ImportError` hides the failure" if item.guarded else ""
    return Finding(
        Verdict.UNRESOLVED, f"`{words}` no longer resolves{guard}", path, item.line, item.host, evidence=reason
    )
