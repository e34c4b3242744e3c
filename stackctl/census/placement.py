"""Path conditions: a statement that now hangs under another branch is misplaced."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.delta import Census, Count, Key
from stackctl.census.survival import Judged
from stackctl.facts.statements import Fact
from stackctl.model.verdict import Verdict

_ROLES = ("else of ",)


def misplaced(census: Census, counts: dict[Key, Count]) -> Iterator[Judged]:
    """Every half that merged has, but under branches that neither side put it under.

    Allowed: a branch that a side added around it, a branch whose header was edited on the way (it
    is judged as a half itself), and the loss of a branch that a side removed.
    """
    for key, count in counts.items():
        if count.merged and max(count.ours, count.theirs) and key.kind in ("statement", "branch", "import", "definition"):
            yield from _strays(census, counts, key, count)


def _strays(census: Census, counts: dict[Key, Count], key: Key, count: Count) -> Iterator[Judged]:
    known = {fact.under for side in ("ours", "theirs") for fact in census.of(key, side)}
    strays = [fact for fact in census.of(key, "merged") if fact.under not in known]
    if not strays:
        return
    if not (owner := _owner(count)):
        return
    for fact in strays:
        if not any(_explained(counts, key, under, fact) for under in known):
            yield Judged(key, owner, 1, Verdict.MISPLACED, _evidence(census, key, owner, fact), fact)


def _owner(count: Count) -> str:
    """Whose half it is: whoever added it, else upstream, which everybody kept."""
    if count.ours > count.base:
        return "ours"
    return "theirs" if count.theirs >= count.base and count.theirs else ""


def _explained(counts: dict[Key, Count], key: Key, before: tuple[str, ...], fact: Fact) -> bool:
    """Whether the way from one chain of branches to another is made of the sides' own changes."""
    brought = [header for header in fact.under if header not in before]
    dropped = [header for header in before if header not in fact.under]
    if not all(_changed(counts, key, header, 1) for header in brought):
        return False
    # A side that turned an `else` into an `elif` moved what is below it.
    return all((header.startswith("else of ") and brought) or _changed(counts, key, header, -1) for header in dropped)


def _changed(counts: dict[Key, Count], key: Key, header: str, sign: int) -> bool:
    """Whether a side added (or removed) this branch in the host, or merged has it from no side."""
    for role in _ROLES:
        header = header.removeprefix(role)
    count = counts.get(Key(key.path, key.host, "branch", header))
    if count is None:
        return header in ("finally", "try")
    if sign > 0:
        return max(count.ours, count.theirs) > count.base or not max(count.base, count.ours, count.theirs)
    # A header that is itself missing or edited in merged is judged as a half of its own.
    return min(count.ours, count.theirs) < count.base or count.merged < max(count.ours, count.theirs)


def _evidence(census: Census, key: Key, owner: str, fact: Fact) -> str:
    sides = census.of(key, owner) or census.of(key, "base")
    was = _chain(sides[0].under) if sides else "elsewhere"
    return f"{owner} has it {was}, merged {_chain(fact.under)}"


def _chain(under: tuple[str, ...]) -> str:
    return "under " + " > ".join(f"`{header}`" for header in under) if under else "under no branch"
