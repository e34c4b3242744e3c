"""Attributes read through `self` that no class of the instance sets any more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.search import read_many
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_WORD = re.compile(rb"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")
_LAST = re.compile(rb"\w*\Z")
_SHORT = 3
_LONGEST = 64  # bytes of a name


def self_attributes(context: Context) -> Iterator[Finding]:
    """Reads of `self.x` in the fork's classes, and in what they inherit, with `x` set nowhere."""
    for path in context.own:
        names = context.merged.names(path)
        for name in names.classes if names else ():
            yield from _class(context, path, name)


def _class(context: Context, path: str, name: str) -> Iterator[Finding]:
    order, complete = context.merged.lineage(path, name)
    if not complete:
        return
    available = _available(context.merged, order)
    for owner, method, attribute, line in _reads(context.merged, order):
        if attribute in available or attribute.startswith("__"):
            continue
        if _was_whole(context, path, name, owner, attribute) and not _set_from_outside(context, name, attribute):
            where = owner == (path, name)
            symbol = f"{name}.{method}" if where else name
            via = "" if where else f" (read in {owner[1]}.{method}, which it inherits)"
            yield Finding(
                Verdict.UNRESOLVED, f"`self.{attribute}` is read, and no class of {name} sets it{via}",
                path, line if where else names_line(context.merged, path, name), symbol,
                evidence=f"{owner[0]}:{line}",
            )  # fmt: skip


def names_line(world: World, path: str, name: str) -> int:
    """The line of a class."""
    found = world.class_of(path, name)
    return found.line if found else 0


def _reads(world: World, order: list[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], str, str, int]]:
    """(class, method, attribute, line) of each first read through self in methods that are not overridden."""
    seen: set[str] = set()
    taken: set[str] = set()
    for owner in order:
        names = world.names(owner[0])
        mine: set[str] = set()
        for use in names.self_reads if names else ():
            if not use.host.startswith(f"{owner[1]}."):
                continue
            method = use.host.removeprefix(f"{owner[1]}.").partition(".")[0]
            attribute = use.text.partition(".")[0]
            mine.add(method)
            if attribute not in seen and method not in taken:
                seen.add(attribute)
                yield owner, method, attribute, use.line
        taken |= mine | {m for m in world.attributes(*owner) if "" in world.attributes(*owner)[m]}


def _available(world: World, order: list[tuple[str, str]]) -> set[str]:
    """What an instance has: all members, and what its methods set, except in a constructor never reached."""
    found: set[str] = set()
    reached = True
    for owner in order:
        for attribute, methods in world.attributes(*owner).items():
            if methods != {"__init__"} or reached:
                found.add(attribute)
        reached = reached and _passes_on(world, owner)
    return found


def _passes_on(world: World, owner: tuple[str, str]) -> bool:
    """Whether constructing this class runs the constructors above it."""
    names = world.names(owner[0])
    if names is None or f"{owner[1]}.__init__" not in names.functions:
        return True
    host = f"{owner[1]}.__init__"
    return any(
        call.host == host and (call.callee == "super().__init__" or call.callee.endswith(".__init__"))
        for call in names.calls
    )


def _was_whole(context: Context, path: str, name: str, owner: tuple[str, str], attribute: str) -> bool:
    """Whether the read resolved where it came from: on the class itself, or on the class that reads."""

    def whole(world: World, there: str) -> bool | None:
        return _resolves(world, (there, name), attribute)

    if any(whole(world, there) is not None for world, there in context.parents(path)):
        return context.fell(path, whole)
    return any(_resolves(world, owner, attribute) for world in (context.theirs, context.ours))


def _resolves(world: World, owner: tuple[str, str], attribute: str) -> bool | None:
    """Whether a class reads an attribute and has it; None if it does not read it."""
    order, complete = world.lineage(*owner)
    if not order or not _reads_it(world, order, attribute):
        return None
    return complete and attribute in _available(world, order)


def _reads_it(world: World, order: list[tuple[str, str]], attribute: str) -> bool:
    return any(found == attribute for _, _, found, _ in _reads(world, order))


def _set_from_outside(context: Context, name: str, attribute: str) -> bool:
    """Whether another file of merged assigns the attribute on something named like an instance of the class."""
    own = set(_WORD.findall(name.encode()))
    alike = {word.lower() for word in own if len(word) > _SHORT}
    others = set(context.apart) - set(context.own)
    near = [path for path in context.holding("merged", [attribute.encode()]) if path in others]
    return any(
        alike & set(instance.lower().split(b"_"))
        for _, data in read_many(context.sides.merged, near)
        for instance in _assigned(data, re.escape(attribute.encode()))
    )


def _assigned(data: bytes, attribute: bytes) -> Iterator[bytes]:
    """The last names of what has the attribute assigned. Each pattern begins with a text: that alone is quick."""
    for found in re.finditer(rb"\.%b\s*=[^=]" % attribute, data):
        yield _LAST.search(data, max(0, found.start() - _LONGEST), found.start())[0]
    for found in re.finditer(rb"setattr\(\s*(?:\w+\.)*(\w+),\s*[\"']%b[\"']" % attribute, data):
        yield found[1]
