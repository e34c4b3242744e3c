"""Files that cannot be parsed: judged by their lines, and said so."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict


def unparsable_files(context: Context) -> Iterator[Finding]:
    """Python files of merged that do not parse: an error if a parent's version does."""
    for path, blobs in context.sides.differing.items():
        if not path.endswith(".py") or not blobs[3] or (blobs[3] == blobs[2] and blobs[1] == blobs[0]):
            continue
        problem = context.sides.problem("merged", path)
        if problem is None:
            continue
        parents = [side for side, blob in zip(("ours", "theirs"), blobs[1:3], strict=True) if blob]
        broken_before = bool(parents) and all(context.sides.problem(side, path) for side in parents)
        if blobs[3] in (blobs[1], blobs[2]) or broken_before:
            level, evidence = Level.WARNING, "its parent does not parse either; judged by its lines"
        else:
            level, evidence = Level.ERROR, "a parent's version parses; judged by its lines"
        yield Finding(Verdict.UNPARSABLE, f"{problem[0]}", path, problem[1], evidence=evidence, level=level)
