"""Where downloads, parsed facts and verdicts are kept between runs, and what they are kept under."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import stackctl


def cache_folder() -> Path:
    """STACKCTL_CACHE if set, else `stackctl` in the user's cache folder (XDG_CACHE_HOME, ~/.cache)."""
    if chosen := os.environ.get("STACKCTL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stackctl"


def upstream_folder() -> Path:
    """The default repository of upstream releases."""
    return cache_folder() / "upstream"


@cache
def code_stamp() -> list[list[object]]:
    """Changes with the code of ours that loads and judges, so that nothing an older one kept is believed."""
    folder = Path(stackctl.__file__).parent
    return [_stamp(path) for name in ("model", "plants", "trees") for path in _modules(folder / name)]


def _modules(folder: Path) -> Iterable[os.DirEntry[str]]:
    return sorted((item for item in os.scandir(folder) if item.name.endswith(".py")), key=lambda item: item.name)


def _stamp(item: os.DirEntry[str]) -> list[object]:
    found = item.stat()
    return [item.name, found.st_size, found.st_mtime_ns]


def replace_text(path: Path, text: str) -> None:
    """Write a file of the cache by renaming a finished one over it: a reader sees the old text or the new one."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
    os.replace(file.name, path)
