"""Lines as facts: for files that are not Python, and for Python that `ast` cannot parse.

Judging by text is coarser (no hosts, no branches), so whoever reads a file this way says so.
"""

from __future__ import annotations

import re

from stackctl.facts.statements import Fact

_NEWLINE = re.compile(rb"\r\n|\r|\n")
_DEFINITION = re.compile(r"(\s*)(?:async\s+def|def|class)\s+(\w+)")


def is_binary(data: bytes) -> bool:
    """Git's own test: a NUL byte early in the file."""
    return b"\0" in data[:8000]


def text_lines(data: bytes) -> list[str]:
    """The lines of a file, without newlines; bytes that are not UTF-8 are escaped, not lost."""
    return [line.decode("utf-8", "surrogateescape") for line in _NEWLINE.split(data)]


def read_text_facts(data: bytes, python: bool = False) -> list[Fact]:
    """One fact per line that is not blank; in Python text the host is guessed from `def` and `class`."""
    facts: list[Fact] = []
    stack: list[tuple[int, str]] = []
    for number, line in enumerate(text_lines(data), 1):
        words = " ".join(line.split())
        if not words:
            continue
        facts.append(Fact(_host(stack, line) if python else "", "line", words, (), number, number))
        if python and (found := _DEFINITION.match(line)):
            stack.append((len(found[1].expandtabs()), found[2]))
    return facts


def _host(stack: list[tuple[int, str]], line: str) -> str:
    """The qualified name that the indentation of `line` puts it in."""
    if line.lstrip().startswith(")"):
        return ".".join(name for _, name in stack)
    indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
    while stack and indent <= stack[-1][0]:
        stack.pop()
    return ".".join(name for _, name in stack)
