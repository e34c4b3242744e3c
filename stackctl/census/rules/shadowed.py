"""Definitions that hide one another: the same name bound twice in one place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from stackctl.census.rules.context import Context
from stackctl.facts.statements import Fact
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

# These decorators make a second definition of one name right.
_REPEATABLE = ("overload", ".setter", ".getter", ".deleter", ".register", "singledispatch", "dispatch", "property")


def shadowed_definitions(context: Context) -> Iterator[Finding]:
    """Classes, functions, fields and imports bound twice under one branch in merged, and on no side."""
    for path in context.own:
        if context.sides.problem("merged", path):
            continue
        counts = _bindings(context.sides.facts("merged", path))
        twice = {key: facts for key, facts in counts.items() if len(facts) > 1}
        if not twice:
            continue
        before: Counter = Counter()
        for world, there in context.parents(path):
            side = "ours" if world is context.ours else "theirs"
            if not context.sides.problem(side, there):
                for key, facts in _bindings(context.sides.facts(side, there)).items():
                    before[key] = max(before[key], len(facts))
        for key, facts in twice.items():
            if len(facts) > max(1, before[key]):
                yield _finding(path, key, facts)


def _bindings(facts: list[Fact]) -> dict[tuple[str, str, tuple[str, ...]], list[Fact]]:
    """Every (host, name, branch) that binds a name once and for all, with the facts that bind it."""
    decorated = defaultdict(set)
    classes = {""}
    for fact in facts:
        if fact.kind == "decorator":
            decorated[fact.host].add(fact.text)
        elif fact.kind == "definition" and fact.text.startswith("class "):
            classes.add(_inside(fact))
    found = defaultdict(list)
    for fact in facts:
        name = _name(fact, classes)
        inner = f"{fact.host}.{name}" if fact.host else name
        if name and not any(word in text for text in decorated[inner] for word in _REPEATABLE):
            found[fact.host, name, fact.under].append(fact)
    return found


def _inside(fact: Fact) -> str:
    name = fact.text.rpartition(" ")[2]
    return f"{fact.host}.{name}" if fact.host else name


def _name(fact: Fact, classes: set[str]) -> str:
    """The name a fact binds for good: a definition, an import beside it, a field of a class."""
    if fact.kind == "definition":
        return fact.text.rpartition(" ")[2]
    if fact.host not in classes or fact.under:
        return ""
    if fact.kind == "import" and fact.text.startswith("from "):
        return fact.text.rpartition(" ")[2]
    if fact.kind == "statement" and fact.host:
        target = fact.text.partition(" = ")[0].partition(": ")[0]
        return target if target.isidentifier() and target != "_" and (" = " in fact.text or ": " in fact.text) else ""
    return ""


def _finding(path: str, key: tuple[str, str, tuple[str, ...]], facts: list[Fact]) -> Finding:
    host, name, _ = key
    lines = ", ".join(str(fact.line) for fact in facts)
    symbol = f"{host}.{name}" if host else name
    return Finding(
        Verdict.SHADOWED, f"`{name}` is bound {len(facts)} times in one place (lines {lines}): the last one wins",
        path, facts[-1].line, symbol, evidence="no side binds it more than once",
    )  # fmt: skip
