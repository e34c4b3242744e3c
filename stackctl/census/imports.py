"""Imports rewritten to follow a module, or a name, that upstream moved."""

from __future__ import annotations

import re

from stackctl.census.sides import Sides
from stackctl.trees.tree import Tree

_FROM = re.compile(r"^from (\.*[\w.]*) import (\w+)(?: as (\w+))?$")


def import_followed(sides: Sides, before: str, after: str) -> bool:
    """Whether `after` imports what `before` did, from where upstream has moved it.

    The name was in the old module on base, upstream has it there no longer, and has it in the new one.
    """
    old, new = _FROM.match(before), _FROM.match(after)
    if old is None or new is None or old[2] != new[2] or (old[3] or old[2]) != (new[3] or new[2]):
        return False
    name = old[2].encode()
    return _has(sides.base, old[1], name) and not _has(sides.theirs, old[1], name) and _has(sides.theirs, new[1], name)


def _has(tree: Tree, module: str, name: bytes) -> bool:
    """Whether a file that `module` may mean binds `name`, as far as its bytes tell."""
    tail = module.lstrip(".").replace(".", "/")
    endings = (f"/{tail}.py", f"/{tail}/__init__.py")
    word = re.compile(rb"^[^#]*\b%s\b" % re.escape(name), re.MULTILINE)
    paths = [path for path in tree.paths() if f"/{path}".endswith(endings) and tree.is_file(path)]
    return any(word.search(tree.read(path)) for path in paths)
