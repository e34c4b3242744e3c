"""Lay a call out as Black would: on one line if it fits, else its arguments below it."""

from __future__ import annotations

import re
from dataclasses import dataclass

WIDTH = 88
_STEP = "    "


@dataclass(frozen=True)
class CallText:
    """A call to print: what stands before the bracket, and each argument as text or as a call to break."""

    head: str
    arguments: tuple[str | CallText, ...]

    def flat(self) -> str:
        """The call on one line."""
        return f"{self.head}({', '.join(flat(argument) for argument in self.arguments)})"


def flat(part: str | CallText) -> str:
    """A part on one line."""
    return part if isinstance(part, str) else part.flat()


def lay_out(part: str | CallText, indent: str, before: int, after: int, margin: int = 0) -> str:
    """`part` as text, whose continuation lines carry `indent`.

    `before` and `after` are the columns taken on its first and last line by what surrounds it;
    `margin` is the width of the block's own indentation, which libcst puts in front of `indent`.
    """
    line = flat(part)
    if isinstance(part, str) or ("\n" not in line and before + len(line) + after <= WIDTH):
        return line
    inner = indent + _STEP
    used = margin + len(inner)
    joined = ", ".join(flat(argument) for argument in part.arguments)
    if "\n" not in joined and used + len(joined) <= WIDTH:
        return f"{part.head}(\n{inner}{joined}\n{indent})"
    rows = [f"{inner}{lay_out(argument, inner, used, 1, margin)},\n" for argument in part.arguments]
    return f"{part.head}(\n{''.join(rows)}{indent})"


def one_line(text: str) -> str:
    """Code inside brackets on one line. Text with a comment or a string over lines is left as it is."""
    if "\n" not in text or "#" in text or '"""' in text or "'''" in text or "\\\n" in text:
        return text
    text = re.sub(r"\s*\n\s*", " ", text)
    return re.sub(r",? ([)\]}])", r"\1", re.sub(r"([(\[{]) ", r"\1", text))
