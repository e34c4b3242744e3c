"""A new twin of sites that the fork patched everywhere they stood."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_KINDS = ("import", "decorator")


def new_siblings(context: Context) -> Iterator[Finding]:
    """Imports and decorators that ours changed at every site, which theirs brings at a new one."""
    patched = _patched_everywhere(context)
    if not patched:
        return
    for path in context.holding("merged", {_word(key) for key in patched}):
        base, _, theirs, _ = context.sides.differing.get(path, ("",) * 4)
        if not theirs or theirs == base or context.sides.problem("merged", path):
            continue
        before = _bare(context.sides.facts("base", path))
        for fact in context.sides.facts("merged", path):
            key = _key(fact)
            if key in patched and not before[key] and not _guarded(fact):
                yield Finding(
                    Verdict.SIBLING, f"upstream added another `{fact.text}`, which the fork changed wherever it stood",
                    path, fact.line, fact.host, evidence=f"patched in {', '.join(sorted(patched[key])[:3])}",
                )  # fmt: skip


def _patched_everywhere(context: Context) -> dict[tuple[str, str], set[str]]:
    """What ours removed or guarded at each place it touched, with the places; none may be left in its files."""
    sides = context.sides
    gone: dict[tuple[str, str], set[str]] = defaultdict(set)
    left: Counter[tuple[str, str]] = Counter()
    for path, (base, ours, _, _) in sides.differing.items():
        if path.endswith(".py") and base and ours and base != ours:
            before, after = _bare(sides.facts("base", path)), _bare(sides.facts("ours", path))
            names = {fact.text.rpartition(" ")[2] for fact in sides.facts("ours", path) if fact.kind == "import"}
            for key in before - after:
                if key[0] == "decorator" or key[1].rpartition(" ")[2] in names:
                    gone[key].add(path)
            left += after
    policy = {key for key in gone if not left[key]}
    for path in context.holding("ours", {_word(key) for key in policy}):
        if policy and not any(path in places for places in gone.values()):
            policy -= set(_bare(sides.facts("ours", path)))  # left alone elsewhere: it was no policy
    return {key: gone[key] for key in policy}


def _word(key: tuple[str, str]) -> bytes:
    """A piece of text that every file with this import or decorator holds."""
    return key[1].rpartition(" ")[2].encode() if key[0] == "import" else key[1].lstrip("@").partition("(")[0].encode()


def _bare(facts: list[Fact]) -> Counter[tuple[str, str]]:
    """Imports outside any guard, and decorators that take arguments."""
    return Counter(key for fact in facts if (key := _key(fact)) and not _guarded(fact))


def _key(fact: Fact) -> tuple[str, str] | None:
    if fact.kind not in _KINDS or (fact.kind == "decorator" and "(" not in fact.text):
        return None
    return fact.kind, fact.text


def _guarded(fact: Fact) -> bool:
    return any(header == "try" or header.startswith("except") for header in fact.under)
