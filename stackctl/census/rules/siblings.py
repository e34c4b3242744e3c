"""A new twin of sites that the fork patched everywhere they stood."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.census.sides import Sides
from stackctl.facts.search import holding
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_KINDS = ("import", "decorator")


def new_siblings(context: Context) -> Iterator[Finding]:
    """Imports and decorators that ours changed at every site, which theirs brings at a new one."""
    patched = _patched_everywhere(context.sides)
    if not patched:
        return
    for path, (base, _, theirs, merged) in context.sides.differing.items():
        if not path.endswith(".py") or not theirs or theirs == base or not merged or context.sides.problem("merged", path):
            continue
        before = _bare(context.sides.facts("base", path))
        for fact in context.sides.facts("merged", path):
            key = _key(fact)
            if key in patched and not before[key] and not _guarded(fact):
                yield Finding(
                    Verdict.SIBLING, f"upstream added another `{fact.text}`, which the fork changed wherever it stood",
                    path, fact.line, fact.host, evidence=f"patched in {', '.join(sorted(patched[key])[:3])}",
                )  # fmt: skip


def _patched_everywhere(sides: Sides) -> dict[tuple[str, str], set[str]]:
    """What ours removed or guarded at each place it touched, with the places; none may be left in its files."""
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
    words = {key: key[1].rpartition(" ")[2].encode() for key in gone if not left[key]}
    return {key: gone[key] for key, word in words.items() if not _stands_unpatched(sides, key, word, gone[key])}


def _stands_unpatched(sides: Sides, key: tuple[str, str], word: bytes, patched: set[str]) -> bool:
    """Whether ours left the same thing alone in a file it did not touch: then it was no policy."""
    others = (path for path in holding(sides.ours, [word]) if path not in patched)
    return any(_bare(sides.facts("ours", path))[key] for path in others)


def _bare(facts: list[Fact]) -> Counter[tuple[str, str]]:
    """Imports outside any guard, and decorators that take arguments."""
    return Counter(key for fact in facts if (key := _key(fact)) and not _guarded(fact))


def _key(fact: Fact) -> tuple[str, str] | None:
    if fact.kind not in _KINDS or (fact.kind == "decorator" and "(" not in fact.text):
        return None
    return fact.kind, fact.text


def _guarded(fact: Fact) -> bool:
    return any(header == "try" or header.startswith("except") for header in fact.under)
