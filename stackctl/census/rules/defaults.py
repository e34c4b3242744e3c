"""Defaults that upstream changed under code of the fork that relied on them."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.search import read_many
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_READ = re.compile(r"(?<!self)\.(\w+)\b(?!\s*(?:\(|=[^=]))")
_ASSIGNED = re.compile(r"(\w+)(?:\s*:\s*[^=,()]+)?\s*=")
_LITERAL = re.compile(r"^(?:-?[\d._]+|True|False|None|'[^']*'|\"[^\"]*\")$")


def changed_defaults(context: Context) -> Iterator[Finding]:
    """Literal defaults of classes and parameters that upstream changed and the fork's own lines read."""
    readers = _readers(context)
    for path in _candidates(context, set(readers)) if readers else ():
        for fact, name, old, new in _changed(context, path):
            reached = [item for item in readers.get(name, ()) if _reaches(context, item[0], path)]
            for reader, host in reached[:1]:
                yield Finding(
                    Verdict.DEFAULT_CHANGED,
                    f"upstream changed the default of `{name}` from {old} to {new}; {reader} relies on it",
                    path, fact.line, fact.host, evidence=f"read in {reader}:{host}".rstrip(":"),
                )  # fmt: skip


def _candidates(context: Context, names: set[str]) -> Iterator[str]:
    """The files in which upstream changed a line that gives one of `names` a value."""
    reached = set(context.own)
    for reader in context.own:
        mine = context.merged.names(reader)
        reached |= {context.merged.module(item.module, reader, item.level) for item in (mine.imports if mine else ())}
    for path, assigned in _assigned(context).items():
        if path in reached and path in context.sides.ours and names & set(assigned):
            yield path


def _reaches(context: Context, reader: str, path: str) -> bool:
    """Whether a file that reads an attribute can have it from `path`: it imports from there, or is there."""
    names = context.merged.names(reader)
    modules = (context.merged.module(item.module, reader, item.level) for item in (names.imports if names else ()))
    return reader == path or path in modules


def _assigned(context: Context) -> dict[str, list[str]]:
    """Path to the names whose lines upstream changed, remembered for the two trees."""
    sides = context.sides
    changed = [p for p, (base, _, theirs, _) in sides.differing.items() if p.endswith(".py") and base and theirs and base != theirs]
    key = hashlib.sha1("".join(b for p in changed for b in sides.differing[p][0:3:2]).encode(), usedforsecurity=False)
    found = sides.cache.get("assigned", key.hexdigest())
    if found is None:
        before = {path: set(data.splitlines()) for path, data in read_many(sides.base, changed)}
        found = {}
        for path, data in read_many(sides.theirs, changed):
            removed = b"\n".join(before.pop(path, set()) - set(data.splitlines())).decode(errors="replace")
            if names := sorted(set(_ASSIGNED.findall(removed))):
                found[path] = names
        sides.cache.put("assigned", key.hexdigest(), found)
    return found


def _changed(context: Context, path: str) -> Iterator[tuple[Fact, str, str, str]]:
    """(fact in merged, name, old, new) of each default of upstream that is another now."""
    before, after = _defaults(context.sides.facts("base", path)), _defaults(context.sides.facts("theirs", path))
    now, mine = _defaults(context.sides.facts("merged", path)), _defaults(context.sides.facts("ours", path))
    for key, (fact, value) in now.items():
        old = before.get(key)
        if old and key in after and after[key][1] == value != old[1] and mine.get(key, old)[1] == old[1]:
            yield fact, key[1], old[1], value


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


def _readers(context: Context) -> dict[str, list[tuple[str, str]]]:
    """Attribute name to the (path, host) of the lines that read it and that the fork itself added."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in context.own:
        known = {(f.host, f.text) for side in ("base", "theirs") for f in context.sides.facts(side, path)}
        for fact in context.sides.facts("merged", path):
            if fact.kind in ("statement", "branch") and (fact.host, fact.text) not in known:
                for name in set(_READ.findall(fact.text)):
                    found[name].append((path, fact.host))
    return found
