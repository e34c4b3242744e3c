"""Parsed facts, kept between runs by blob id: a file that did not change is never parsed again.

One SQLite file in the cache folder. Two processes may use it at once (WAL and a busy timeout); it
is emptied when the format or Python's version changes, and cut back when it grows past its limit.
A cache that cannot be opened or written costs time, never a verdict.
"""

from __future__ import annotations

import contextlib
import marshal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stackctl.facts import binding, names, statements
from stackctl.facts.names import ModuleNames
from stackctl.facts.statements import Fact
from stackctl.trees.cache import cache_folder
from stackctl.trees.source import Source, SourceError

_FORMAT = f"plain.{statements.FORMAT}.{names.FORMAT}.{sys.version_info[0]}.{sys.version_info[1]}.{marshal.version}"
_LIMIT = 400_000_000
_BATCH = 40  # facts that are written together: a helper's are to be seen while it still works

Problem = tuple[str, int]


class FactsCache:
    """Facts by blob id. `path` None keeps them in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self._memory: dict[tuple[str, str], Any] = {}
        self._pending: list[tuple[str, str, bytes]] = []
        self._database = _open(path) if path else None
        self.path = path if self._database else None
        self._after: tuple[int, Callable[[], None] | None] = (0, None)

    @classmethod
    def default(cls) -> FactsCache:
        """The cache of this user."""
        return cls(cache_folder() / "facts.sqlite")

    def statements(self, blob: str, read: Callable[[], bytes]) -> tuple[list[Fact], Problem | None]:
        """The facts of one file, or none and the reason why it cannot be parsed."""
        return self._get("statements", blob, read, _read_statements, _wake_statements)

    def names(self, blob: str, read: Callable[[], bytes]) -> ModuleNames | None:
        """What one file binds and uses; None where it cannot be parsed."""
        return self._get("names", blob, read, _read_names, _wake_names)

    def get(self, kind: str, key: str) -> Any:
        """Something stored by `put`, or None."""
        if (kind, key) not in self._memory:
            self._memory[kind, key] = self._load(kind, key)
        return self._memory[kind, key]

    def put(self, kind: str, key: str, value: Any) -> None:
        """Store a value that `marshal` can write, under a key that names its content."""
        self._memory[kind, key] = value
        self._store(kind, key, value)

    def forget(self) -> None:
        """Let go of the facts in memory; what is in the file stays."""
        self._memory.clear()

    def close(self) -> None:
        """Write what is pending and let go of the file."""
        self._flush()
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _get(
        self,
        kind: str,
        blob: str,
        read: Callable[[], bytes],
        parse: Callable[[bytes], Any],
        wake: Callable[[Any], Any],
    ) -> Any:
        key = (kind, blob)
        if key not in self._memory:
            stored = self._load(kind, blob)
            if stored is None:
                self._note_missed()
                stored = parse(read())
                self._store(kind, blob, stored)
            self._memory[key] = wake(stored)
        return self._memory[key]

    def after(self, missed: int, call: Callable[[], None] | None) -> None:
        """Call once when so many files more had to be read."""
        self._after = (missed, call)

    def _note_missed(self) -> None:
        left, call = self._after
        self._after = (left - 1, call)
        if left == 1 and call:
            call()

    def _load(self, kind: str, key: str) -> Any:
        if self._database is None:
            return None
        with contextlib.suppress(sqlite3.Error, ValueError, EOFError, TypeError):
            row = self._database.execute("SELECT data FROM facts WHERE kind = ? AND blob = ?", (kind, key)).fetchone()
            return marshal.loads(row[0]) if row else None
        return None

    def _store(self, kind: str, key: str, value: Any) -> None:
        if self._database is None:
            return
        self._pending.append((kind, key, marshal.dumps(value)))
        if len(self._pending) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._database is None or not self._pending:
            return
        with contextlib.suppress(sqlite3.Error), self._database:
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", self._pending)
        self._pending.clear()


def _open(path: Path) -> sqlite3.Connection | None:
    """The database, emptied if it is of another format or too large; None if it cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=30)
        database.execute("PRAGMA synchronous = OFF")
        if not _is_current(database, path):
            database.execute("PRAGMA journal_mode = WAL")
            with database:
                _prepare(database, path)
        return database
    except (sqlite3.Error, OSError):
        return None


def _is_current(database: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds facts of this format already: then opening it writes, and locks, nothing."""
    try:
        return database.execute("SELECT format FROM about").fetchone() == (_FORMAT,) and path.stat().st_size <= _LIMIT
    except sqlite3.OperationalError:
        return False


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Make the file an empty one of this format, unless another process has just done so."""
    database.execute("BEGIN IMMEDIATE")
    if _is_current(database, path):
        return
    database.execute("CREATE TABLE IF NOT EXISTS about (format TEXT)")
    database.execute("DROP TABLE IF EXISTS facts")
    database.execute("DELETE FROM about")
    database.execute("INSERT INTO about VALUES (?)", (_FORMAT,))
    database.execute(
        "CREATE TABLE facts (kind TEXT, blob TEXT, data BLOB, PRIMARY KEY (kind, blob)) WITHOUT ROWID"
    )


def _read_statements(data: bytes) -> Any:
    try:
        return [tuple(fact) for fact in statements.read_facts(Source.decode(data))], None
    except SourceError as error:
        return [], (error.reason, error.line)
    except RecursionError:
        return [], ("is nested too deeply to read", 0)


def _wake_statements(stored: Any) -> tuple[list[Fact], Problem | None]:
    rows, problem = stored
    return [Fact._make(row) for row in rows], problem and tuple(problem)


def _read_names(data: bytes) -> Any:
    try:
        return binding.read_names(Source.decode(data)).pack()
    except (SourceError, RecursionError):
        return False


def _wake_names(stored: Any) -> ModuleNames | None:
    return ModuleNames.unpack(stored) if stored else None
