"""Three-way comparison of one statement by its tokens."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache

from packaging.version import InvalidVersion, Version

_TOKEN = re.compile(
    r"""[rbufRBUF]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|"""
    r"""\w+|[-+*/%@&|^<>=!:]+|[^\w\s]""",
    re.DOTALL,
)
_WORD = re.compile(r"\\.|\w+|[^\w\s]")
_LONG = 24
_FEW = 4
_PIN = re.compile(r"\b[0-9a-f]{12,}\b|\bv?\d+(?:\.\w+)*|[\"']")
_PUNCTUATION = set("()[]{},:;")


@lru_cache(maxsize=100_000)
def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a normalised statement; a text of several words gives its words.

    Both sides may edit one long message or expected output, each in another line of it.
    """
    found: list[str] = []
    for token in _TOKEN.findall(text):
        inside = _WORD.findall(token) if token[-1] in "\"'" and len(token) > _LONG else ()
        found.extend(inside if len(inside) > _FEW else (token,))
    return tuple(found)


@lru_cache(maxsize=100_000)
def words(text: str) -> Counter[str]:
    """The tokens that carry meaning, counted: brackets, commas and colons do not."""
    return Counter(token for token in tokens(text) if token not in _PUNCTUATION)


def likeness(one: str, other: str) -> float:
    """How much of two statements is the same, 0 to 1 (Dice's coefficient of their tokens)."""
    mine, yours = words(one), words(other)
    total = mine.total() + yours.total()
    return 2 * (mine & yours).total() / total if total else 1.0


def added(before: str, after: str) -> Counter[str]:
    """The tokens that an edit added."""
    return words(after) - words(before)


def kept_edit(before: str, after: str, other: str, merged: str) -> bool:
    """Whether the edit before -> after survives in `merged`, given the other side's text.

    Every token the edit added is there (beyond what the other side had anyway), every token it
    removed is gone, unless the other side holds it too, and what nobody touched is there still.
    """
    base, mine, yours, found = words(before), words(after), words(other), words(merged)
    for token in mine | base:
        if mine[token] == base[token] == yours[token] and found[token] < base[token]:
            return False
        expected = mine[token] + yours[token] - base[token]
        if mine[token] > base[token] and found[token] < min(expected, max(mine[token], yours[token])):
            return False
        if mine[token] < base[token] and found[token] > max(expected, min(mine[token], yours[token])):
            return False
    return True


def replaced_by(before: str, mine: str, yours: str) -> bool:
    """Whether everything the edit before -> yours touched was itself replaced by before -> mine.

    Then keeping mine is a decision, not an oversight: the two edits exclude each other.
    """
    own = [span for span in _spans(before, mine) if span[1] > span[0]]
    return all(
        any(first <= start and end <= last for first, last in own) for start, end in _spans(before, yours)
    )


def _spans(before: str, after: str) -> list[tuple[int, int]]:
    """The spans of `before`'s tokens that an edit changed; an insertion is an empty span."""
    matcher = SequenceMatcher(None, tokens(before), tokens(after), autojunk=False)
    return [(start, end) for tag, start, end, _, _ in matcher.get_opcodes() if tag != "equal"]


def same_but_pins(mine: str, yours: str) -> bool:
    """Whether two lines of a text file differ in nothing but pins (versions, hashes, quotes), and yours is no older."""
    if _PIN.sub("#", mine) != _PIN.sub("#", yours):
        return False
    pairs = zip(_PIN.findall(mine), _PIN.findall(yours), strict=True)
    return all(_no_older(one, other) for one, other in pairs if one != other)


def _no_older(one: str, other: str) -> bool:
    try:
        return Version(other) >= Version(one)
    except InvalidVersion:
        return True


def explained(mine: str, merged: str, gone: Counter[str], new: Counter[str]) -> bool:
    """Whether `merged` is `mine` rewritten with the other side's own changes of names.

    Every token of mine that is missing is one the other side took out of this file, and every
    token that is new is one it brought. A mere drop explains nothing.
    """
    missing, brought = words(mine) - words(merged), words(merged) - words(mine)
    return bool(brought) and all(t in gone for t in missing) and all(t in new for t in brought)
