"""Composed files kept between runs, under everything that they were made from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from stackctl.carry.merge3 import Composed, Half, compose, follow
from stackctl.carry.placing import Refused
from stackctl.carry.proposing import Elsewhere, Proposal, proposals
from stackctl.carry.world import World
from stackctl.model.stack import digest
from stackctl.trees.cache import cache_folder, code_stamp, replace_text
from stackctl.trees.source import SourceError

_MOST = 20  # series kept: a store is some megabytes


@cache
def _own_stamp() -> list[list[object]]:
    """Changes with the code of this folder, which `code_stamp` does not cover."""
    return sorted(
        [path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in Path(__file__).parent.glob("*.py")
    )


class Kept:
    """The store of one series on one release; what cannot be read or written is no error."""

    def __init__(self, made_from: Sequence[Any]) -> None:
        self._path: Path = (
            cache_folder() / "carried" / f"{digest([code_stamp(), _own_stamp(), sys.version, *made_from])}.json"
        )
        self._new = False

    @cached_property
    def _rows(self) -> dict[str, list[Any]]:
        with contextlib.suppress(OSError, ValueError):
            rows = json.loads(self._path.read_bytes())
            if isinstance(rows, dict):
                return rows
        return {}

    def compose(
        self, texts: Sequence[str], world: World, ventured: frozenset[tuple[str, str]] = frozenset()
    ) -> Composed:
        """`compose`, or what it said of the same three texts for the same series before."""
        key = _key([*texts, *(word for pair in sorted(ventured) for word in pair)])
        with contextlib.suppress(TypeError, ValueError, KeyError):
            if row := self._rows.get(key):
                return Composed(row[0], tuple(_half(each) for each in row[1]))
        made = compose(*texts, world, ventured=ventured)
        self._rows[key] = [made.text, [asdict(half) for half in made.halves]]
        self._new = True
        return made

    def follow(
        self, base: str, ours: str, target: str, hosts: dict[str, str], rows: Sequence[tuple[tuple[int, int], tuple[int, int]]],
        world: World,
    ) -> Composed | None:  # fmt: skip
        """`follow`, or what it said before; None where it refuses."""
        key = _key(["follow", base, ours, target, repr(sorted(hosts.items())), repr(list(rows))])
        if key in self._rows:
            with contextlib.suppress(TypeError, ValueError, KeyError, IndexError):
                row = self._rows[key]
                return Composed(row[0], tuple(_half(each) for each in row[1])) if row else None
        try:
            made = Composed(*follow(base, ours, target, hosts, rows, world))
        except (Refused, SourceError):
            made = None
        self._rows[key] = [made.text, [asdict(half) for half in made.halves]] if made else []
        self._new = True
        return made

    def proposals(
        self, texts: Sequence[str], made: Composed, world: World, elsewhere: Elsewhere
    ) -> tuple[Proposal, ...]:
        """`proposals`, or what it said before."""
        key = _key(["proposals", *texts])
        with contextlib.suppress(TypeError, ValueError, KeyError):
            if (rows := self._rows.get(key)) is not None:
                return tuple(Proposal(**row) for row in rows)
        asked = proposals(*texts, made, world, elsewhere)
        self._rows[key] = [asdict(each) for each in asked]
        self._new = True
        return asked

    def save(self) -> None:
        """Write the store if there is anything new, and let the oldest ones go."""
        if not self._new:
            return
        self._new = False
        with contextlib.suppress(OSError, ValueError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(self._path, json.dumps(self._rows))
            others = sorted(self._path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in others[:-_MOST]:
                path.unlink(missing_ok=True)


def _key(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(f"{len(text)}:{text}" for text in texts).encode("utf-8", "surrogatepass")).hexdigest()


def _half(row: dict[str, Any]) -> Half:
    return Half(**{**row, "rows": tuple(row["rows"]), "base_rows": tuple(row["base_rows"])})
