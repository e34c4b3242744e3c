"""What the composer of one file may ask about the rest of upstream's new tree."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

_STAR = re.compile(rb"^from ([\w.]+) import \*", re.MULTILINE)
_IMPORT = re.compile(r"(?:from (\S+) )?import (\S+)(?: as \S+)?$")


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

    def still_has(self, line: str) -> str:
        """How it is known that an import line works in the result; "" if it is not known.

        The name must be bound at the top level of the module, which is more than that it occurs in it.
        """
        found = _IMPORT.match(line)
        if found is None or self.read is None:
            return ""
        module, name = found[1] or found[2], found[2] if found[1] else ""
        if module.split(".")[0] in sys.stdlib_module_names:
            return f"{module} is Python's own"
        if module.split(".")[0] not in self.packages or (data := self.read(module)) is None:
            return ""
        if not name or self.read(f"{module}.{name}") is not None:
            return f"the new release has the module {module if not name else f'{module}.{name}'}"
        for there, text in [(module, data), *self._all_of(data, name)]:
            if row := _bound_at(text, name):
                return f"{there} still has {name}, at line {row}"
        return ""

    def _all_of(self, data: bytes, name: str) -> Iterator[tuple[str, bytes]]:
        """The modules of which a module imports all; one that says itself what all is (`__all__`) is not judged."""
        for found in _STAR.findall(data) if self.read is not None and not name.startswith("_") else ():
            there = self.read(found.decode())
            if there is not None and b"__all__" not in there:
                yield found.decode(), there

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


def _bound_at(data: bytes, name: str) -> int:
    """The line of a module at whose top level, branches included, a name is bound; 0 if it is not."""
    try:
        todo: list[ast.AST] = list(ast.parse(data).body)
    except (SyntaxError, ValueError, RecursionError):
        return 0
    while todo:
        node = todo.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == name:
                return node.lineno
        elif isinstance(node, ast.alias):
            if (node.asname or node.name).split(".")[0] == name:
                return node.lineno
        elif isinstance(node, ast.Name):
            if node.id == name and isinstance(node.ctx, ast.Store):
                return node.lineno
        else:
            todo = [*ast.iter_child_nodes(node), *todo]
    return 0


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
