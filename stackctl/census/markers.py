"""Merge markers: comments that whoever merged left in the tree, for a decision that comes later.

    # MERGE-TODO B4 (61,176): fold the model_context execute

A marker belongs to a batch (B4) and to entries. It is known again by its file and text, not by its line, and by
its text alone where it moved to another file. Where a decision was recorded, it was consumed; where it is just
gone, it was lost. Markers of one file and one text are twins: they are counted, not told apart.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from stackctl.census.tables import Table, quoted, read_table
from stackctl.facts.search import read_many
from stackctl.facts.text import is_binary, text_lines
from stackctl.model.errors import StackctlError
from stackctl.model.report import Finding
from stackctl.model.stack import Stack
from stackctl.model.verdict import Level, Verdict
from stackctl.plants.manifest import ManifestError
from stackctl.trees.cache import replace_text
from stackctl.trees.tree import Tree

DEFAULT = (
    r"(?:#|//|<!--|--)\s*(?:[A-Z]+[- ])?MERGE[-_ ](?:MARKER|TODO|REVIEW|DECIDE|CONFLICT)\b[ \t:(\[-]*"
    r"(?P<batch>[A-Za-z]+\d+\b)?[ \t:;,(\[-]*(?:entry|entries|#)?\s*(?P<entries>\d+(?:\s*[,/]\s*\d+)*)?[\s)\]:;,-]*(?P<text>.*)"
)
LEDGER = "checks/markers.toml"
_CONFLICT = re.compile(r"(<{7}|>{7}|\|{7})(?: .*)?")
_LARGEST = 2_000_000  # bytes: what is larger is data
Key = tuple[str, str, tuple[str, ...], str]
_KEYS: dict[str, type] = {"id": str, "batch": str, "entries": list, "path": str, "text": str, "decision": str}


@dataclass(frozen=True)
class Marker:
    """One marker where it stands. `id` tells twins apart by their order in the file."""

    id: str
    path: str
    line: int
    batch: str = ""
    entries: tuple[str, ...] = ()
    text: str = ""

    @property
    def key(self) -> Key:
        """What it is known by again."""
        return self.path, self.batch, self.entries, self.text


@dataclass(frozen=True)
class Consumed:
    """One recorded decision."""

    id: str
    decision: str
    line: int = 0
    batch: str = ""
    entries: tuple[str, ...] = ()
    path: str = ""
    text: str = ""

    @property
    def key(self) -> Key:
        """The key of the marker that it is about."""
        return self.path, self.batch, self.entries, self.text


@dataclass(frozen=True)
class Census:
    """The markers of a tree against those of an older one and the decisions on record."""

    now: Sequence[Marker]
    before: Sequence[Marker] = ()
    consumed: Sequence[Consumed] = ()
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def gone(self) -> tuple[list[Marker], list[Marker]]:
        """The markers of before that are not there: those gone by decision, those gone without a word."""
        now, before = (Counter(marker.key for marker in markers) for markers in (self.now, self.before))
        decided = Counter(decision.key for decision in self.consumed)
        moved = Counter(key[1:] for key in (now - before).elements())
        lists: tuple[list[Marker], list[Marker]] = ([], [])
        for marker in self.before:
            key = marker.key
            if now[key] > 0:
                now[key] -= 1
            elif moved[key[1:]] > 0:
                moved[key[1:]] -= 1
            else:
                lists[decided[key] <= 0].append(marker)
                decided[key] -= 1
        return lists

    def batches(self) -> list[dict[str, object]]:
        """Per batch: how many there were, are, were consumed, are gone without a word, and whether it is intact."""
        groups = {"before": self.before, "now": self.now, "consumed": self.gone[0], "vanished": self.gone[1]}
        counts = {name: Counter(marker.batch for marker in markers) for name, markers in groups.items()}
        names = sorted({batch for counter in counts.values() for batch in counter})
        rows = [{"batch": batch, **{name: counter[batch] for name, counter in counts.items()}} for batch in names]
        return [{**row, "intact": not row["vanished"] and not row["consumed"]} for row in rows]

    def entries(self) -> dict[str, int]:
        """How many markers are left for each entry; "" for those that name none."""
        return dict(sorted(Counter(entry for marker in self.now for entry in marker.entries or ("",)).items()))


def pattern_of(stack: Stack) -> re.Pattern[str]:
    """The stack's own marker syntax ([markers] pattern in stack.toml), else the default one."""
    return re.compile(stack.marker_pattern or DEFAULT)


def fork_files(tree: Tree, stock: Tree | None) -> list[str]:
    """The files that upstream does not have just like that; every file where stock upstream is not known."""
    files = (path for path in tree.paths() if tree.is_file(path))
    return [path for path in files if stock is None or path not in stock or stock.blob(path) != tree.blob(path)]


