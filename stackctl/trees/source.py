"""The text of one Python file: decoded as Python decodes it, split into lines as Python splits them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property

# str.splitlines also breaks at form feeds and other separators, which Python's tokenizer does not.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BOM = b"\xef\xbb\xbf"
_FAITHFUL = frozenset({"utf-8", "iso-8859-1", "ascii"})  # what decodes is encoded to the very same bytes


class SourceError(ValueError):
    """A file that Python cannot decode or parse: `reason` and `line` (0 if unknown)."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True)
class Source:
    """One Python file. `text` has its original newlines; a BOM is remembered and put back by `encode`."""

    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @classmethod
    def decode(cls, data: bytes) -> Source:
        """Read bytes by PEP 263. Raises SourceError for an unknown encoding or undecodable bytes."""
        bom = data.startswith(_BOM)
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            encoding = "utf-8" if encoding == "utf-8-sig" else encoding
            source = cls((data[len(_BOM) :] if bom else data).decode(encoding), encoding, bom)
            faithful = encoding in _FAITHFUL or source.encode() == data
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise SourceError(f"cannot be decoded: {error}") from None
        if not faithful:  # utf-7, punycode and others spell one text in many ways
            raise SourceError(f"cannot be decoded: {encoding} does not give the same bytes back")
        return source

    def encode(self, text: str | None = None) -> bytes:
        """The bytes of `text` (default: this source's own) in this file's encoding, BOM included."""
        return (_BOM if self.bom else b"") + (self.text if text is None else text).encode(self.encoding)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their newlines, as Python's own tokenizer counts them."""
        return _LINE.findall(self.text)

    @cached_property
    def newline(self) -> str:
        """The file's most frequent newline; "\\n" for a file without one."""
        counts = dict.fromkeys(("\n", "\r\n", "\r"), 0)
        for line in self.lines:
            for newline in ("\r\n", "\n", "\r"):
                if line.endswith(newline):
                    counts[newline] += 1
                    break
        return max(counts, key=lambda newline: counts[newline])

    @cached_property
    def module(self) -> ast.Module:
        """The parsed module. Raises SourceError with the line that Python complains of."""
        try:
            with warnings.catch_warnings():
                # `1if x else y` and invalid escapes warn; a warning about somebody's tree is noise here.
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            raise SourceError(f"does not parse: {error.msg}", error.lineno or 0) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise SourceError(f"does not parse: {error}") from None

    def column(self, line: int, offset: int) -> int:
        """The character column of a UTF-8 byte offset, which is what `ast` counts in."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))
