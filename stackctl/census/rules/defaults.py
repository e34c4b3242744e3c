"""Defaults that upstream changed under code of the fork that relied on them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_WORD = re.compile(r"\w+")
_LITERAL = re.compile(r"^(?:-?[\d._]+|True|False|None|'[^']*'|\"[^\"]*\")$")


def changed_defaults(context: Context) -> Iterator[Finding]:
    """Literal defaults of classes and parameters that upstream changed and the fork's own lines read."""
    changed = list(_changed(context))
    if not changed:
        return
    readers = _readers(context, {name for _, _, name, _, _ in changed})
    for path, fact, name, old, new in changed:
        for reader, host in readers.get(name, [])[:1]:
            yield Finding(
                Verdict.DEFAULT_CHANGED, f"upstream changed the default of `{name}` from {old} to {new}; {reader} relies on it",
                path, fact.line, fact.host, evidence=f"read in {reader}:{host}".rstrip(":"),
            )  # fmt: skip


def _changed(context: Context) -> Iterator[tuple[str, Fact, str, str, str]]:
    """(path, fact in merged, name, old, new) of each default of upstream that is another now."""
    for path, (base, ours, theirs, merged) in context.sides.differing.items():
        if not path.endswith(".py") or not base or not ours or base == theirs or not theirs or not merged:
            continue
        before, after = _defaults(context.sides.facts("base", path)), _defaults(context.sides.facts("theirs", path))
        now, mine = _defaults(context.sides.facts("merged", path)), _defaults(context.sides.facts("ours", path))
        for key, (fact, value) in now.items():
            old = before.get(key)
            if old and key in after and after[key][1] == value != old[1] and mine.get(key, old)[1] == old[1]:
                yield path, fact, key[1], old[1], value


def _defaults(facts: list[Fact]) -> dict[tuple[str, str], tuple[Fact, str]]:
    """(host, name) to the literal it starts with: fields of classes, constants of modules, parameters."""
    functions = {_inside(f) for f in facts if f.kind == "definition" and not f.text.startswith("class ")}
    found = {}
    for fact in facts:
        if fact.kind == "default" or (fact.kind == "statement" and fact.host and fact.host not in functions and not fact.under):
            name, _, value = fact.text.partition("=")
            name = name.partition(":")[0].strip()
            if name.isidentifier() and _LITERAL.match(value.strip()):
                found[fact.host, name] = fact, value.strip()
    return found


def _inside(fact: Fact) -> str:
    name = fact.text.rpartition(" ")[2]
    return f"{fact.host}.{name}" if fact.host else name


def _readers(context: Context, names: set[str]) -> dict[str, list[tuple[str, str]]]:
    """Which lines the fork itself added read one of these names as an attribute or keyword."""
    wanted = [name.encode() for name in names]
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in context.own:
        data = context.sides.read("merged", path)
        if not any(word in data for word in wanted):
            continue
        known = {(f.host, f.text) for f in context.sides.facts("theirs", path)}
        known |= {(f.host, f.text) for f in context.sides.facts("base", path)}
        for fact in context.sides.facts("merged", path):
            if (fact.host, fact.text) in known or fact.kind not in ("statement", "branch"):
                continue
            for name in names & set(_WORD.findall(fact.text)):
                if f".{name}" in fact.text and not fact.text.startswith(("self.", f"{name} ")):
                    found[name].append((path, fact.host))
    return found
