"""Verdicts kept between runs, each under what it was made from, so that a second run parses nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from pathlib import Path
from types import TracebackType

from stackctl.model.stack import Entry, Plant, digest
from stackctl.model.verdict import Verdict
from stackctl.plants.kind import Judgement
from stackctl.plants.view import View
from stackctl.trees.cache import cache_folder, code_stamp

_MOST = 100_000  # rows; about 50 MB
_BATCH = 50  # verdicts that are written together: a helper's are to be seen while it still works
_TABLE = "CREATE TABLE IF NOT EXISTS verdicts (key TEXT, files TEXT, verdict TEXT, PRIMARY KEY (key, files))"
Files = dict[str, str | None]


class Memo:
    """A judge that remembers. A row holds for the same declaration, release, code of ours and files read.

    The store is a SQLite file that several processes may use at once; one that cannot be read is
    left aside, never trusted and never an error.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or cache_folder() / "verdicts.sqlite"
        self._store: sqlite3.Connection | None = None
        self._known: dict[str, list[tuple[list[Files], Judgement]]] = {}
        self._asked: set[str] = set()
        self._new: list[tuple[str, str, str]] = []
        self._code = digest([code_stamp(), sys.version])
        self.missed = 0  # how many verdicts were not known
        self._keys: dict[tuple[object, ...], str] = {}

    def __enter__(self) -> Memo:
        with contextlib.suppress(sqlite3.Error, OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._store = sqlite3.connect(self._path, timeout=5)
            self._store.execute("PRAGMA journal_mode=WAL")
            self._store.execute("PRAGMA synchronous=NORMAL")
            self._store.execute(_TABLE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._write()
        if self._store is not None:
            with contextlib.suppress(sqlite3.Error):
                self._store.close()
            self._store = None

    def judge(self, entry: Entry, plant: Plant, view: View) -> Judgement:
        """`judge_plant`, or what it said of the same files before."""
        known = self.recall(entry, plant, view)
        if known is not None:
            return known
        self.missed += 1
        from stackctl.plants.judging import judge_plant

        sides = _sides(view)
        for side in sides:
            side.seen = {}
        judgement = judge_plant(entry, plant, view)
        if all(side.seen.get("*", "") is not None for side in sides):
            self._keep(self._key(entry, plant, view), [_files(side) for side in sides], judgement)
        return judgement

    def recall(self, entry: Entry, plant: Plant, view: View) -> Judgement | None:
        """What was said of the same files before, None if nothing was."""
        sides = _sides(view)
        for files, judgement in self._rows(self._key(entry, plant, view)):
            if not view.changes.keys() & files[0].keys() and all(_holds(side, seen) for side, seen in zip(sides, files, strict=False)):
                return judgement
        return None

    def _key(self, entry: Entry, plant: Plant, view: View) -> str:
        return f"{self._prefix(entry, view)}:{plant.id}"

    def _prefix(self, entry: Entry, view: View) -> str:
        """What all verdicts on one entry depend on beside the files."""
        made_from = (entry.digest, entry.number, view.stack.source, str(view.release), view.stock is not None)
        if made_from not in self._keys:
            self._keys[made_from] = digest([self._code, *made_from])
        return self._keys[made_from]

    def _rows(self, key: str) -> list[tuple[list[Files], Judgement]]:
        """What is kept under a key. What was not there a moment ago is looked for again: a helper may write it."""
        prefix = key.partition(":")[0]
        if prefix not in self._asked:
            self._asked.add(prefix)
            self._read("key > ? AND key < ?", f"{prefix}:", f"{prefix};")  # a whole entry's: one question, not ten
        elif not self._known.get(key):
            self._read("key = ?", key)
        return self._known.get(key, [])

    def _read(self, where: str, *values: str) -> None:
        if self._store is None:
            return
        with contextlib.suppress(sqlite3.Error, ValueError, TypeError, KeyError):
            for key, files, verdict in self._store.execute(f"SELECT key, files, verdict FROM verdicts WHERE {where}", values):
                self._known.setdefault(key, []).append((json.loads(files), _judgement(verdict)))

    def _keep(self, key: str, files: list[Files], judgement: Judgement) -> None:
        self._known.setdefault(key, []).append((files, judgement))
        self._new.append((key, json.dumps(files, sort_keys=True), json.dumps(vars(judgement))))
        if len(self._new) >= _BATCH:
            self._write()

    def _write(self) -> None:
        new, self._new = self._new, []
        if not new or self._store is None:
            return
        with contextlib.suppress(sqlite3.Error, OSError), self._store as store:
            (count,) = store.execute("SELECT max(rowid) FROM verdicts").fetchone()
            if (count or 0) > _MOST:
                store.execute("DELETE FROM verdicts")
            store.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?)", new)


def _sides(view: View) -> list[View]:
    return [view, view.stock] if view.stock else [view]


def _files(view: View) -> Files:
    """What a verdict was made from: the files read, or the tree as a whole."""
    return {"*": view.seen["*"]} if "*" in view.seen else dict(view.seen)


def _holds(view: View, files: Files) -> bool:
    """Whether every file that a verdict was made from is as it was; "*" stands for the whole tree."""
    return all((view.whole if path == "*" else view.blob(path)) == blob for path, blob in files.items())


def _judgement(text: str) -> Judgement:
    fields = json.loads(text)
    return Judgement(**{**fields, "verdict": Verdict(fields["verdict"])})
