"""Ranges of releases, as packaging writes them."""

from __future__ import annotations

from functools import cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet


@cache
def parse_range(releases: str) -> SpecifierSet:
    """A range such as ">=0.5.21,<0.5.24". Raises InvalidSpecifier."""
    return SpecifierSet(releases)


def check_range(releases: str) -> str | None:
    """Why `releases` is not a range of releases, or None if it is one."""
    try:
        parse_range(releases)
    except InvalidSpecifier:
        return f"{releases!r} is not a range of releases such as '>=0.5.21,<0.5.24'"
    return None
