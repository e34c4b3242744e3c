"""The expected set: which halves the stack declared before a merge, and whether it still does.

Manifests are read as plain TOML, on both sides: an older one need not satisfy today's checks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.model.report import Finding
from stackctl.model.stack import Disposition
from stackctl.model.verdict import Level, Verdict
from stackctl.plants.stacks import STACK_FILE
from stackctl.trees.git import Repository
from stackctl.trees.release import Release
from stackctl.trees.tree import GitTree

_MANIFEST = re.compile(r"entries/[^/]+/entry\.toml\Z")


@dataclass(frozen=True)
class Declared:
    """One entry's manifest, as far as it says what must be there: plant id to the plant's own table."""

    number: int
    path: str
    title: str = ""
    disposition: str = ""
    plants: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def tombstone(self) -> bool:
        """Whether the entry is only watched for absence: its old halves are then gone by decision."""
        return self.disposition in set(Disposition) and Disposition(self.disposition).tombstone


def declared_in(root: Path) -> dict[int, Declared]:
    """What the stack in a folder declares now, by number."""
    paths = sorted((root / "entries").glob("*/entry.toml"))
    return _all((path.relative_to(root).as_posix(), path.read_bytes()) for path in paths)


def declared_at(repository: Repository, ref: str, folder: str) -> dict[int, Declared] | None:
    """What the stack in `folder` of a repository declared at `ref`; None if there was no stack."""
    tree = GitTree(repository, ref)
    prefix = f"{folder}/" if folder else ""
    if f"{prefix}{STACK_FILE}" not in tree:
        return None
    paths = [path.removeprefix(prefix) for path in tree.paths() if path.startswith(prefix)]
    return _all((path, tree.read(prefix + path)) for path in paths if _MANIFEST.match(path))


def _all(manifests: Iterable[tuple[str, bytes]]) -> dict[int, Declared]:
    found = [_read(path, data) for path, data in manifests]
    return {declared.number: declared for declared in found}


def _read(path: str, data: bytes) -> Declared:
    try:
        table: dict[str, Any] = tomllib.loads(data.decode())
        number = int(table["number"])
    except (ValueError, KeyError, TypeError) as error:
        raise StackctlError(f"cannot tell what it declares: {error}", path) from None
    rows = [row for row in table.get("plant", []) if isinstance(row, dict)]
    plants = {str(row.get("id")): row for row in rows}
    return Declared(number, path, str(table.get("title", "")), str(table.get("disposition", "")), plants)


def shrunken(before: dict[int, Declared], now: dict[int, Declared], release: Release | None, ref: str) -> Iterator[Finding]:
    """A finding for each half of `before` that `now` does not declare, or no longer for this release.

    One that is declared otherwise is a note: an anchor moves with upstream, but a person should have seen it.
    """
    for number, old in sorted(before.items()):
        new = now.get(number)
        if new is None:
            message = f"entry {number} ({old.title}) is declared no more, with {len(old.plants)} halves"
            yield Finding(Verdict.UNDECLARED, message, old.path, 0, "", str(number), "", f"declared at {ref}")
        elif old.tombstone or not new.tombstone:  # else retired or superseded, with a reason: load_stack has seen to that
            for plant, row in old.plants.items():
                yield from _plant(old, new, plant, row, release, f"declared at {ref}")


def _plant(old: Declared, new: Declared, plant: str, row: dict[str, Any], release: Release | None, said: str) -> Iterator[Finding]:
    now = new.plants.get(plant)
    where = (new.path, 0, "", str(old.number), plant)
    was, is_now = (str((table or {}).get("releases", "")) for table in (row, now))
    if now is None:
        yield Finding(Verdict.UNDECLARED, f"plant {plant} is declared no more", *where, said)
    elif _narrowed(release, was, is_now):
        message = f"plant {plant} is no longer due on {release}: releases = {is_now!r}"
        yield Finding(Verdict.UNDECLARED, message, *where, f"{said} with releases = {was!r}")
    elif keys := sorted(key for key in {*row, *now} if row.get(key) != now.get(key)):
        yield Finding(Verdict.UNDECLARED, f"plant {plant} is declared otherwise: {', '.join(keys)}", *where, said, level=Level.NOTE)


def _narrowed(release: Release | None, old: str, new: str) -> bool:
    if release is None or old == new:
        return False
    try:
        return release.due(old) is True and release.due(new) is not True
    except ValueError:  # a range that is none is said where the manifests are checked
        return False
