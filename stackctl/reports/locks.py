"""Two lock files of an environment, and what moved between them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.probes.environment import normal

_PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(===?|@)\s*([^\s;#]+)")
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([<>~!=][^;#]*)?")


@dataclass(frozen=True)
class Bump:
    """One distribution that is not as it was: `old` or `new` is "" where it came or went."""

    name: str
    old: str
    new: str

    @property
    def move(self) -> str:
        """Name and both versions, as people write them."""
        return f"{self.name} {self.old or 'none'} → {self.new or 'none'}"

    @property
    def word(self) -> str:
        """added, removed, raised, lowered or changed."""
        if not self.old or not self.new:
            return "added" if self.new else "removed"
        from packaging.version import InvalidVersion, Version

        try:
            return "raised" if Version(self.new) > Version(self.old) else "lowered"
        except InvalidVersion:
            return "changed"


def bumps(old: Path, new: Path) -> list[Bump]:
    """What differs between two lock files, by name."""
    before, after = read_lock(old), read_lock(new)
    names = sorted(before.keys() | after.keys())
    return [
        Bump(name, before.get(name, ""), after.get(name, "")) for name in names if before.get(name) != after.get(name)
    ]


def read_lock(path: Path) -> dict[str, str]:
    """Normalised name to version, from pip freeze, a requirements file, uv.lock, poetry.lock or pylock.toml."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StackctlError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise StackctlError("is no lock file: not UTF-8", str(path)) from None
    table = _toml(text)
    found = _packages(table) if table is not None else _requirements(text)
    if not found and text.strip():
        raise StackctlError("no version is pinned in it", str(path), "give pip freeze's output, uv.lock or pylock.toml")
    return found


def _toml(text: str) -> dict[str, Any] | None:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return table if isinstance(table.get("package", table.get("packages")), list) else None


def _packages(table: dict[str, Any]) -> dict[str, str]:
    rows = [row for row in table.get("package", table.get("packages", [])) if isinstance(row, dict) and "name" in row]
    return {normal(str(row["name"])): str(row.get("version") or _source(row)) for row in rows}


def _source(row: dict[str, Any]) -> str:
    """Where a package without a version comes from: pylock's vcs, directory or archive."""
    for key in ("vcs", "directory", "archive"):
        if isinstance(row.get(key), dict):
            return str(row[key].get("commit-id") or row[key].get("url") or row[key].get("path") or key)
    return "?"


def _requirements(text: str) -> dict[str, str]:
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if editable := re.match(r"-e\s+(\S+?)#egg=([A-Za-z0-9._-]+)", line):
            found[normal(editable[2])] = editable[1]
        elif pinned := _PINNED.match(line):
            found[normal(pinned[1])] = pinned[3]
        elif line and line[0] not in "#-" and (named := _NAMED.fullmatch(line.split(";")[0].split(" #")[0].strip())):
            found[normal(named[1])] = (named[2] or "any").strip()
    return found
