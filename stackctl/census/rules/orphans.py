"""What a lost use leaves behind: a flag, import, helper or file of ours that nothing uses any more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from stackctl.census.rules.context import Context
from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict


def orphans(context: Context) -> Iterator[Finding]:
    """Names and files that ours added and used, that merged has, and that nothing in merged names."""
    for path, (base, ours, _, merged) in context.sides.differing.items():
        if not path.endswith(".py") or not merged or not ours or ours == base:
            continue
        if not base and _is_unused_file(context, path):
            yield _finding(path, 0, "", "this file is still there, and nothing imports it any more")
        elif merged != ours:
            yield from _names(context, path)


def _names(context: Context, path: str) -> Iterator[Finding]:
    """Module-level names of ours that occur once in merged, where they are bound."""
    has, had = context.merged.names(path), context.ours.names(path)
    if has is None or had is None:
        return
    known = context.base.names(path)
    base, ours, merged = (_text(context, side, path) for side in ("base", "ours", "merged"))
    for name in sorted((has.bound.keys() & had.bound.keys()) - (known.bound.keys() if known else set())):
        word = re.compile(rf"\b{name}\b")
        if word.search(base) or len(word.findall(merged)) != 1 or len(word.findall(ours)) < 2:
            continue
        if not _named_elsewhere(context, path, name):
            yield _finding(path, has.bound[name], "", f"`{name}` is still bound here, and nothing uses it any more")


def _text(context: Context, side: str, path: str) -> str:
    source = context.sides.source(side, path)
    return source.text if source else ""


def _named_elsewhere(context: Context, path: str, name: str) -> bool:
    return any(other != path for other in context.holding("merged", [name.encode()]))


def _is_unused_file(context: Context, path: str) -> bool:
    """Whether files of ours name the module of a new file, and none in merged does."""
    stem = PurePosixPath(path).stem
    if stem.startswith(("__", "test_")) or len(stem) <= len("util"):
        return False
    used = any(other != path for other in context.holding("ours", [stem.encode()]))
    return used and not _named_elsewhere(context, path, stem)


def _finding(path: str, line: int, symbol: str, message: str) -> Finding:
    return Finding(
        Verdict.LOST, message, path, line, symbol, evidence="ours added it together with its use",
        action="review", level=Level.WARNING,
    )  # fmt: skip
