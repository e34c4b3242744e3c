"""Where downloads and parsed facts are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """STACKCTL_CACHE if set, else `stackctl` in the user's cache folder (XDG_CACHE_HOME, ~/.cache)."""
    if chosen := os.environ.get("STACKCTL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stackctl"


def upstream_folder() -> Path:
    """The default repository of upstream releases."""
    return cache_folder() / "upstream"