def find_markers(tree: Tree, stock: Tree | None, pattern: re.Pattern[str]) -> list[Marker]:
    """Every marker of the fork's files, in the order of the tree."""
    markers: list[Marker] = []
    seen: Counter[tuple[str, ...]] = Counter()
    for path, number, line in _lines(tree, fork_files(tree, stock)):
        if found := pattern.search(line):
            groups = found.groupdict()
            batch, text = (groups.get("batch") or "").upper(), _one(groups.get("text") or found[0])
            entries = tuple(re.findall(r"\d+", groups.get("entries") or ""))
            words = (path, batch, *entries, text)
            seen[words] += 1
            digest = hashlib.sha256("\0".join((*words, str(seen[words]))).encode(errors="surrogatepass")).hexdigest()[:8]
            markers.append(Marker(digest, path, number, batch, entries, text))
    return markers


def _one(text: str) -> str:
    return " ".join(text.removesuffix("-->").split())


def _lines(tree: Tree, paths: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    for path, data in read_many(tree, paths):
        if len(data) <= _LARGEST and not is_binary(data):
            yield from ((path, number, line) for number, line in enumerate(text_lines(data), 1))


def conflicts(tree: Tree, stock: Tree | None) -> Iterator[Finding]:
    """Conflict markers in the fork's files, one finding a file."""
    found: dict[str, list[int]] = {}
    for path, number, line in _lines(tree, fork_files(tree, stock)):
        if line[:7] in ("<<<<<<<", ">>>>>>>", "|||||||") and _CONFLICT.fullmatch(line):
            found.setdefault(path, []).append(number)
    for path, lines in found.items():
        yield Finding(Verdict.MARKER, f"unresolved conflict markers at lines {', '.join(map(str, lines))}", path, lines[0])


def leftovers(markers: Iterable[Marker]) -> Iterator[Finding]:
    """A warning for each marker that waits for its decision."""
    for marker in markers:
        name = f"{marker.id}{f' of batch {marker.batch}' if marker.batch else ''}"
        yield Finding(
            Verdict.MARKER, f"marker {name} waits for a decision: {marker.text}", marker.path, marker.line,
            entry=",".join(marker.entries), level=Level.WARNING,
            action=f"decide, take it out, and record it: stackctl markers --consume {marker.id} --decision TEXT",
        )  # fmt: skip


def load_consumed(path: Path) -> list[Consumed]:
    """The decisions on record, none if there is no file. Raises ManifestError with every problem."""
    if not path.is_file():
        return []
    table, text = read_table(path)
    rows = list(table.tables("consumed", text))
    problems = [*table.check({"consumed": list}), *(p for row in rows for p in row.check(_KEYS, ("id", "decision")))]
    if problems:
        raise ManifestError(problems)
    return [_consumed(row) for row in rows]


def _consumed(row: Table) -> Consumed:
    entries = tuple(map(str, row.values.get("entries", ())))
    return Consumed(row.text("id"), row.text("decision"), row.line, row.text("batch"), entries, row.text("path"), row.text("text"))


def consume(path: Path, markers: Sequence[Marker], name: str, decision: str) -> Marker:
    """Record the decision on the marker whose id starts with `name`. Raises StackctlError if there is not just one."""
    if not decision.strip():
        raise StackctlError("a decision needs words", hint="--decision 'superseded: upstream removed the gate, #46853'")
    found = [marker for marker in markers if marker.id.startswith(name)] if name else []
    if len(found) != 1:
        raise StackctlError(f"{len(found) or 'no'} markers have the id {name!r}", hint="list them: stackctl markers")
    if any(known.id == found[0].id for known in load_consumed(path)):
        raise StackctlError(f"marker {found[0].id} is on record already", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    old = path.read_text(encoding="utf-8").rstrip("\n") + "\n\n" if path.is_file() else ""
    replace_text(path, old + _row(found[0], decision))
    return found[0]


def _row(marker: Marker, decision: str) -> str:
    entries = ", ".join(map(quoted, marker.entries))
    lines = [
        "[[consumed]]", f"id = {quoted(marker.id)}", f"batch = {quoted(marker.batch)}", f"entries = [{entries}]",
        f"path = {quoted(marker.path)}", f"text = {quoted(marker.text)}", f"decision = {quoted(decision.strip())}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def count(now: Sequence[Marker], before: Sequence[Marker], consumed: Sequence[Consumed], since: str = "", batch: str = "") -> Census:
    """The census of markers; with `batch`, the one at work now, no decision is needed for it to be short of some."""
    census = Census(now, before, consumed)
    for marker in census.gone[1]:
        if batch and marker.batch == batch.upper():
            continue
        foreign = f"batch {marker.batch} is not intact: " if batch else ""
        census.findings.append(
            Finding(
                Verdict.MARKER, f"{foreign}marker {marker.id} is gone and no decision is on record: {marker.text}", marker.path,
                0, entry=",".join(marker.entries), evidence=f"it was there at {since}, line {marker.line}",
                action="put it back, or record what was decided: stackctl markers --consume",
            )
        )  # fmt: skip
    twins = Counter(marker.key for marker in (*now, *census.gone[0]))
    decisions = {decision.key: decision for decision in consumed}
    for marker in now:
        if (decision := decisions.get(marker.key)) and twins[marker.key] == 1:
            census.findings.append(
                Finding(
                    Verdict.MARKER, f"marker {marker.id} is decided and still there: {marker.text}", marker.path, marker.line,
                    entry=",".join(marker.entries), evidence=decision.decision, level=Level.WARNING, action="take the comment out",
                )
            )  # fmt: skip
    return census
