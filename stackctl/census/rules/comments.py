"""Comments of the fork, and those around its edits, that the merge dropped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.comments import FORMAT, host_ranges, read_comments
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_SHOWN = 80


def lost_comments(context: Context) -> Iterator[Finding]:
    """Comments that ours has, that upstream did not remove, and that merged lacks."""
    for path, (base, ours, theirs, merged) in context.sides.differing.items():
        if not path.endswith(".py") or not merged or not ours or ours == base or merged == ours:
            continue
        if not _may_have_lost(context, path):
            continue
        if any(context.sides.problem(side, path) for side in ("base", "ours", "theirs", "merged")):
            continue
        has = {side: _comments(context, side, path) for side in ("base", "ours", "theirs", "merged")}
        texts = {side: Counter(fact.text for fact in facts) for side, facts in has.items()}
        removed = texts["base"] - texts["theirs"] if theirs else texts["base"]
        lost = texts["ours"] - texts["merged"] - removed
        gone: dict[str, list[Fact]] = defaultdict(list)
        for fact in has["ours"]:
            if lost[fact.text] > 0 and _host_stands(context, path, fact.host) and not _goes_along(context, path, fact):
                lost[fact.text] -= 1
                gone[fact.host].append(fact)
        for host, facts in gone.items():
            shown = facts[0].text if len(facts[0].text) <= _SHOWN else f"{facts[0].text[:_SHOWN]}..."
            more = f" and {len(facts) - 1} more lines" if len(facts) > 1 else ""
            yield Finding(
                Verdict.COMMENT_LOST, f"the comment `# {shown}`{more} is gone", path, _line(context, path, host), host,
                evidence=f"ours has it at line {facts[0].line}, upstream did not remove it",
            )  # fmt: skip


def _may_have_lost(context: Context, path: str) -> bool:
    """Whether a line with a `#` of ours is not in merged as it was: a cheap first look."""
    kept = context.sides.lines("merged", path)
    return any(b"#" in line and kept[line] < number for line, number in context.sides.lines("ours", path).items())


def _comments(context: Context, side: str, path: str) -> list[Fact]:
    sides, blob = context.sides, context.sides.blob(side, path)
    stored = sides.cache.get(f"comments.{FORMAT}", blob)
    if stored is None:
        source = sides.source(side, path)
        found = read_comments(source, host_ranges(sides.facts(side, path))) if source else []
        stored = [tuple(fact) for fact in found]
        sides.cache.put(f"comments.{FORMAT}", blob, stored)
    return [Fact._make(row) for row in stored]


def _goes_along(context: Context, path: str, comment: Fact) -> bool:
    """Whether the half right below a comment was lost, adopted or rewritten: then that is the finding."""
    below = min((f.line for f in context.sides.facts("ours", path) if f.line >= comment.line), default=0)
    return (path, below) in context.unsettled


def _line(context: Context, path: str, host: str) -> int:
    """The line in merged of the definition a comment belonged to."""
    return next((first for first, _, name in host_ranges(context.sides.facts("merged", path)) if name == host), 0)


def _host_stands(context: Context, path: str, host: str) -> bool:
    """Whether the definition around a comment is still there: with its host it is not a loss of its own."""
    if not host:
        return True
    return any(name == host for _, _, name in host_ranges(context.sides.facts("merged", path)))
