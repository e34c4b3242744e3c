"""Comments of one Python file and what each explains."""

from __future__ import annotations

import re

from stackctl.facts.statements import Fact
from stackctl.trees.source import Source

FORMAT = 1  # of the facts; raise it when they change

# Strings first, so that a `#` inside one is not taken for a comment. Python's own tokenizer says
# the same and takes fifty times as long.
_TOKEN = re.compile(
    r"""\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'|#[^\r\n]*""",
    re.DOTALL,
)
_NEWLINE = re.compile(r"\r\n|\r|\n")


def read_comments(source: Source, hosts: list[tuple[int, int, str]]) -> list[Fact]:
    """One fact per comment line; `hosts` are (first line, last line, qualified name), outer before inner."""
    facts, line, last = [], 1, 0
    for found in _TOKEN.finditer(source.text):
        if not found[0].startswith("#"):
            continue
        line += len(_NEWLINE.findall(source.text, last, found.start()))
        last = found.start()
        words = " ".join(found[0].lstrip("#").split())
        if any(letter.isalnum() for letter in words):
            facts.append(Fact(_host_at(hosts, line), "comment", words, (), line, line))
    return facts


def _host_at(hosts: list[tuple[int, int, str]], line: int) -> str:
    """The innermost definition around `line`."""
    found = ""
    for first, last, name in hosts:
        if first <= line <= last:
            found = name
    return found


def host_ranges(facts: list[Fact]) -> list[tuple[int, int, str]]:
    """The line ranges of the definitions among `facts`."""
    ranges = []
    for fact in facts:
        if fact.kind == "definition":
            name = fact.text.rpartition(" ")[2]
            ranges.append((fact.line, fact.end, f"{fact.host}.{name}" if fact.host else name))
    return ranges
