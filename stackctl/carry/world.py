"""What the composer of one file may ask about the rest of upstream's new tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass
class World:
    """Modules by dotted name: where they went, whether they are there, what they hold.

    `read` gives a module's bytes in the result, None if it is not there, and `had` those in the fork before;
    `packages` are the top-level packages that the tree owns. What the fork did not have either (a generated
    file, somebody else's package) is not judged.
    """

    moved: dict[str, str] = field(default_factory=dict)
    read: Callable[[str], bytes | None] | None = None
    had: Callable[[str], bytes | None] | None = None
    packages: frozenset[str] = frozenset()

    def lacks(self, line: str) -> bool:
        """Whether an import line ("from a.b import c", "import a.b") of the tree's own cannot be satisfied."""
        found = re.match(r"(?:from (\S+) )?import (\S+)", line)
        if found is None or self.read is None:
            return False
        module, name = found[1] or found[2], found[2] if found[1] else ""
        if module.split(".")[0] not in self.packages:
            return False
        return not _offers(self.read, module, name) and (self.had is None or _offers(self.had, module, name))

    def rewritten(self, text: str, rows: Iterable[int] | None = None) -> str:
        """The text with imports of moved modules changed, on some lines or on all."""
        if not self.moved:
            return text
        wanted = None if rows is None else set(rows)
        lines = text.splitlines(keepends=True)
        for row, line in enumerate(lines):
            if (wanted is None or row in wanted) and ("import" in line):
                lines[row] = self._line(line)
        return "".join(lines)

    def _line(self, line: str) -> str:
        found = re.match(r"(\s*(?:from|import)\s+)([\w.]+)(.*)", line, re.DOTALL)
        if found is None or found[2] not in self.moved:
            return line
        if found[1].strip() == "import" and " as " not in found[3]:
            return line  # its uses are spelt with the old name
        return f"{found[1]}{self.moved[found[2]]}{found[3]}"


def _offers(read: Callable[[str], bytes | None], module: str, name: str) -> bool:
    """Whether a module is there and has a name in its text, or as a module below it."""
    data = read(module)
    if data is None:
        return False
    return (
        not name
        or name == "*"
        or bool(re.search(rb"\b%s\b" % re.escape(name.encode()), data))
        or read(f"{module}.{name}") is not None
    )
