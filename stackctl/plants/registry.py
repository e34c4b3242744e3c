"""Every plant kind by its name."""

from __future__ import annotations

from functools import cache

from stackctl.plants.kind import Kind


@cache
def kinds() -> dict[str, Kind]:
    """The built-in kinds. Imported on first use: `list` and `--help` need none of them."""
    from stackctl.plants.argument import Argument
    from stackctl.plants.definition import Definition
    from stackctl.plants.file import File
    from stackctl.plants.hunk import Hunk
    from stackctl.plants.imports import Import
    from stackctl.plants.property import Property
    from stackctl.plants.rename import Rename
    from stackctl.plants.reroute import Reroute
    from stackctl.plants.series import Series
    from stackctl.plants.statement import Statement
    from stackctl.plants.tombstone import Tombstone

    found = (File, Definition, Import, Reroute, Argument, Statement, Property, Rename, Tombstone, Hunk, Series)
    return {kind.name: kind() for kind in found}
