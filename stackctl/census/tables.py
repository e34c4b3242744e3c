"""The stack's own small TOML files: read, checked for keys and types, every problem with its file and line."""

from __future__ import annotations

import datetime
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackctl.plants.manifest import ManifestError, Problem

_TYPES: dict[type, str] = {
    str: "text", int: "a whole number", list: "a list", dict: "a table", datetime.date: "a date such as 2027-01-31",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """One table of a file: its values, and the line that it starts on."""

    values: Mapping[str, Any]
    path: Path
    line: int = 1

    def check(self, known: Mapping[str, type], required: tuple[str, ...] = ()) -> Iterator[Problem]:
        """Keys that there are not, values of another type, keys that are missing or empty."""
        for key, value in self.values.items():
            if key not in known:
                near = difflib.get_close_matches(key, list(known), 1, 0.5)
                yield self.problem(f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
            elif not isinstance(value, known[key]) or isinstance(value, (bool, datetime.datetime)):
                yield self.problem(f"{key} must be {_TYPES[known[key]]}")
        for key in required:
            if self.values.get(key) in (None, "", []):
                yield self.problem(f"{key} is missing")

    def problem(self, message: str) -> Problem:
        """A problem of this table."""
        return Problem(self.path, self.line, message)

    def text(self, key: str) -> str:
        """A text, "" if it is not there."""
        return str(self.values.get(key, ""))

    def tables(self, key: str, source: str) -> Iterator[Table]:
        """The tables of `[[key]]` in this one, whose text is `source`, with their lines."""
        lines = [n for n, line in enumerate(source.splitlines(), 1) if re.match(rf"\s*\[\[\s*{re.escape(key)}\s*\]\]", line)]
        found = self.values.get(key, [])
        for index, values in enumerate(found if isinstance(found, list) else []):
            line = lines[index] if index < len(lines) else self.line
            yield Table(values if isinstance(values, dict) else {"": values}, self.path, line)


def read_table(path: Path) -> tuple[Table, str]:
    """A file's table and its text. Raises ManifestError, with the line, for what is not TOML."""
    try:
        text = path.read_bytes().decode()
        return Table(tomllib.loads(text), path), text
    except OSError as error:
        problem = Problem(path, 1, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        problem = Problem(path, 1, f"is not UTF-8: {error.reason} at byte {error.start}")
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        problem = Problem(path, int(line[1]) if line else 1, f"is not TOML: {error}")
    raise ManifestError([problem])


def quoted(text: str) -> str:
    """A text as a TOML string on one line."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    body = "".join(escapes.get(char) or (char if char.isprintable() else f"\\U{ord(char):08x}") for char in text)
    return f'"{body}"'
