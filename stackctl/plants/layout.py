"""Lay code out as Black would: on one line if it fits, else the parts of its bracket below it."""

from __future__ import annotations

import re
from dataclasses import dataclass

WIDTH = 88
_STEP = "    "


@dataclass(frozen=True)
class Bracket:
    """A call or another bracket that can be broken: what stands before and after its parts."""

    head: str
    parts: tuple[str | Bracket, ...]
    tail: str = ")"
    comma: str = ","


Part = str | Bracket


def call(head: str, parts: tuple[Part, ...]) -> Bracket:
    """A call of `head`."""
    return Bracket(f"{head}(", parts)


def prefixed(text: str, part: Part) -> Part:
    """A part with text in front of it."""
    return text + part if isinstance(part, str) else Bracket(text + part.head, part.parts, part.tail, part.comma)


def flat(part: Part) -> str:
    """A part on one line, as far as it can be."""
    if isinstance(part, str):
        return one_line(part)
    return part.head + f"{part.comma} ".join(map(flat, part.parts)) + part.tail


def lay_out(part: Part, indent: str, before: int, after: int, margin: int = 0) -> str:
    """`part` as text, whose continuation lines carry `indent`.

    `before` and `after` are the columns taken on its first and last line by what surrounds it;
    `margin` is the width of the block's own indentation, which libcst puts in front of `indent`.
    """
    line = flat(part)
    if "\n" not in line and before + len(line) + after <= WIDTH:
        return line
    if isinstance(part, str):
        return _reindented(part, indent) if "\n" in part else line
    inner = indent + _STEP
    used = margin + len(inner)
    joined = f"{part.comma} ".join(map(flat, part.parts))
    if part.comma and "\n" not in joined and used + len(joined) <= WIDTH:
        return f"{part.head}\n{inner}{joined}\n{indent}{part.tail}"
    rows = [f"{inner}{lay_out(piece, inner, used, 1, margin)}{part.comma}\n" for piece in part.parts]
    return f"{part.head}\n{''.join(rows)}{indent}{part.tail}"


def _reindented(text: str, indent: str) -> str:
    """Text over several lines, moved so that its last line, a closing bracket, is at `indent`."""
    first, *rest = text.split("\n")
    shift = len(indent) - (len(rest[-1]) - len(rest[-1].lstrip()))
    moved = [" " * max(0, len(row) - len(row.lstrip()) + shift) + row.lstrip() for row in rest]
    return "\n".join([first, *moved])


def one_line(text: str) -> str:
    """Code inside brackets on one line. Text with a comment or a string over lines is left as it is."""
    if "\n" not in text or "#" in text or '"""' in text or "'''" in text or "\\\n" in text:
        return text
    text = re.sub(r"\s*\n\s*", " ", text)
    return re.sub(r",? ([)\]}])", r"\1", re.sub(r"([(\[{]) ", r"\1", text))
