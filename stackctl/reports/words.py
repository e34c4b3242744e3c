"""How a finding is put into words, and somebody else's text made harmless, in every machine's format."""

from __future__ import annotations

import os
from urllib.parse import quote

from stackctl.model.report import Finding

ELLIPSIS = "..."
_TITLE = 80


def title(finding: Finding) -> str:
    """The finding in a few words: "lost 201/convert"."""
    name = "/".join(filter(None, (finding.entry, finding.plant)))
    return cut(f"{finding.kind} {name}".rstrip(), _TITLE)


def sentence(finding: Finding) -> str:
    """Where, what, how it is known and what to do, in one paragraph."""
    parts = [f"{finding.symbol}: {finding.message}" if finding.symbol else finding.message]
    if finding.evidence:
        parts.append(finding.evidence)
    action = finding.action or finding.kind.action
    if action != "none":
        parts.append(f"Do: {action}")
    return ". ".join(part.rstrip(". ") for part in parts) + "."


def clean(text: str, newline: str = " ") -> str:
    """Text without control, format and surrogate characters; line ends become `newline`."""
    if text.isprintable():
        return text
    kept = {"\n": newline, "\t": " "}
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char.isprintable() else kept.get(char, "\N{REPLACEMENT CHARACTER}") for char in text)


def cut(text: str, length: int) -> str:
    """At most `length` characters of a text, the end marked where some are left out."""
    return text if len(text) <= length else text[: length - len(ELLIPSIS)] + ELLIPSIS


def relative_uri(path: str) -> str:
    """A path below the root as a relative URI: percent-encoded, with no scheme, no root and no step upwards."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    return "/".join(quote(_bytes(part), safe="") for part in parts)


def _bytes(name: str) -> bytes:
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:  # a surrogate that stands for no byte: the name is not of a file that was read
        return name.encode(errors="replace")
