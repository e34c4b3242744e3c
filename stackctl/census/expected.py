"""The expected set: which halves the stack declared before a merge, and whether it still does.

Manifests are read as plain TOML, on both sides: an older one need not satisfy today's checks. Patches and files are
compared too: a patch that was recorded anew and holds fewer changes is a manifest that shrank.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
    """One entry's manifest, as far as it says what must be there: plant id to the plant's own table.

    `contents` holds, by plant id, the patch or the file that a plant stands for, where it is one.
    """

    number: int
    path: str
    title: str = ""
    disposition: str = ""
    plants: dict[str, dict[str, Any]] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)

    @property
    def tombstone(self) -> bool:
        """Whether the entry is only watched for absence: its old halves are then gone by decision."""
        return self.disposition in set(Disposition) and Disposition(self.disposition).tombstone


def declared_in(root: Path) -> dict[int, Declared]:
    """What the stack in a folder declares now, by number."""
    paths = [path.relative_to(root).as_posix() for path in sorted((root / "entries").glob("*/entry.toml"))]

    def read(path: str) -> bytes | None:
        return (root / path).read_bytes() if (root / path).is_file() else None

    return _all(paths, read)


def declared_at(repository: Repository, ref: str, folder: str) -> dict[int, Declared] | None:
    """What the stack in `folder` of a repository declared at `ref`; None if there was no stack."""
    tree = GitTree(repository, ref)
    prefix = f"{folder}/" if folder else ""
    if f"{prefix}{STACK_FILE}" not in tree:
        return None
    paths = [path.removeprefix(prefix) for path in tree.paths() if path.startswith(prefix)]

    def read(path: str) -> bytes | None:
        return tree.read(prefix + path) if tree.is_file(prefix + path) else None

    return _all((path for path in paths if _MANIFEST.match(path)), read)


def _all(manifests: Iterable[str], read: Callable[[str], bytes | None]) -> dict[int, Declared]:
    found = [_read(path, read) for path in manifests]
    return {declared.number: declared for declared in found}


def _read(path: str, read: Callable[[str], bytes | None]) -> Declared:
    try:
        table: dict[str, Any] = tomllib.loads((read(path) or b"").decode())
        number = int(table["number"])
    except (ValueError, KeyError, TypeError) as error:
        raise StackctlError(f"cannot tell what it declares: {error}", path) from None
    rows = [row for row in table.get("plant", []) if isinstance(row, dict)]
    plants = {str(row.get("id")): row for row in rows}
    contents = {name: data for name, row in plants.items() if (data := _content(path, row, read)) is not None}
    return Declared(number, path, str(table.get("title", "")), str(table.get("disposition", "")), plants, contents)


def _content(manifest: str, row: dict[str, Any], read: Callable[[str], bytes | None]) -> bytes | None:
    """The patch of a plant, or the entry's own file that it plants; None for a plant that is neither."""
    folder = manifest.removesuffix("entry.toml")
    place = f"patches/{row['patch']}" if "patch" in row else f"{folder}files/{row.get('path')}" if row.get("kind") == "file" else ""
    return read(place) if place and ".." not in place.split("/") else None


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
        return
    if _narrowed(release, was, is_now):
        message = f"plant {plant} is no longer due on {release}: releases = {is_now!r}"
        yield Finding(Verdict.UNDECLARED, message, *where, f"{said} with releases = {was!r}")
        return
    if fewer := _fewer(old.contents.get(plant), new.contents.get(plant)) if "patch" in row else "":
        yield Finding(Verdict.UNDECLARED, f"the patch of plant {plant} holds less: {fewer}", *where, said)
        return
    keys = sorted(key for key in {*row, *now} if row.get(key) != now.get(key))
    if old.contents.get(plant) != new.contents.get(plant):
        keys.append("what is in its patch" if "patch" in row else "what is in its file")
    if keys:
        level = Level.WARNING if len(_listed(now, "dropped")) > len(_listed(row, "dropped")) else Level.NOTE
        yield Finding(Verdict.UNDECLARED, f"plant {plant} is declared otherwise: {', '.join(keys)}", *where, said, level=level)


def _listed(row: dict[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    return value if isinstance(value, list) else []


def _fewer(old: bytes | None, new: bytes | None) -> str:
    """In which files a patch changes fewer places than it did, "" if in none."""
    before, after = _changes(old or b""), _changes(new or b"")
    short = [f"{path} ({after[path]} of {count} places)" for path, count in before.items() if after[path] < count]
    return ", ".join(short)


def _changes(patch: bytes) -> Counter[str]:
    """How many places a patch changes in each file: lines in a row count as one, whatever context it was made with."""
    from unidiff import PatchSet, UnidiffParseError

    try:
        files = PatchSet(io.StringIO(patch.decode("latin-1"), newline="\n"))
    except (UnidiffParseError, ValueError):
        return Counter()  # the check of the manifests says so
    return Counter({file.path: sum(map(_runs, file)) or 1 for file in files})


def _runs(hunk: Iterable[Any]) -> int:
    changed = [not line.is_context for line in hunk]
    return sum(now and not before for before, now in zip([False, *changed], changed, strict=False))


def _narrowed(release: Release | None, old: str, new: str) -> bool:
    if release is None or old == new:
        return False
    try:
        return release.due(old) is True and release.due(new) is not True
    except ValueError:  # a range that is none is said where the manifests are checked
        return False
