"""Verdicts kept between runs, each under what it was made from, so that a second run parses nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

import stackctl.plants
from stackctl.model.stack import Entry, Plant, digest
from stackctl.model.verdict import Verdict
from stackctl.plants.judging import judge_plant
from stackctl.plants.kind import Judgement
from stackctl.plants.view import View
from stackctl.trees.cache import cache_folder

_MOST = 100_000  # rows; about 50 MB
_TABLE = "CREATE TABLE IF NOT EXISTS verdicts (key TEXT, files TEXT, verdict TEXT, PRIMARY KEY (key, files))"
Files = dict[str, str | None]


class Memo:
    """A judge that remembers. A row holds for the same declaration, release, code of ours and files read.

    The store is a SQLite file that several processes may use at once; one that cannot be read is
    left aside, never trusted and never an error.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or cache_folder() / "verdicts.sqlite"
        self._known: dict[str, list[tuple[list[Files], Judgement]]] = {}
        self._new: list[tuple[str, str, str]] = []
        self._code = _code_digest()

    def __enter__(self) -> Memo:
        with contextlib.suppress(sqlite3.Error, OSError, ValueError, TypeError, KeyError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(self._open()) as store:
                for key, files, verdict in store.execute("SELECT key, files, verdict FROM verdicts"):
                    self._known.setdefault(key, []).append((json.loads(files), _judgement(verdict)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._new:
            return
        with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(self._open()) as store, store:
            (count,) = store.execute("SELECT count(*) FROM verdicts").fetchone()
            if count > _MOST:
                store.execute("DELETE FROM verdicts")
            store.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?)", self._new)

    def judge(self, entry: Entry, plant: Plant, view: View) -> Judgement:
        """`judge_plant`, or what it said of the same files before."""
        key = digest([self._code, entry.digest, entry.number, plant.id, str(view.release), view.stock is not None])
        sides = [view, view.stock] if view.stock else [view]
        for files, judgement in self._known.get(key, ()):
            if not view.changes.keys() & files[0].keys() and all(_holds(side, seen) for side, seen in zip(sides, files, strict=False)):
                return judgement
        for side in sides:
            side.seen = {}
        judgement = judge_plant(entry, plant, view)
        if all(side.seen is not None and "*" not in side.seen for side in sides):
            files = [dict(side.seen) for side in sides]
            self._known.setdefault(key, []).append((files, judgement))
            self._new.append((key, json.dumps(files, sort_keys=True), json.dumps(asdict(judgement))))
        return judgement

    def _open(self) -> sqlite3.Connection:
        store = sqlite3.connect(self._path, timeout=5)
        store.execute("PRAGMA journal_mode=WAL")
        store.execute(_TABLE)
        return store


def _holds(view: View, files: Files) -> bool:
    """Whether every file that a verdict was made from is as it was."""
    return all((view.tree.blob(path) if view.tree.is_file(path) else None) == blob for path, blob in files.items())


def _judgement(text: str) -> Judgement:
    fields = json.loads(text)
    return Judgement(**{**fields, "verdict": Verdict(fields["verdict"])})


def _code_digest() -> str:
    """Changes with the code that judges, so that no verdict of an older stackctl is believed."""
    return digest([_stamp(path) for path in _sources()])


def _sources() -> Iterable[Path]:
    folder = Path(stackctl.plants.__file__).parent
    return sorted([*folder.glob("*.py"), *(folder.parent / "trees").glob("*.py")])


def _stamp(path: Path) -> list[object]:
    found = path.stat()
    return [path.name, found.st_size, found.st_mtime_ns]
