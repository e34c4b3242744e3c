"""Take single halves away from merged trees, one at a time, and see whether the audit names each.

    python tests/bench/mutate.py REPO BASE OURS THEIRS MERGED [BASE OURS THEIRS MERGED ...]

Seeded: the same trees and seed give the same mutations. Each is audited with its file alone on the
four sides; `--whole` of them, and every one that is not named there, with the whole trees. A mutation
counts as named if a finding of error or warning level that the unharmed merge does not have stands at
its file and symbol. Where `stackctl.carry.restore` exists, each named mutation is replanted and
compared byte for byte.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from auditing import Clock, OneFile, news, open_repository, peak_megabytes, run_audit, show, trees_of
from halves import KINDS, Half, added, halves_of, take_away
from upstream_lines import lines_added

from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Level
from stackctl.trees.source import Source, SourceError
from stackctl.trees.tree import OverlayTree, Tree

_COUNTED = ("named", "error", "restored", "damaged", "whole")
Restore = Callable[[list[Tree], Report], dict[str, bytes]]


@dataclass(frozen=True)
class Mutation:
    """One file of `merged` with one half less."""

    sides: int
    path: str
    half: Half
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"{self.half.kind} {self.path}:{self.half.line} {self.half.symbol or '(module)'}: {self.half.key[:90]}"


@dataclass
class Outcome:
    """What the audit and the replant made of one mutation."""

    mutation: Mutation
    named: bool
    error: bool
    restored: bool = False
    damaged: bool = False
    whole: bool = False
    findings: tuple[Finding, ...] = ()


def main() -> int:
    """Mutate, audit, replant, print. Exit 1 if fewer than 99 in 100 are named or one is damaged."""
    given = _arguments()
    repository = open_repository(given.repo)
    refs = [given.refs[start : start + 4] for start in range(0, len(given.refs), 4)]
    quads = [trees_of(repository, four) for four in refs]
    before = [run_audit(sides) for sides in quads]
    for four, report in zip(refs, before, strict=True):
        print(" ".join(four), "unharmed:", sum(f.severity is Level.ERROR for f in report.findings), "errors")
    mutations = list(choose(quads, given.halves, given.lines, given.seed))
    clock, outcomes, every = Clock(), [], max(1, len(mutations) // max(1, given.whole))
    for number, mutation in enumerate(mutations):
        whole = Whole(quads[mutation.sides], before[mutation.sides])
        outcomes.append(judge(mutation, whole, always=number % every == 0))
        if given.verbose:
            print(number, "named" if outcomes[-1].named else "MISSED", mutation, flush=True)
    print(f"{len(mutations)} mutations: {clock}; peak {peak_megabytes():.0f} MB")
    print_table(outcomes)
    print_misses(outcomes)
    if given.json:
        _write_json(Path(given.json), outcomes)
    failed = sum(not outcome.named for outcome in outcomes) * 100 > len(outcomes)
    return int(failed or any(outcome.damaged for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("repo", help="a Git repository")
    parser.add_argument("refs", nargs="+", help="base, ours, theirs and merged, as often as you like")
    parser.add_argument("--halves", type=int, default=500, help="halves of the fork to take away")
    parser.add_argument("--lines", type=int, default=100, help="lines of upstream to take away")
    parser.add_argument("--whole", type=int, default=40, help="mutations to audit with the whole trees in any case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write every outcome to this file")
    parser.add_argument("--verbose", action="store_true", help="print a miss as it is met")
    given = parser.parse_args()
    if len(given.refs) % 4:
        parser.error("give base, ours, theirs and merged for each merge")
    return given


def choose(quads: list[list[Tree]], halves: int, lines: int, seed: int) -> Iterator[Mutation]:
    """The mutations: an even share of every kind as far as it goes, then what is left, then upstream lines."""
    picker = random.Random(seed)
    ours, theirs = [], []
    for number, sides in enumerate(quads):
        ours += [(number, path, half) for path, half in fork_halves(sides)]
        theirs += [(number, path, half) for path, half in upstream_halves(sides)]
    picker.shuffle(ours)
    picker.shuffle(theirs)
    yield from _edits(quads, _even(ours, halves), halves)
    yield from _edits(quads, theirs, lines)


def _even(pool: list[tuple[int, str, Half]], wanted: int) -> list[tuple[int, str, Half]]:
    """`pool` reordered: first an equal share of each kind, then the rest."""
    share, first, rest = wanted // len(KINDS), [], []
    seen: dict[str, int] = defaultdict(int)
    for item in pool:
        seen[item[2].kind] += 1
        (first if seen[item[2].kind] <= share else rest).append(item)
    return first + rest


def _edits(quads: list[list[Tree]], pool: list[tuple[int, str, Half]], wanted: int) -> Iterator[Mutation]:
    """The first `wanted` of `pool` whose file is still Python, and another one, without them."""
    for number, path, half in pool:
        if wanted <= 0:
            return
        source = Source.decode(quads[number][3].read(path))
        text = take_away(source, half)
        if text is not None:
            wanted -= 1
            yield Mutation(number, path, half, source.encode(text))


def fork_halves(sides: list[Tree]) -> Iterator[tuple[str, Half]]:
    """Every half that ours added to base and merged has."""
    base, ours, _, merged = sides
    for path in sorted(merged.paths()):
        if path.endswith(".py") and path in ours and _differ(base, ours, path):
            four = [_halves(tree, path) for tree in (base, ours, merged)]
            yield from ((path, half) for half in added(*four))


def upstream_halves(sides: list[Tree]) -> Iterator[tuple[str, Half]]:
    """Every line that theirs added to base and merged has, in files that ours changed too and in others."""
    base, ours, theirs, merged = sides
    shared, alone = [], []
    for path in sorted(merged.paths()):
        if path.endswith(".py") and path in theirs and _differ(base, theirs, path):
            (shared if _differ(base, ours, path) else alone).append(path)
    for path in shared + alone[:: max(1, len(alone) // max(1, len(shared)))]:
        texts = [_text(tree, path) for tree in (base, theirs, merged)]
        if all(text is not None for text in texts[1:]):
            yield from ((path, half) for half in lines_added(*texts))


def _differ(first: Tree, second: Tree, path: str) -> bool:
    """Whether two trees have different files at `path`."""
    if path not in first or path not in second:
        return (path in first) != (path in second)
    return first.blob(path) != second.blob(path)


def _text(tree: Tree, path: str) -> Source | None:
    """The file at `path` as source, None if there is none or it is no text."""
    try:
        return Source.decode(tree.read(path)) if path in tree else None
    except SourceError:
        return None


def _halves(tree: Tree, path: str) -> list[Half]:
    source = _text(tree, path)
    return halves_of(source) if source else []


@dataclass(frozen=True)
class Whole:
    """The four trees of one merge (whole, or one file of them), and what the audit says of them unharmed."""

    sides: list[Tree]
    report: Report


def judge(mutation: Mutation, whole: Whole, always: bool) -> Outcome:
    """Audit the mutated merge and, if there is a replant, put the half back and compare."""
    alone: list[Tree] = [OneFile(tree, mutation.path) for tree in whole.sides]
    outcome = _audit(mutation, Whole(alone, _unharmed(mutation.sides, mutation.path, alone)))
    if always or not outcome.named:
        other = _audit(mutation, whole)
        outcome = other if other.named or always else outcome
        outcome.whole = True
    return outcome


_reports: dict[tuple[int, str], Report] = {}


def _unharmed(number: int, path: str, sides: list[Tree]) -> Report:
    """The audit of one file of a merge as it is."""
    if (number, path) not in _reports:
        _reports[number, path] = run_audit(sides)
    return _reports[number, path]


def _audit(mutation: Mutation, whole: Whole) -> Outcome:
    """Audit the mutated merge against the unharmed one."""
    harmed = [*whole.sides[:3], OverlayTree(whole.sides[3], {mutation.path: mutation.data})]
    report = run_audit(harmed)
    found = news(whole.report, report)
    here = [f for f in found if f.path == mutation.path and f.symbol in mutation.half.symbols]
    error = any(finding.severity is Level.ERROR for finding in here)
    outcome = Outcome(mutation, bool(here), error, findings=tuple(found))
    restore = _restore()
    if restore and here:
        _replant(outcome, whole, harmed, report, restore)
    return outcome


def _replant(outcome: Outcome, whole: Whole, harmed: list[Tree], report: Report, restore: Restore) -> None:
    """Set whether the replant gave the file back byte for byte, and whether it broke it.

    What it is compared with is the unharmed merge as the replant leaves it: it may find halves lost there too.
    """
    path, data = outcome.mutation.path, outcome.mutation.data
    goals = [whole.sides[3].read(path), _mended(outcome.mutation.sides, path, whole, restore)]
    after = restore(harmed, report).get(path, data)
    outcome.restored = after in goals
    outcome.damaged = after not in (data, *goals) and not any(_same_meaning(after, goal) for goal in goals)


_mends: dict[tuple[int, str, bool], bytes] = {}


def _mended(number: int, path: str, whole: Whole, restore: Restore) -> bytes:
    """The file at `path` of the unharmed merge as the replant leaves it."""
    key = number, path, isinstance(whole.sides[3], OneFile)
    if key not in _mends:
        _mends[key] = restore(whole.sides, whole.report).get(path, whole.sides[3].read(path))
    return _mends[key]


def _same_meaning(after: bytes, unharmed: bytes) -> bool:
    """Whether two files parse to the same program, the order of names in one import left aside."""
    try:
        return _meaning(after) == _meaning(unharmed)
    except SourceError:
        return False


def _meaning(data: bytes) -> str:
    module = Source.decode(data).module
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names.sort(key=lambda alias: (alias.name, alias.asname or ""))
    return ast.dump(module)


def _restore() -> Restore | None:
    """The replant in memory, if the package has one: (four trees, report) to changed files."""
    if importlib.util.find_spec("stackctl.carry.restore") is None:
        return None
    return getattr(importlib.import_module("stackctl.carry.restore"), "restore", None)


def print_table(outcomes: list[Outcome]) -> None:
    """One row a kind: how many, how many named (as errors), restored, damaged, audited with the whole trees."""
    rows = defaultdict(list)
    for outcome in outcomes:
        rows[outcome.mutation.half.kind].append(outcome)
    rows["all"] = outcomes
    print(f"{'kind':12} {'n':>4} {'named':>6} {'error':>6} {'restored':>9} {'damaged':>8} {'whole':>6}")
    for kind, row in rows.items():
        named, error, restored, damaged, whole = (sum(getattr(outcome, name) for outcome in row) for name in _COUNTED)
        print(f"{kind:12} {len(row):4} {named:6} {error:6} {restored:9} {damaged:8} {whole:6}")


def print_misses(outcomes: list[Outcome]) -> None:
    """Every mutation that was not named, with what was said instead, and every one not put back as it was."""
    for outcome in outcomes:
        if not outcome.named:
            print("MISSED", outcome.mutation)
            for finding in outcome.findings[:3]:
                print("    instead:", show(finding))
        elif outcome.damaged or not outcome.restored:
            print("DAMAGED" if outcome.damaged else "NOT RESTORED", outcome.mutation)


def _write_json(path: Path, outcomes: list[Outcome]) -> None:
    rows = [
        {
            "mutation": str(outcome.mutation),
            "named": outcome.named,
            "error": outcome.error,
            "restored": outcome.restored,
            "damaged": outcome.damaged,
            "findings": [finding.to_json() for finding in outcome.findings],
        }
        for outcome in outcomes
    ]
    path.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    raise SystemExit(main())
