# SPDX-License-Identifier: Apache-2.0
"""Where a text may be cut so that the tokens of its parts are the tokens of the whole.

Read from a tokenizer's own configuration (tokenizer.json). Two kinds of places:

- Before an added token. The backend finds these first and hands every stretch between
  two of them to normalizer, pre-tokenizer and model on its own. Before, not after: a
  pre-tokenizer that treats the start of a text apart then sees no other start.
- Between two characters where the pre-tokenizer must cut whatever stands on both
  sides: no match of its expression holds the two in a row, a match covers one of them,
  and no lookaround is tried between them. Without such a pre-tokenizer: where BPE has
  no token that holds the two in a row, so that no merge can join them.

What is not understood is refused. Standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from sglang.srt.managers.split_regex import Chars, NotUnderstood, SplitRegex

Config = Mapping[str, Any]

# A piece that ends before an added token has SHORTEST characters or more. One that has
# INNER also ends inside a message: where a line ends within WINDOW, else where it can.
SHORTEST = 256
INNER = 1024
WINDOW = 1024


class NoCuts(Exception):
    """Why a tokenizer takes the full encode."""


@dataclass(frozen=True)
class Cuts:
    """Where texts are cut for one tokenizer, and the ids that it puts around a text.

    pairs: characters, as in a set of `re`, each with those before which it is cut.
    examples: some of the added tokens.
    """

    tokens: re.Pattern[str] | None
    refused: re.Pattern[str] | None
    pairs: Mapping[str, str]
    line: re.Pattern[str] | None
    inner: re.Pattern[str] | None
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    examples: tuple[str, ...]

    def pieces(
        self, text: str, shortest: int = SHORTEST, inner: int = INNER
    ) -> list[str] | None:
        """`text` in pieces; None where it holds a token that reaches beyond itself."""
        if self.refused is not None and self.refused.search(text):
            return None
        ends = list(self._ends(text, shortest, inner))
        return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)])]

    def _ends(self, text: str, shortest: int, inner: int) -> Iterator[int]:
        start = gap = 0
        for token_start, token_end in self._tokens(text):
            while end := self._inside(text, max(start + inner, gap), token_start):
                yield end
                start = end
            if shortest <= token_start - start and token_end:
                yield token_start
                start = token_start
            gap = token_end

    def _tokens(self, text: str) -> Iterator[tuple[int, int]]:
        if self.tokens is not None:
            for match in self.tokens.finditer(text):
                yield match.span()
        yield len(text), 0

    def _inside(self, text: str, first: int, last: int) -> int | None:
        """The place of a cut that has both its sides between `first` and `last`."""
        if self.line is not None:
            # From newline to newline: a search for the pair itself takes 80 ns for each
            # character, and there was ten times as much of it as of all the rest.
            stop = min(first + WINDOW, last)
            end = text.find("\n", first + 1, stop)
            while end > 0:
                if self.line.match(text, end - 1):
                    return end
                end = text.find("\n", end + 1, stop)
        match = self.inner.search(text, first, last) if self.inner else None
        return None if match is None else match.end()


def cuts_of(config: Config, normalize: Callable[[str], str]) -> Cuts:
    """Where the tokenizer of this configuration may be cut. NoCuts says why nowhere.

    `normalize` is its normalizer's `normalize_str`.
    """
    added = _Added.of(config)
    try:
        stages = _stages(config.get("pre_tokenizer"))
    except NotUnderstood as error:
        raise NoCuts(f"pre-tokenizer: {error}") from None
    prefix, suffix = _specials(config.get("post_processor"))
    pairs = _Prover(config, stages, added.later, normalize).pairs()
    if not added.tokens and not pairs:
        raise NoCuts("no added token and no pair of characters to cut at")
    lines = {chars: "\n" for chars, ends in pairs.items() if "\n" in ends}
    tokens, refused = _any_of(added.tokens), _any_of(added.refused)
    line, inner, examples = _before(lines), _before(pairs), tuple(added.tokens[:8])
    return Cuts(tokens, refused, pairs, line, inner, prefix, suffix, examples)


def _before(pairs: Mapping[str, str]) -> re.Pattern[str] | None:
    # The first character is consumed, not looked behind at: the match then lies within
    # the bounds of the search, and starts by a character set, which is fast.
    parts = [f"[{chars}](?=[{re.escape(ends)}])" for chars, ends in pairs.items()]
    return re.compile("|".join(parts)) if parts else None


# Added tokens


@dataclass(frozen=True)
class _Added:
    """Contents to cut before, that refuse a text, and that are matched later on.

    The last are matched in the normalized text: a pair may not stand inside of one.
    """

    tokens: Sequence[str]
    refused: Sequence[str]
    later: Sequence[str]

    @classmethod
    def of(cls, config: Config) -> _Added:
        tokens, refused, later = [], [], []
        for token in config.get("added_tokens") or []:
            content, normalized = token["content"], token["normalized"]
            reaches = token["lstrip"] or token["rstrip"] or token["single_word"]
            if not content:
                continue
            if reaches and normalized and config.get("normalizer"):
                raise NoCuts(f"the added token {content!r} strips, or is a word")
            if normalized:
                later.append(content)
            if reaches:
                refused.append(content)
            elif not normalized:
                tokens.append(content)
        return cls(tokens, refused, later)


def _any_of(contents: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds what the backend's scan finds: leftmost, then longest."""
    words = sorted(set(contents))
    try:
        return re.compile(_tree(words)) if words else None
    except RecursionError:
        raise NoCuts("an added token is too long") from None


