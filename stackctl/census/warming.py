"""A second process for an audit that finds few facts kept: it reads the files from the other end.

It takes the files in reverse order, reads what the audit will ask for and holds none of it.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from stackctl.census import process
from stackctl.census.sides import SIDES, Sides
from stackctl.facts.cache import FactsCache

_AFTER = 60  # files that had to be read: about as long as the helper takes to start


@contextlib.contextmanager
def warmed(sides: Sides) -> Iterator[None]:
    """Get help as soon as it is clear that much is to be read."""
    helper: subprocess.Popen[bytes] | None = None
    trees = [process.named(sides.tree(side)) for side in SIDES]
    trees[3] = trees[3] or trees[1]  # a merge that is in memory only differs from ours in little

    def start() -> None:
        nonlocal helper
        helper = process.start(__name__, [str(sides.cache.path), trees])

    if sides.cache.path and all(trees) and process.cores() > 1 and not sides.backwards:
        sides.cache.after(_AFTER, start)
    try:
        yield
    finally:
        sides.cache.after(0, None)
        process.stop(helper)


def main() -> None:
    """Read what an audit of the task on stdin needs, last file first."""
    from stackctl.census.moves import Moves
    from stackctl.census.rules import RULES
    from stackctl.census.rules.context import Context

    path, trees = process.task()
    cache = FactsCache(Path(path))
    sides = Sides(*map(process.tree_of, trees), cache=cache, backwards=True)
    for name in sides.differing:
        if not sides.only_theirs(name):
            for side in SIDES:
                sides.facts(side, name)
            cache.forget()
    context = Context(sides, dict.fromkeys(SIDES, Moves()))
    for rule in RULES:  # their findings, made without the moves, are not looked at
        deque(rule(context), maxlen=0)
        cache.forget()
    cache.close()


if __name__ == "__main__":
    main()
