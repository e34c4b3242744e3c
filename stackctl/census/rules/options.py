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
    differing = context.sides.differing
    for path in context.holding("ours", [b"add_argument"]):
        if path in differing and differing[path][1] != differing[path][3]:
            removed |= dict.fromkeys(_defined(context.ours, path), path)
    for path in context.holding("merged", [b"add_argument"]) if removed else ():
        if path in differing and differing[path][1] != differing[path][3]:
            brought |= _defined(context.merged, path)
    return {option: path for option, path in removed.items() if option not in brought}


def _defined(world: World, path: str) -> set[str]:
    """The options a file defines."""
    names = world.names(path)
    return {option for option in names.defined_options if option.startswith("--")} if names else set()
