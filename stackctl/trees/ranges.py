"""Ranges of releases, as packaging writes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


@cache
def parse_range(releases: str) -> SpecifierSet:
    """A range such as ">=0.5.21,<0.5.24". Raises InvalidSpecifier."""
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(releases)


def check_range(releases: str) -> str | None:
    """Why `releases` is not a range of releases, or None if it is one."""
    from packaging.specifiers import InvalidSpecifier

    try:
        specifiers = parse_range(releases)
    except InvalidSpecifier:
        return f"{releases!r} is not a range of releases such as '>=0.5.21,<0.5.24'"
    bounds = [each.version.removesuffix(".*") for each in specifiers]
    tried = [*bounds, *(f"{bound}.1" for bound in bounds), *(f"{bound}.post1" for bound in bounds if ".post" not in bound), "0", "999999"]
    return None if any(specifiers.contains(each, prereleases=True) for each in tried) else f"no release is in {releases!r}"
