"""What a carry leaves in the stack's own folder: each entry's record on the new release, and the ledger to compare with.

The records (patch and base) are made anew from what was composed, so that the next carry starts from there. It
is done only for a series of which nothing waits and whose branch is what was composed, byte for byte.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stackctl.carry.aftermath import carriers_of
from stackctl.carry.apply import Run
from stackctl.carry.carrying import Carrier, series_plant, verdict_of
from stackctl.carry.fork import State, borrowing
from stackctl.carry.merge3 import LOOK
from stackctl.carry.questions import questions
from stackctl.carry.records import diff_between
from stackctl.carry.series import diff_start, toml_value
from stackctl.model.stack import Entry, Stack, digest
from stackctl.trees.git import Repository
from stackctl.trees.replacing import Held, rewrite
from stackctl.trees.tree import GitTree

LEDGER = "carried.json"  # beside stack.toml
_BLOCK = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_DECIDED = re.compile(r"^(accepted|dropped|strip)\s*=[^\n]*\n", re.MULTILINE)
_BASE = re.compile(r"^base\s*=[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Change:
    """One half whose verdict is not what it was at the last carry; "" for one that was or is not there."""

    entry: int
    path: str
    host: str
    text: str
    was: str
    now: str

    def __str__(self) -> str:
        where = f"{self.path}{f' {self.host}' if self.host else ''}"
        return f"{self.entry}: {where}: {self.was or 'not there'} -> {self.now or 'not there'}: {self.text[:60]}"


def ledger_of(carriers: Sequence[Carrier]) -> dict[str, list[object]]:
    """Every half of some series: entry, path, host, first line, verdict; known by path, first line and occurrence.

    The host is no part of its name: a file that upstream left alone is compared by lines.
    """
    rows: dict[str, list[object]] = {}
    seen: Counter[str] = Counter()
    for carrier in carriers:
        for entry in carrier.entries:
            halves = carrier.halves(entry.number) if entry.number in carrier.fork.changes else ()
            for half in halves:
                if half.state != LOOK:
                    name = digest([half.path, half.text])[:12]
                    seen[name] += 1
                    rows[f"{name}.{seen[name]}"] = [entry.number, half.path, half.host, half.text, str(verdict_of(half))]
    return rows


def changes(stack: Stack, repository: Repository, onto: str, run: Run) -> tuple[str, list[Change]]:
    """The release of the last carry, "" if there was none, and the halves whose verdict is another one now."""
    try:
        said = json.loads((stack.root / LEDGER).read_bytes())
        last, old = str(said["onto"]), dict(said["halves"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", []
    new = ledger_of(carriers_of(stack, repository, onto, run))
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        row = new.get(name) or old[name]
        was, now = (str(rows[name][4]) if name in rows else "" for rows in (old, new))
        if was != now:
            found.append(Change(int(row[0]), *map(str, row[1:4]), was, now))  # type: ignore[arg-type]
    return last, sorted(found, key=lambda each: (each.entry, each.path, each.host, each.text))


def record(stack: Stack, repository: Repository, onto: str, run: Run) -> list[str]:
    """Write down a carry: its ledger, and the records of every series that came through whole. Says what was done.

    All of it stands or nothing: of a run that was killed midway the next command finishes the rest.
    """
    carriers = carriers_of(stack, repository, onto, run)
    rows = ledger_of(carriers)
    if not rows:
        return []
    text = json.dumps({"onto": onto, "release": str(run.release), "halves": rows}, indent=1, sort_keys=True)
    files: dict[str, Held | bytes | None] = {LEDGER: text.encode() + b"\n"}
    said = []
    for carrier in carriers:
        if carrier.base.commit != carrier.theirs.commit and carrier.fork.changes:
            why = _unready(stack, carrier, repository, run)
            said.append(why or _recorded(stack, carrier, repository, onto, files))
    rewrite(stack.root, files)
    return said


def _unready(stack: Stack, carrier: Carrier, repository: Repository, run: Run) -> str:
    """Why a series' records stay as they are; "" if they can be made anew."""
    mine = {entry.number for entry in stack.entries if (p := series_plant(entry)) and p.options["base"] == carrier.base_name}
    left = questions(carrier)
    if left or carrier.fork.failed:
        return f"records stay on {carrier.base_name}: {len(left)} units wait"
    if not {entry.number for entry in carrier.entries} <= {outcome.entry.number for outcome in run.outcomes} or not mine:
        return f"records stay on {carrier.base_name}: only some of the entries were carried"
    tip = GitTree(repository, run.tip)
    for path, state in carrier.after(carrier.last).files.items():
        here = State(tip.mode(path), tip.read(path)) if path in tip else None
        if here != state:
            return f"records stay on {carrier.base_name}: {path} on the branch is not as composed; take it up with: stackctl refresh"
    return ""


def _recorded(
    stack: Stack, carrier: Carrier, repository: Repository, onto: str, files: dict[str, Held | bytes | None]
) -> str:
    """Add every entry's patch and manifest on the new base to the files to write; says so."""
    tags = sorted(repository.text("tag", "--points-at", carrier.theirs.commit).split())
    name = onto if onto in tags else next(iter(tags), carrier.theirs.commit)
    with tempfile.TemporaryDirectory(prefix="stackctl-record-", ignore_cleanup_errors=True) as folder:
        scratch = borrowing(repository, Path(folder))
        scratch.run("read-tree", carrier.theirs.commit)
        tree = scratch.text("write-tree")
        for entry in carrier.entries:
            new = _tree_after(scratch, carrier, entry.number)
            files |= _files(stack, entry, diff_between(scratch, tree, new), name)
            tree = new
    return f"records of {len(carrier.entries)} entries stand on {name} now"


def _tree_after(scratch: Repository, carrier: Carrier, number: int) -> str:
    """The tree after one entry, in a scratch repository whose index has the one before it."""
    files = carrier.after(number).files
    lines = []
    for path in carrier.changed(number):
        state = files.get(path) if path in files else carrier.stock(path)
        if state is None:
            lines.append(f"0 {scratch.nothing}\t".encode() + path.encode("utf-8", "surrogateescape") + b"\0")
        else:
            blob = scratch.run("hash-object", "-w", "--stdin", stdin=state.data).decode().strip()
            lines.append(f"{state.mode} {blob}\t".encode() + path.encode("utf-8", "surrogateescape") + b"\0")
    if lines:
        scratch.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
    return scratch.text("write-tree")


def _files(stack: Stack, entry: Entry, diff: bytes, base: str) -> dict[str, bytes]:
    """One entry's patch and manifest on a new base; what its patch says of files outside the base is kept."""
    plant = series_plant(entry)
    assert plant is not None
    patch = f"patches/{plant.options['patch']}"
    old = (stack.root / patch).read_bytes()
    outside = [path.encode() for path in plant.options.get("leave_out", ())]
    kept = [
        block for block in _BLOCK.split(old[diff_start(old) :])
        if any(b"a/" + path + b" " in block.split(b"\n")[0] + b" " for path in outside)
    ]  # fmt: skip
    manifest = f"entries/{entry.folder.name}/entry.toml"
    text = _DECIDED.sub("", (stack.root / manifest).read_bytes().decode())
    head, mark, tail = text.partition("[[plant]]")
    text = head + mark + _BASE.sub(lambda _: f"base = {toml_value(base)}", tail)
    return {patch: old[: diff_start(old)] + diff + b"".join(kept), manifest: text.encode()}

