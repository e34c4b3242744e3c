"""The verdict on one plant in one view: whether it is due, whether upstream adopted it, else its kind's own."""

from __future__ import annotations

import re
from dataclasses import replace

from stackctl.model.stack import Disposition, Entry, Plant
from stackctl.model.verdict import Level, Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Judgement
from stackctl.plants.manifest import kind_of
from stackctl.plants.view import View

# What planting puts right. Everything else of error level is for a person.
REPAIRABLE = frozenset(
    {Verdict.LOST, Verdict.ALTERED, Verdict.DUPLICATED, Verdict.MISPLACED, Verdict.RESURRECTED, Verdict.COMMENT_LOST}
)


def judge_plant(entry: Entry, plant: Plant, view: View) -> Judgement:
    """What became of one plant. Never raises Unplantable."""
    due = view.release.due(plant.releases)
    if due is False:
        return Judgement(Verdict.NOT_DUE, f"due in {plant.releases}, this tree is {view.release}", symbol=plant.symbol)
    if entry.disposition in (Disposition.CANDIDATE, Disposition.BLOCKED):
        return Judgement(Verdict.NOT_DUE, f"the entry is {entry.disposition}", symbol=plant.symbol)
    if entry.disposition.tombstone and plant.kind != "tombstone":
        return Judgement(Verdict.NOT_DUE, f"the entry is {entry.disposition}", symbol=plant.symbol)
    found = raw_judgement(entry, plant, view)
    if due is None and found.verdict in (Verdict.HOST_GONE, Verdict.AMBIGUOUS):
        return Judgement(Verdict.NOT_DUE, f"due in {plant.releases}; its host is not in this tree yet", found.path, symbol=plant.symbol)
    if found.verdict is Verdict.HOST_GONE and plant.symbol and (places := whereabouts(plant, view)):
        found = replace(found, evidence=f"{plant.symbol} is defined in {', '.join(places)}")
    return _with_stock(entry, plant, view, found) if view.stock else found


def whereabouts(plant: Plant, view: View) -> list[str]:
    """The modules that define a host which is not where it was declared: where upstream may have moved it."""
    home = view.path_of(plant.module)
    if view.exists(home) and _defined_in(home, plant.symbol, view):
        return []
    view.seen["*"] = None  # a verdict on every file there is cannot be kept under a few of them
    owner, _, leaf = plant.symbol.rpartition(".")
    words = [rb"(?:class|def)\s+%b\b" % name.encode() for name in (leaf, owner.rpartition(".")[2]) if name]
    patterns = [re.compile(word) for word in words]
    paths = [path for path in view.tree.paths() if path.endswith(".py") and path.startswith(view.stack.source)]
    near = [path for path in paths if view.exists(path) and all(p.search(view.read(path)) for p in patterns)]
    return [path for path in near if _defined_in(path, plant.symbol, view)][:4]


def _defined_in(path: str, symbol: str, view: View) -> bool:
    try:
        return symbol in view.module(path).hosts
    except Unplantable:
        return False


def raw_judgement(entry: Entry, plant: Plant, view: View) -> Judgement:
    """The kind's own judgement, what it raises turned into one."""
    kind = kind_of(plant, entry)
    try:
        return kind.judge(plant, entry, view)
    except Unplantable as error:
        return Judgement(error.verdict, error.message, kind.path(plant, view), error.line, plant.symbol)


def _with_stock(entry: Entry, plant: Plant, view: View, found: Judgement) -> Judgement:
    """The judgement in the light of stock upstream, where alone adoption is proved."""
    assert view.stock is not None
    key = (entry.number, plant.id)
    if key not in view.stock.judged:
        before, view.stock.seen = view.stock.seen, {}
        view.stock.judged[key] = (_stock_judgement(entry, plant, view.stock), view.stock.seen)
        view.stock.seen = before
    stock, seen = view.stock.judged[key]
    view.stock.seen |= seen
    evidence = f"stock upstream {view.release}"
    if stock.verdict is Verdict.INTACT and (plant.kind != "tombstone" or "code" in plant.options):
        if found.verdict is Verdict.INTACT:
            return replace(found, verdict=Verdict.ADOPTED, message="upstream has it", evidence=f"{evidence} has it too")
        return replace(found, evidence=found.evidence or f"{evidence} has it, this tree has not")
    symbols = entry.adopted_by.get(plant.adopted_with, ())
    if symbols and all(defines(view.stock, symbol) for symbol in symbols):
        return _replaced(entry, plant, view, found, symbols)
    return found


def _stock_judgement(entry: Entry, plant: Plant, stock: View) -> Judgement:
    """The judgement on stock upstream, of which only "intact" counts; what is plainly not there is not read."""
    if plant.kind == "tombstone" and "code" not in plant.options:
        return Judgement(Verdict.NOT_JUDGED)
    names = kind_of(plant, entry).words(plant)
    if names and stock.lacks(stock.path_of(plant.module), names):
        return Judgement(Verdict.LOST)
    return raw_judgement(entry, plant, stock)


def _replaced(entry: Entry, plant: Plant, view: View, found: Judgement, symbols: tuple[str, ...]) -> Judgement:
    """A plant whose unit upstream has in another form: adopted, unless ours is still there beside it."""
    assert view.stock is not None
    gone = [symbol for symbol in symbols if not defines(view, symbol)]
    evidence = f"stock upstream {view.release} defines {', '.join(symbols)}"
    if gone:
        message = f"upstream's own {', '.join(gone)} replaces it and is not in this tree"
        return replace(found, verdict=Verdict.LOST, message=message, evidence=evidence)
    if kind_of(plant, entry).leftover(plant, entry, view):
        message = "upstream has this in a form of its own, and ours is still here beside it"
        return replace(found, verdict=Verdict.DUPLICATED, message=message, evidence=evidence)
    return replace(found, verdict=Verdict.ADOPTED, message="upstream has it in a form of its own", evidence=evidence)


def defines(view: View, symbol: str) -> bool:
    """Whether a tree defines "module:Class.function"."""
    module, _, name = symbol.partition(":")
    try:
        return name in view.module(view.path_of(module)).hosts
    except Unplantable:
        return False


def adopted_elsewise(entry: Entry, plant: Plant, view: View) -> bool:
    """Whether upstream's own form, not ours, is what stands in for this plant in this release."""
    symbols = entry.adopted_by.get(plant.adopted_with, ())
    return bool(symbols) and view.stock is not None and all(defines(view.stock, symbol) for symbol in symbols)


def is_bad(judgement: Judgement) -> bool:
    """Whether a verdict is one of error level. A half with two places to be in is not in its place either."""
    return judgement.verdict.level is Level.ERROR or judgement.verdict is Verdict.AMBIGUOUS
