"""Read the probes of a stack: one TOML file each in checks/probes, every mistake reported together."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.model.probe import Probe

_COMMON = ("kind", "title", "distribution")
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")

# kind -> (keys it needs, keys it may have)
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "distribution": (("name",), ("versions",)),
    "symbol": (("target",), ()),
    "parameter": (("target", "parameter"), ()),
    "attribute": (("target",), ()),
    "file": (("path",), ()),
    "variable": (("name",), ("equals",)),
    "flag": (("flag",), ("equals",)),
}


class ProbesError(StackctlError):
    """Every problem of a stack's probes together."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        count = len(problems)
        super().__init__(f"{count} problem{'s' if count > 1 else ''} in the stack's probes\n" + "\n".join(problems))


def load_probes(root: Path) -> dict[str, Probe]:
    """The probes below `root` by name (the file's stem). Raises ProbesError with every problem there is."""
    probes, problems = {}, []
    folder = root / "checks" / "probes"
    for path in sorted(folder.glob("*.toml")) if folder.is_dir() else []:
        table, found = _read(path)
        found = found or list(_check(table))
        problems += [f"{path}: {problem}" for problem in found]
        if not found:
            options = {key: value for key, value in table.items() if key not in _COMMON}
            probes[path.stem] = Probe(path.stem, table["kind"], table["title"], table.get("distribution", ""), options)
    if problems:
        raise ProbesError(problems)
    return probes


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), []
    except OSError as error:
        return {}, [f"cannot be read: {error.strerror}"]
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, [f"is not TOML: {error}"]


def _check(table: Mapping[str, Any]) -> Iterator[str]:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        yield f"no probe kind {kind!r}{_near(str(kind), KINDS)}" if kind else "a probe needs a kind"
        return
    if not table.get("title"):
        yield "a probe needs a title: the question in words"
    required, optional = KINDS[kind]
    for key, value in table.items():
        if key not in (*_COMMON, *required, *optional):
            yield f"kind {kind} has no key {key!r}{_near(key, (*_COMMON, *required, *optional))}"
        elif not isinstance(value, str):
            yield f"{key} must be text"
    yield from (f"kind {kind} needs {key}" for key in required if not table.get(key))
    yield from _check_values(table)


def _check_values(table: Mapping[str, Any]) -> Iterator[str]:
    from stackctl.trees.ranges import check_range

    target, versions, flag = (table.get(key) for key in ("target", "versions", "flag"))
    if isinstance(target, str) and target and not _TARGET.match(target):
        yield f"target {target!r} is not module:Class.function"
    if isinstance(versions, str) and versions and (problem := check_range(versions)):
        yield problem
    if isinstance(flag, str) and flag and not flag.startswith("-"):
        yield f"flag {flag!r} does not start with a dash"


def _near(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
