"""The results in a smoke run's folder: JUnit files, and JSON objects with `problems` or a report of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.reports.junit_read import read_junit

Result = tuple[str, str, str]  # name, passed | failed | not-judged, detail


def read_smoke(folder: Path) -> Iterator[Result]:
    """Every result in the folder, in the order of the files' names."""
    if not folder.is_dir():
        raise StackctlError("no such folder", str(folder), "name the folder of a smoke run")
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.xml")]):
        name = path.relative_to(folder).as_posix()
        yield _junit(path, name) if path.suffix == ".xml" else _json(path, name)


def _junit(path: Path, name: str) -> Result:
    try:
        outcomes = list(read_junit(path).values())
    except StackctlError as error:
        return name, "not-judged", error.message
    bad = [word for word in outcomes if word in ("failed", "error")]
    return name, "failed" if bad else "passed", f"{len(outcomes)} tests, {len(bad)} failed"


def _json(path: Path, name: str) -> Result:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return name, "not-judged", f"cannot be read: {error}"
    problems = _problems(table) if isinstance(table, dict) else None
    if problems == [] and table.get("verdict") == "not-judged":
        return name, "not-judged", "; ".join(map(str, table.get("not_judged", [])[:5])) or "nothing of it was run"
    if problems is None:
        return name, "not-judged", "says nothing of a result"
    return name, "failed" if problems else "passed", "; ".join(map(str, problems[:5])) or _figures(table)


def _problems(table: dict[str, Any]) -> list[Any] | None:
    for key in ("problems", "failures", "errors"):
        if isinstance(table.get(key), list):
            return table[key]
    if isinstance(table.get("findings"), list):
        return [
            row.get("message", "") for row in table["findings"] if isinstance(row, dict) and row.get("level") == "error"
        ]
    for key in ("passed", "ok"):
        if isinstance(table.get(key), bool):
            return [] if table[key] else [f"{key}: false"]
    return None


def _figures(table: dict[str, Any]) -> str:
    plain = [
        (key, value) for key, value in table.items() if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return ", ".join(f"{key} {value:g}" for key, value in plain[:6])
