"""Find a stack and open it, without reading its manifests anew when none of its files changed.

Checking the declarations of 300 entries takes a second and more; reading the bytes of their files takes
some milliseconds. So a stack that was found to be in order is kept in the cache folder under what it was
made from. This module imports none of the code that checks: `list` is to be quick.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Disposition, Entry, Plant, Stack
from stackctl.trees.cache import cache_folder, code_stamp, replace_text
from stackctl.trees.replacing import finish_rewrite

STACK_FILE = "stack.toml"
_TUPLES = ("upstream", "requires", "excludes", "watch")


def find_stack(start: Path) -> Path:
    """The nearest folder at or above `start` with a stack.toml. Raises StackctlError if there is none."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / STACK_FILE).is_file():
            return folder
    raise StackctlError(f"no {STACK_FILE} here or in a folder above", str(start), "name the stack: stackctl --stack DIR ...")


def open_stack(root: Path) -> Stack:
    """The stack below `root`, as `load_stack` gives it. Raises ManifestError with every problem there is.

    Where a run that rewrote several of its files was killed, that is finished first.
    """
    finish_rewrite(root)
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # a store that cannot be read is no error
        key = _key(root)
        kept = json.loads(_store(root).read_bytes())
        if kept["key"] == key:
            return _from_json(kept["stack"], root)
    from stackctl.plants.manifest import load_stack

    stack = load_stack(root)
    with contextlib.suppress(OSError, ValueError, TypeError):
        text = json.dumps({"key": _key(root), "stack": _to_json(stack)})
        if _from_json(json.loads(text)["stack"], root) == stack:  # TOML knows dates, which JSON does not give back
            replace_text(_store(root), text)
    return stack


def _store(root: Path) -> Path:
    name = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:16]
    return cache_folder() / "stacks" / f"{name}.json"


def _key(root: Path) -> str:
    """What a loaded stack is made from: its files' names and bytes, the code that checks it, this Python."""
    made_from = hashlib.sha256(json.dumps([code_stamp(), sys.version]).encode())
    for word in _words(root):
        made_from.update(b"%d:" % len(word))
        made_from.update(word)
    return made_from.hexdigest()


def _words(root: Path) -> Iterator[bytes]:
    yield (root / STACK_FILE).read_bytes()
    for name in ("entries", "patches", "checks/probes"):
        if (root / name).is_dir():
            yield from _below(os.fsencode(root / name))


def _below(folder: bytes) -> Iterator[bytes]:
    """The names of everything below a folder, links' targets and files' bytes."""
    for item in sorted(os.scandir(folder), key=lambda item: item.name):
        if item.name == b"__pycache__":
            continue
        yield item.path
        if item.is_symlink():
            yield os.readlink(item.path)
        if item.is_dir(follow_symlinks=False):
            yield from _below(item.path)
        elif item.is_file():
            with open(item.path, "rb") as file:
                yield file.read()


def _to_json(stack: Stack) -> dict[str, Any]:
    entries = [
        {**vars(entry), "folder": entry.folder.name, "plants": [vars(plant) for plant in entry.plants]} for entry in stack.entries
    ]
    return {**vars(stack), "root": "", "entries": entries}


def _from_json(table: dict[str, Any], root: Path) -> Stack:
    entries = tuple(_entry(row, root / "entries") for row in table["entries"])
    return Stack(**{**table, "root": root, "entries": entries})


def _entry(row: dict[str, Any], folder: Path) -> Entry:
    fields = {key: tuple(row[key]) for key in _TUPLES} | {
        "folder": folder / row["folder"],
        "disposition": Disposition(row["disposition"]),
        "plants": tuple(Plant(**plant) for plant in row["plants"]),
        "adopted_by": {unit: tuple(symbols) for unit, symbols in row["adopted_by"].items()},
        "probes": {role: tuple(names) for role, names in row["probes"].items()},
    }
    return Entry(**{**row, **fields})
