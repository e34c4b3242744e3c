"""Fakes that fall behind: the code under test now reads an attribute that the stand-in lacks."""

from __future__ import annotations

from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.fakes import FORMAT, HINTS, Given, pack_fakes, read_fakes, unpack_fakes
from stackctl.facts.names import ModuleNames
from stackctl.facts.world import World
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict
from stackctl.trees.source import Source, SourceError

_DEPTH = 3


def stale_stubs(context: Context) -> Iterator[Finding]:
    """Fakes in the fork's files, and upstream's fakes of what the fork changed."""
    for path in [*context.own, *_testers_of_changed(context)]:
        if given := _fakes(context, path):
            yield from _file(context, path, given)


def _fakes(context: Context, path: str) -> list[Given]:
    """The fakes of one file of merged, remembered by blob."""
    blob, cache = context.sides.merged.blob(path), context.sides.cache
    stored = cache.get(f"fakes.{FORMAT}", blob)
    if stored is None:
        stored = pack_fakes(_read(context.sides.read("merged", path)))
        cache.put(f"fakes.{FORMAT}", blob, stored)
    return unpack_fakes(stored)


def _read(data: bytes) -> list[Given]:
    if not any(hint in data for hint in HINTS):
        return []
    try:
        return read_fakes(Source.decode(data))
    except (SourceError, RecursionError):
        return []


def _file(context: Context, path: str, given: list[Given]) -> Iterator[Finding]:
    told: set[tuple[str, str]] = set()
    for item in given:
        lacking = _lacking(context.merged, path, item)
        if not lacking:
            continue
        sides = list(context.parents(path)) or [(context.ours, path)]
        before = set().union(*(_lacking(world, there, item) for world, there in sides))
        for name in sorted(lacking - before):
            if (item.host, name) not in told:
                told.add((item.host, name))
                yield Finding(
                    Verdict.STALE_STUB, f"the stand-in given to `{item.callee.removesuffix('()')}` has no `{name}`, which is read now",
                    path, item.fake.line, item.host, evidence=f"given at line {item.line}",
                )  # fmt: skip


def _lacking(world: World, path: str, item: Given) -> set[str]:
    """The attribute paths that the code under test reads and the fake has not."""
    found = _under_test(world, path, item)
    if found is None:
        return set()
    file, function, parameter = found
    members: set[str] = set()
    if item.fake.made_of and (made := world.resolve(path, item.fake.made_of)):
        order, complete = world.lineage(made.path, made.name)
        if not complete:
            return set()
        members = {name for owner in order for name, methods in world.attributes(*owner).items() if "" in methods}
    reads = _reads(world, file, function, parameter, bool(item.fake.made_of), _DEPTH)
    return {gap for read in reads if read.partition(".")[0] not in members and (gap := item.fake.missing(read))}


def _under_test(world: World, path: str, item: Given) -> tuple[str, str, str] | None:
    """(file, function, parameter) that the fake arrives in."""
    bound = item.callee.endswith("()")
    target = world.resolve(path, item.callee.removesuffix("()"))
    if target is None or target.kind not in ("class", "function", "method"):
        return None
    file, name, offset = target.path, target.name, 1 if bound and item.slot != "self" else 0
    if target.kind == "class":
        found = world.method(target.path, target.name, "__init__")
        if found is None:
            return None
        file, name, offset = found[0][0], f"{found[0][1]}.__init__", 1
    function = world.function_of(file, name)
    if function is None:
        return None
    if "classmethod" in function.decorators and not bound:
        offset = 1
    if isinstance(item.slot, int):
        given = [p.name for p in function.parameters if p.kind in ("positional", "either")]
        index = item.slot + offset
        return (file, name, given[index]) if index < len(given) else None
    parameter = function.parameters[0].name if item.slot == "self" and function.parameters else item.slot
    return file, name, str(parameter)


def _reads(world: World, file: str, function: str, parameter: str, follow: bool, depth: int) -> set[str]:
    """What a function reads from a parameter; for a real instance, also in the methods it goes on to."""
    names = world.names(file)
    found = set(names.reads.get(function, {}).get(parameter, [])) if names else set()
    owner = function.rpartition(".")[0]
    if names is None or owner not in names.classes or not follow or not depth:
        return found
    for name in {read.partition(".")[0] for read in found}:
        inner = names.functions.get(f"{owner}.{name}")
        if inner and inner.parameters and f"{owner}.{name}" != function:
            found |= _reads(world, file, f"{owner}.{name}", inner.parameters[0].name, True, depth - 1)
    return found


def _testers_of_changed(context: Context) -> list[str]:
    """Upstream's own files with fakes that name a function which reads more in merged than upstream."""
    words: set[bytes] = set()
    for path in context.own:
        here, there = context.merged.names(path), context.theirs.names(path)
        if here is not None and there is not None:
            words |= _reading_more(here, there)
    if not words:
        return []
    faking = set(context.holding("merged", HINTS[:2]))
    return [path for path in context.others_holding(words) if path in faking and "test" in path]


def _reading_more(here: ModuleNames, there: ModuleNames) -> set[bytes]:
    found = set()
    for function, by_parameter in here.reads.items():
        before = there.reads.get(function)
        if before is not None and any(set(v) - set(before.get(k, [])) for k, v in by_parameter.items()):
            short = function.rpartition(".")[2]
            found.add((function.rpartition(".")[0].rpartition(".")[2] if short == "__init__" else short).encode())
    return found - {b""}
