# SPDX-License-Identifier: Apache-2.0
"""What a regular expression can never match, read from its text.

For the expressions by which tokenizers split (Oniguruma's syntax, the subset that is
found in tokenizer.json files). An expression is read into its positions and which of
them may follow which (Glushkov's construction); what is not understood is refused.
Questions are about characters whose properties no Unicode version has changed.
Standard library only.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Callable

Chars = frozenset[str]
_Test = Callable[[str], bool]
_MANY = float("inf")
_NONE: frozenset[int] = frozenset()


class NotUnderstood(Exception):
    """The part of a regular expression that is not understood."""


class SplitRegex:
    """Questions to one expression. NotUnderstood when it cannot be read."""

    def __init__(self, pattern: str) -> None:
        reader = _Reader(list(reversed(pattern)))
        root = reader.alternation()
        if reader.left or root.nullable:
            raise NotUnderstood(f"the regular expression {pattern!r}")
        self._atoms = reader.atoms
        self._looks = reader.looks
        self._follow = reader.follow
        self._alone = root.alone
        self._known: dict[Chars, frozenset[int]] = {}

    @property
    def looks_around(self) -> bool:
        """Whether it has lookarounds."""
        return bool(self._looks)

    @property
    def is_one_character(self) -> bool:
        """Whether each match is one character."""
        return len(self._atoms) == len(self._alone) and not self._follow

    def may_match(self, chars: Chars) -> bool:
        """Whether a match may hold one of `chars`."""
        return bool(self._positions(chars))

    def joins(self, left: Chars, right: Chars) -> bool:
        """Whether a match may hold one of `left` right before one of `right`."""
        ends = self._positions(right)
        return any(self._after(one) & ends for one in self._positions(left))

    def looks_after(self, chars: Chars) -> bool:
        """Whether a lookaround may be tried right after one of `chars`."""
        return any(self._after(one) & self._looks for one in self._positions(chars))

    def covers(self, chars: Chars) -> bool:
        """Whether each of `chars` is in some match wherever it stands."""
        tests = [self._atoms[position] for position in self._alone]
        return all(any(test(char) for test in tests) for char in chars)

    def _after(self, position: int) -> set[int]:
        return self._follow.get(position, set())

    def _positions(self, chars: Chars) -> frozenset[int]:
        if chars not in self._known:
            found = (i for i, test in enumerate(self._atoms) if any(map(test, chars)))
            self._known[chars] = frozenset(found) - self._looks
        return self._known[chars]


@dataclass(frozen=True)
class _Node:
    """A part of an expression: which positions may stand first, last, and alone.

    nullable: may match nothing, lookarounds taken as true; empty: so, and has none.
    """

    nullable: bool
    empty: bool
    first: frozenset[int] = _NONE
    last: frozenset[int] = _NONE
    alone: frozenset[int] = _NONE


class _Reader:
    """Reads an expression: alternation, concatenation, repetition, one atom.

    `left` is what is left to read, its end first.
    """

    def __init__(self, left: list[str], ignore_case: bool = False) -> None:
        self.left = left
        self.atoms: list[_Test] = []
        self.looks: set[int] = set()
        self.follow: dict[int, set[int]] = {}
        self._ignore_case = ignore_case

    def alternation(self) -> _Node:
        nodes = [self._concatenation()]
        while self._take("|"):
            nodes.append(self._concatenation())
        return _Node(
            any(node.nullable for node in nodes),
            any(node.empty for node in nodes),
            _NONE.union(*(node.first for node in nodes)),
            _NONE.union(*(node.last for node in nodes)),
            _NONE.union(*(node.alone for node in nodes)),
        )

    def _concatenation(self) -> _Node:
        node = _Node(True, True)
        while self.left and self.left[-1] not in "|)":
            node = self._then(node, self._repetition())
        return node

    def _then(self, one: _Node, two: _Node) -> _Node:
        self._link(one.last, two.first)
        alone = (one.alone if two.empty else _NONE) | (
            two.alone if one.empty else _NONE
        )
        return _Node(
            one.nullable and two.nullable,
            one.empty and two.empty,
            one.first | two.first if one.nullable else one.first,
            two.last | one.last if two.nullable else two.last,
            alone,
        )

    def _link(self, before: frozenset[int], after: frozenset[int]) -> None:
        for position in before:
            self.follow.setdefault(position, set()).update(after)

    def _repetition(self) -> _Node:
        node = self._atom()
        least, most = self._counts()
        if most > 1:
            self._link(node.last, node.first)
        none = least == 0
        alone = node.alone if least <= 1 else _NONE
        return _Node(
            node.nullable or none, node.empty or none, node.first, node.last, alone
        )

    def _counts(self) -> tuple[int, float]:
        symbols = {"?": (0, 1.0), "*": (0, _MANY), "+": (1, _MANY)}
        if self.left and self.left[-1] in symbols:
            counts = symbols[self.left.pop()]
        elif self._take("{"):
            counts = self._braces()
        else:
            return 1, 1.0
        if self.left and self.left[-1] in "+*{":
            raise NotUnderstood("a possessive or doubled quantifier")
        self._take("?")  # lazy: the same matches to choose from
        return counts

    def _braces(self) -> tuple[int, float]:
        text = self._until("}")
        match = re.fullmatch(r"(\d+)(,?)(\d*)", text)
        if match is None:
            raise NotUnderstood(f"the quantifier {{{text}}}")
        least = int(match[1])
        return least, int(match[3]) if match[3] else _MANY if match[2] else least

    def _atom(self) -> _Node:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return self._position(self._set())
        if char == "\\":
            return self._position(self._escape())
        if char == ".":
            return self._position(lambda c: c != "\n")
        if char in "^$*+?{)":
            raise NotUnderstood(f"{char!r} in a regular expression")
        return self._position(_is(char))

    def _position(self, test: _Test, looks: bool = False) -> _Node:
        index = len(self.atoms)
        self.atoms.append(_any_case(test) if self._ignore_case else test)
        if looks:
            self.looks.add(index)
        one = frozenset({index})
        return _Node(looks, False, one, one, _NONE if looks else one)

    def _group(self) -> _Node:
        before, looks = self._ignore_case, False
        if self._take("?"):
            self._ignore_case |= self._take("i")
            head = self._next()
            looks = head in "=!"
            if head not in ":=!":
                raise NotUnderstood(f"the group (?{head} of a regular expression")
        node = self._look_ahead() if looks else self.alternation()
        if not self._take(")"):
            raise NotUnderstood("a group without an end in a regular expression")
        self._ignore_case = before
        return node

    def _look_ahead(self) -> _Node:
        """A lookahead of one character: where it is tried is all that matters."""
        inside = _Reader(self.left, self._ignore_case)
        node = inside.alternation()
        if inside.follow or inside.looks or node.nullable:
            raise NotUnderstood("a lookahead of more than one character")
        return self._position(lambda c: False, looks=True)

    def _escape(self) -> _Test:
        char = self._next()
        if char in "pP":
            return self._property(char == "P")
        if char in "sSdDwW":
            test = {"s": str.isspace, "d": _is_digit, "w": _is_word}[char.lower()]
            return _not(test) if char.isupper() else test
        return _is(self._escaped(char))

    def _escaped(self, char: str) -> str:
        if char in "ux" and self.left[-1:] != ["{"]:
            digits = [self._next() for _ in range(4 if char == "u" else 2)]
            return chr(int("".join(digits), 16))
        escapes = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
        if char.isalnum() and char not in escapes:
            raise NotUnderstood(f"\\{char} in a regular expression")
        return escapes.get(char, char)

    def _property(self, negated: bool) -> _Test:
        if not self._take("{"):
            raise NotUnderstood("a property without braces in a regular expression")
        negated ^= self._take("^")
        test = _property_test(self._until("}"))
        return _not(test) if negated else test

    def _set(self) -> _Test:
        negated = self._take("^")
        chars: set[str] = set()
        tests: list[_Test] = [chars.__contains__]
        while not self._take("]"):
            item = self._set_item()
            if isinstance(item, str):
                chars.add(item)
            else:
                tests.append(item)
        return _none_of(tests) if negated else _one_of(tests)

    def _set_item(self) -> _Test | str:
        char = self._next()
        if char == "[" or (char == "&" and self.left[-1:] == ["&"]):
            raise NotUnderstood("a set within a set in a regular expression")
        if char == "\\":
            if self.left and self.left[-1] in "pPsSdDwW":
                return self._escape()
            char = self._escaped(self._next())
        if self.left[-1:] != ["-"] or self.left[-2:-1] == ["]"]:
            return char
        self._next()
        last = self._next()
        if last == "\\":
            last = self._escaped(self._next())
        if last == "[" or last < char:
            raise NotUnderstood("a range in a regular expression")
        return lambda c: char <= c <= last

    def _until(self, end: str) -> str:
        text = ""
        while not self._take(end):
            text += self._next()
        return text

    def _take(self, char: str) -> bool:
        if self.left and self.left[-1] == char:
            self.left.pop()
            return True
        return False

    def _next(self) -> str:
        if not self.left:
            raise NotUnderstood("an early end of a regular expression")
        return self.left.pop()


def _is(char: str) -> _Test:
    return lambda c: c == char


def _not(test: _Test) -> _Test:
    return lambda c: not test(c)


def _one_of(tests: list[_Test]) -> _Test:
    return lambda c: any(test(c) for test in tests)


def _none_of(tests: list[_Test]) -> _Test:
    return lambda c: not any(test(c) for test in tests)


def _any_case(test: _Test) -> _Test:
    def tested(char: str) -> bool:
        other = char.swapcase()
        return test(char) or (other != char and len(other) == 1 and test(other))

    return tested


def _is_digit(char: str) -> bool:
    return unicodedata.category(char) == "Nd"


def _is_word(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LM" or category in ("Nd", "Pc")


_SCRIPTS = {
    "Han": "CJK UNIFIED",
    "Hiragana": "HIRAGANA",
    "Katakana": "KATAKANA",
    "Hangul": "HANGUL",
    "Cyrillic": "CYRILLIC",
    "Latin": "LATIN",
}
_CATEGORY = r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?"


def _property_test(name: str) -> _Test:
    """A general category, or a script (by the names of its letters)."""
    if name in _SCRIPTS:
        start = _SCRIPTS[name]
        return lambda c: unicodedata.name(c, "").startswith(start)
    if not re.fullmatch(_CATEGORY, name):
        raise NotUnderstood(f"the property {name} in a regular expression")
    return lambda c: unicodedata.category(c).startswith(name)
