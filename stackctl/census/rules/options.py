"""Option strings that upstream renamed or removed and the fork still passes."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict


def stale_options(context: Context) -> Iterator[Finding]:
    """Uses of `--option` in the fork's files whose definition went with upstream's change."""
    gone = _gone(context)
    if not gone:
        return
    for path in context.own:
        names = context.merged.names(path)
        upstream = context.theirs.names(path)
        known = {use.text for use in upstream.options} if upstream else set()
        for use in names.options if names else ():
            if use.text in gone and use.text not in known:
                yield Finding(
                    Verdict.STALE_NAME, f"the option `{use.text}` is not defined any more",
                    path, use.line, use.host, evidence=f"defined in ours in {gone[use.text]}",
                )  # fmt: skip


def _gone(context: Context) -> dict[str, str]:
    """Options that a file of ours defines and nothing in merged does, with the file."""
    removed: dict[str, str] = {}
    brought: set[str] = set()
    for path in context.apart:
        removed |= dict.fromkeys(_defined(context.ours, path), path)
        brought |= _defined(context.merged, path)
    for path, blobs in context.sides.differing.items():
        if not blobs[3] and path.endswith(".py"):
            removed |= dict.fromkeys(_defined(context.ours, path), path)
    return {option: path for option, path in removed.items() if option not in brought}


def _defined(world: World, path: str) -> set[str]:
    """The options a file defines; read only where its bytes say that it defines any."""
    if path not in world.tree or b"add_argument" not in world.tree.read(path):
        return set()
    names = world.names(path)
    return {option for option in names.defined_options if option.startswith("--")} if names else set()