def _tree(words: Sequence[str]) -> str:
    """A pattern for sorted words as a tree: an alternation of a thousand is slow."""
    first, last = words[0], words[-1]
    shared = 0
    while shared < len(first) and first[shared] == last[shared]:
        shared += 1
    optional = len(first) == shared
    by_next: dict[str, list[str]] = {}
    for word in words[optional:]:
        by_next.setdefault(word[shared], []).append(word[shared:])
    head = re.escape(first[:shared])
    if not by_next:
        return head
    body = "|".join(_tree(group) for group in by_next.values())
    return f"{head}(?:{body}){'?' if optional else ''}"


# What the post-processor puts around a text


def _specials(config: Config | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = []
    for part in _flat(config, "processors"):
        kind = part["type"]
        if kind in ("BertProcessing", "RobertaProcessing"):
            found.append(((part["cls"][1],), (part["sep"][1],)))
        elif kind == "TemplateProcessing":
            found.append(_template_specials(part))
        elif kind != "ByteLevel":  # which changes offsets only
            raise NoCuts(f"unknown post-processor {kind}")
    if len(found) > 1:
        raise NoCuts("two post-processors add tokens")
    return found[0] if found else ((), ())


def _template_specials(config: Config) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sides: list[list[int]] = [[]]
    for item in config["single"]:
        if "SpecialToken" in item:
            sides[-1] += config["special_tokens"][item["SpecialToken"]["id"]]["ids"]
        elif item.get("Sequence", {}).get("id") == "A":
            sides.append([])
        else:
            raise NoCuts("unknown part of a post-processor's template")
    if len(sides) != 2:
        raise NoCuts("a post-processor's template without its text, or with two")
    return tuple(sides[0]), tuple(sides[1])


# Pairs of characters. All are what they are in every Unicode version, and no right
# side composes with a character before it.


def _span(first: str, last: str) -> str:
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


_SPACE = " \n"
_CLOSING = "\"'.,:;!?)]}"
_MARKS = _CLOSING + "(<[{>=/_|*#-"
_WIDE = "，。、：；！？）」"
_DIGITS = "0123456789"
_LATIN = _span("A", "Z") + _span("a", "z")

# A set of left sides, as `re` and as its characters, and the right sides to try.
_CANDIDATES = (
    ("A-Za-z", _LATIN, _SPACE + _MARKS + _DIGITS),
    ("0-9", _DIGITS, _SPACE + _CLOSING + _LATIN),
    ("А-я", _span("А", "я"), _SPACE + _CLOSING),
    (re.escape(_CLOSING), _CLOSING, " "),
    ("一-龥", _span("一", "龥"), _SPACE + _WIDE + _CLOSING),
    ("ぁ-ゖ", _span("ぁ", "ゖ"), _SPACE + _WIDE),
    ("ァ-ヺ", _span("ァ", "ヺ"), _SPACE + _WIDE),
    ("가-힣", _span("가", "힣"), _SPACE + _CLOSING),
)

# Normalizers that change characters one by one, or together with marks after them.
_LOCAL = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer"}


class _Prover:
    """Finds the pairs at which a tokenizer must cut."""

    def __init__(
        self,
        config: Config,
        stages: Sequence[_Stage],
        later: Iterable[str],
        normalize: Callable[[str], str],
    ) -> None:
        self._stages = stages
        self._model = _Model(config["model"])
        self._normalize = normalize if config.get("normalizer") else str
        self._normalizers = list(_flat(config.get("normalizer"), "normalizers"))
        self._later = _neighbours(map(self._normalize, later))

    def pairs(self) -> dict[str, str]:
        """The left sides, as in a set of `re`, each with its right sides."""
        found = {}
        for pattern, chars, ends in _CANDIDATES:
            left = self._normalized(chars)
            if left and all(_is_local(n, left | set(chars)) for n in self._normalizers):
                cut = "".join(end for end in ends if self._must_cut(left, end))
                found.update({pattern: cut} if cut else {})
        return found

    def _normalized(self, chars: str) -> Chars:
        """The last characters of what each becomes; none where one becomes nothing."""
        if self._normalize(chars) == chars:
            return frozenset(chars)
        last = frozenset(self._normalize(char)[-1:] for char in chars)
        return frozenset() if "" in last else last

    def _must_cut(self, left: Chars, end: str) -> bool:
        right = self._normalize(end)[:1]
        if not right or self._later.get(right, set()) & left:
            return False
        for stage in self._stages:
            outcome = stage.between(left, right)
            if outcome is not None:
                return outcome
            left = stage.last_of(left)
            right = stage.first_of(right)
        return self._model.never_joins(left, right)


def _is_local(normalizer: Config, left: Chars) -> bool:
    """Whether it acts on both sides of a pair with one of `left` by themselves."""
    if normalizer["type"] != "Replace":
        return normalizer["type"] in _LOCAL
    try:
        regex = _pattern(normalizer["pattern"])
    except NotUnderstood:
        return False
    return regex.is_one_character or not (regex.looks_around or regex.may_match(left))


def _pattern(pattern: Config) -> SplitRegex:
    literal = pattern.get("String")
    return SplitRegex(pattern["Regex"] if literal is None else re.escape(literal))


def _neighbours(words: Iterable[str]) -> dict[str, set[str]]:
    """Each character of `words` with those that it follows in one of them."""
    found: dict[str, set[str]] = {}
    for word in words:
        for one, two in zip(word, word[1:]):
            found.setdefault(two, set()).add(one)
    return found


def _flat(config: Config | None, parts: str) -> Iterator[Config]:
    """The members of a sequence of sequences; a single one; nothing."""
    if config and config["type"] == "Sequence":
        for part in config[parts]:
            yield from _flat(part, parts)
    elif config:
        yield config


class _Model:
    """Whether BPE can join two characters that no pre-tokenizer keeps apart."""

    def __init__(self, config: Config) -> None:
        if config.get("dropout"):
            raise NoCuts("with dropout tokens are not a function of the text")
        self._config = config
        self._joined: dict[str, set[str]] = {}

    def never_joins(self, left: Chars, right: str) -> bool:
        config = self._config
        whole = "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix"
        if config["type"] != "BPE" or any(config.get(name) for name in whole):
            return False
        vocabulary = config["vocab"]
        if right not in vocabulary or any(char not in vocabulary for char in left):
            return False  # unknown, or bytes: these may join others of their kind
        if not self._joined:
            self._joined = _neighbours(vocabulary)
        return not self._joined.get(right, set()) & left


# The pre-tokenizer, stage by stage


class _Stage:
    """A pre-tokenizer that cuts where its expression matches, and between matches.

    merges: how it joins what it has cut; empty where it does not.
    """

    def __init__(self, regex: SplitRegex | None, merges: str = "") -> None:
        self._regex = regex
        self._merges = merges

    def between(self, left: Chars, right: str) -> bool | None:
        """Whether it cuts there: True always, False not safe to say.

        None: it sees nothing there, and does on both sides as on the whole; a later
        stage decides.
        """
        if self._regex is None:
            return None
        after = frozenset(right)
        if self._merges:
            return self._between_merged(self._regex, left, after)
        if self._regex.joins(left, after) or self._regex.looks_after(left):
            return False
        covered = self._regex.covers(after) or self._regex.covers(left)
        return True if covered else None

    def _between_merged(
        self, regex: SplitRegex, left: Chars, after: Chars
    ) -> bool | None:
        if not regex.is_one_character or regex.may_match(left):
            return False
        if not regex.may_match(after):
            return None
        return self._merges == "MergedWithNext" and regex.covers(after)

    def first_of(self, char: str) -> str:
        """The first character that a later stage sees in place of `char`."""
        return char

    def last_of(self, chars: Chars) -> Chars:
        """What a later stage may see last in place of one of `chars`."""
        return chars


class _ByteLevel(_Stage):
    """Cuts as GPT-2 did, then turns bytes into letters."""

    def __init__(self, config: Config) -> None:
        super().__init__(SplitRegex(_GPT2) if config.get("use_regex", True) else None)
        self._prefixes = config.get("add_prefix_space", True)

    def between(self, left: Chars, right: str) -> bool | None:
        # It puts a space before every piece that does not start with one.
        if self._prefixes and right != " ":
            return False
        return super().between(left, right)

    def first_of(self, char: str) -> str:
        return _BYTE_LETTERS[char.encode()[0]]

    def last_of(self, chars: Chars) -> Chars:
        return frozenset(_BYTE_LETTERS[char.encode()[-1]] for char in chars)


class _Metaspace(_Stage):
    """Turns spaces into a mark, puts one before pieces, and cuts before each."""

    def __init__(self, config: Config) -> None:
        self._mark = config["replacement"]
        self._prepends = config.get("prepend_scheme", "always") != "never"
        cuts = config.get("split", True)
        regex = SplitRegex(f"[ {re.escape(self._mark)}]") if cuts else None
        super().__init__(regex, "MergedWithNext")

    def between(self, left: Chars, right: str) -> bool | None:
        if self._prepends and right not in (" ", self._mark):
            return False
        return super().between(left, right)

    def first_of(self, char: str) -> str:
        return self._mark if char == " " else char

    def last_of(self, chars: Chars) -> Chars:
        return frozenset(map(self.first_of, chars))


def _byte_letters() -> str:
    """The letter that stands for each byte: itself where it is printable."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return "".join(chr(b if b in printable else next(others)) for b in range(256))


_BYTE_LETTERS = _byte_letters()
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
_APART = ("Isolated", "Removed")
_MERGED = ("Contiguous", "MergedWithPrevious", "MergedWithNext")


def _stages(config: Config | None) -> list[_Stage]:
    parts = _flat(config, "pretokenizers")
    return [stage for part in parts for stage in _stages_of(part)]


def _stages_of(config: Config) -> list[_Stage]:
    kind = config["type"]
    behavior = config.get("behavior", "Isolated")
    if kind == "ByteLevel":
        return [_ByteLevel(config)]
    if kind == "Metaspace":
        return [_Metaspace(config)]
    if kind == "BertPreTokenizer":
        return [_Stage(SplitRegex(r"\s")), _Stage(SplitRegex(_PUNCTUATION))]
    if kind == "Digits" and not config["individual_digits"]:
        behavior = "Contiguous"
    return [_Stage(_split_regex(kind, config), _merges(behavior))]


def _split_regex(kind: str, config: Config) -> SplitRegex:
    if kind == "Split":
        return _pattern(config["pattern"])
    if kind == "CharDelimiterSplit":
        return SplitRegex(re.escape(config["delimiter"]))
    patterns = {
        "Whitespace": r"\w+|[^\w\s]+",
        "WhitespaceSplit": r"\s",
        "Punctuation": _PUNCTUATION,
        "Digits": r"\p{N}",
    }
    if kind not in patterns:
        # It may know where in the text a piece stands, as UnicodeScripts knows what
        # came before: then not even an added token is a safe place.
        raise NoCuts(f"unknown pre-tokenizer {kind}")
    return SplitRegex(patterns[kind])


def _merges(behavior: str) -> str:
    if behavior not in _APART + _MERGED:
        raise NoCuts(f"unknown behavior {behavior} of a pre-tokenizer")
    return "" if behavior in _APART else behavior
