# SPDX-License-Identifier: Apache-2.0
"""A cache of encoded pieces of text, on the preprocessing worker's tokenizer.

Most of a long prompt was encoded a moment ago: the system prompt, the tools, the turns
before this one. Texts are cut where their tokenizer is bound to cut (token_cuts), and
only the pieces that are not known are encoded; the tokens are those of the full encode.

One worker thread owns it, so it takes no lock. What it cannot do exactly (padding,
truncation, pairs, offsets, tokens that strip) goes the tokenizer's own way.
Timing tells whether a text was seen before, as prefix caching does; requests with
another `cache_salt` or `extra_key` share no pieces.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from array import array
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from sglang.srt.managers.token_cuts import Cuts, NoCuts, cuts_of

logger = logging.getLogger(__name__)

SWITCH = "SGLANG_TOKEN_PIECES"
MODES = ("on", "off")
MAX_TOKENS = "SGLANG_TOKEN_PIECES_MAX_TOKENS"
MAX_MIB = "SGLANG_TOKEN_PIECES_MAX_MIB"
SHORT_TEXT = 1024  # characters; such a text is encoded in less time than it is worth

_BACKEND = "_tokenizer"  # where a Hugging Face fast tokenizer keeps its Rust half
_ENCODE = "_encode_plus"  # what its `encode` and its `__call__` go through
_FAST = "transformers.tokenization_utils_tokenizers"

_salt: ContextVar[str] = ContextVar("token_pieces_salt", default="")


class TokenIds(list[int]):
    """Token ids as a list, and as the array of 64-bit integers that the manager sends.

    `array` is dropped by whatever changes the list.
    """

    __slots__ = ("array",)

    def __init__(self, ids: Iterable[int] = (), packed: array[int] | None = None):
        super().__init__(ids)
        self.array = packed

    def __reduce__(self) -> tuple[type[list[int]], tuple[list[int]]]:
        return list, (list(self),)  # in another process it is a list


def _dropping_array(name: str) -> Callable[..., Any]:
    change = getattr(list, name)

    def changed(self: TokenIds, *args: Any, **kwargs: Any) -> Any:
        self.array = None
        return change(self, *args, **kwargs)

    changed.__name__ = name
    return changed


for _name in (
    *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"),
    *("__setitem__", "__delitem__", "__iadd__", "__imul__"),
):
    setattr(TokenIds, _name, _dropping_array(_name))


def packed_ids(ids: Any) -> Any:
    """The array of these token ids, to be sent, where they have one; else `ids`."""
    packed = ids.array if type(ids) is TokenIds else None
    return ids if packed is None or len(packed) != len(ids) else packed


def salt_pieces(*requests: Any) -> None:
    """Let what is encoded for these requests, from here on, share no other's pieces."""
    names = "cache_salt", "extra_key"
    keys = [[getattr(request, name, None) for name in names] for request in requests]
    _salt.set(repr(keys) if any(any(pair) for pair in keys) else "")


def install_token_pieces(manager: Any) -> None:
    """Give the manager's preprocessing worker a cache, if SGLANG_TOKEN_PIECES is on.

    Nothing happens without a worker. ValueError on a setting that makes no sense.
    """
    if _checked_mode() == "off":
        return
    executor = getattr(manager, "preprocess_executor", None)
    tokenizer = getattr(executor, "worker_tokenizer", None)
    if tokenizer is None:
        return
    metrics = Metrics.of(manager) if getattr(manager, "enable_metrics", False) else None
    try:
        PieceEncoder(tokenizer, _bounds(), metrics).install()
    except NoCuts as reason:
        logger.info("Token pieces are not kept: %s.", reason)


def _checked_mode() -> str:
    mode = os.environ.get(SWITCH, MODES[0])
    if mode not in MODES:
        raise ValueError(f"{SWITCH} is {mode!r}, not one of {', '.join(MODES)}")
    return mode


@dataclass(frozen=True)
class Bounds:
    """At most so many tokens and bytes are kept."""

    tokens: int = 1 << 21
    size: int = 128 << 20


def _bounds() -> Bounds:
    tokens = _positive(MAX_TOKENS, Bounds.tokens)
    return Bounds(tokens, _positive(MAX_MIB, Bounds.size >> 20) << 20)


def _positive(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name} is {text!r}, not a number above 0")
    return int(text)


# The store


class Piece(NamedTuple):
    """The tokens of one piece of text: as integers, as bytes of 64 bits each."""

    ids: tuple[int, ...]
    packed: bytes
    size: int


_ENTRY_SIZE = 250  # bytes of a piece, its key and its place in the order, measured


class PieceStore:
    """Pieces by salt and text; the least recently used go first beyond the bounds.

    tokens, size: what it holds, in tokens and about so many bytes.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._pieces: OrderedDict[Any, Piece] = OrderedDict()
        self.tokens = 0
        self.size = 0

    def __len__(self) -> int:
        return len(self._pieces)

    def get(self, key: Any) -> Piece | None:
        """The piece of this key, now the most recently used."""
        piece = self._pieces.get(key)
        if piece is not None:
            self._pieces.move_to_end(key)
        return piece

    def add(self, key: Any, ids: tuple[int, ...], packed: bytes, text: str) -> Piece:
        """Keep a piece that is not there yet."""
        size = _ENTRY_SIZE + 2 * len(packed) + sys.getsizeof(text)
        piece = self._pieces[key] = Piece(ids, packed, size)
        self.tokens += len(ids)
        self.size += size
        while self.tokens > self._bounds.tokens or self.size > self._bounds.size:
            _, old = self._pieces.popitem(last=False)
            self.tokens -= len(old.ids)
            self.size -= old.size
        return piece


# The encoder

# Options of `_encode_plus` with the values under which a piece is encoded as the whole.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "stride": (0,),
    "text_pair": (None,),
    "is_split_into_words": (False,),
    "pad_to_multiple_of": (None,),
    "return_tensors": (None,),
    "return_overflowing_tokens": (False,),
    "return_special_tokens_mask": (False,),
    "return_offsets_mapping": (False,),
    "return_length": (False,),
    "split_special_tokens": (None, False),
}
_STRATEGIES = {
    "padding_strategy": "do_not_pad",
    "truncation_strategy": "do_not_truncate",
}
_ANY = {"padding_side", "verbose", "max_length", "return_attention_mask"}


class PieceEncoder:
    """Encodes for one tokenizer, in pieces. NoCuts when it cannot be cut safely."""

    def __init__(
        self, tokenizer: Any, bounds: Bounds, metrics: Metrics | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._backend = _backend_of(tokenizer)
        self._original = getattr(tokenizer, _ENCODE)
        config = _config_of(self._backend)
        self._cuts = cuts_of(config, _normalize_of(self._backend))
        self._ids = list(range(1 + _highest_id(config)))
        # The last first: the model's unknown token and those of a chat come early.
        self._marks = [
            (mark, self._backend.token_to_id(mark))
            for mark in reversed(self._cuts.examples)
        ]
        self._metrics = metrics
        self.store = PieceStore(bounds)

    def install(self) -> None:
        """Test it against the full encode, then take the tokenizer's calls.

        NoCuts when a text came out different.
        """
        start = time.perf_counter()
        self._test()
        vars(self._tokenizer)[_ENCODE] = self
        spent = time.perf_counter() - start
        logger.info(
            "Token pieces are kept, cut before %s added tokens and at %d kinds of "
            "places inside messages (tested in %.2f s).",
            "the" if self._cuts.tokens else "no",
            sum(map(len, self._cuts.pairs.values())),
            spent,
        )

    def __call__(self, text: Any, *args: Any, **options: Any) -> Any:
        """The tokenizer's own `_encode_plus`, for a text or a list of texts."""
        special = options.get("add_special_tokens", True)
        texts = [text] if isinstance(text, str) else text
        if not args and self._is_plain(texts, options):
            found = [self.encode(item, special) for item in texts]
            if None not in found:
                return self._batch(found, isinstance(text, str), options)
        return self._original(text, *args, **options)

    def encode(self, text: str, special: bool = True) -> TokenIds | None:
        """The tokens of `text`; None where only the full encode is exact."""
        pieces = self._cuts.pieces(text)
        if pieces is None:
            self._count(refused=1)
            return None
        try:
            return self._join(self._found(pieces), special)
        except Exception:
            # A text that the backend refuses: the full encode says so in its own way.
            logger.debug("Encoding pieces failed", exc_info=True)
            return None

    def _is_plain(self, texts: Any, options: dict[str, Any]) -> bool:
        if not isinstance(texts, list) or not all(type(text) is str for text in texts):
            return False
        if max(map(len, texts), default=0) < SHORT_TEXT or self._is_set_up_otherwise():
            return False
        asked = options.keys() - _ANY - {"add_special_tokens"}
        if "return_token_type_ids" in asked:  # by `__call__`; `encode` drops them
            asked.discard("return_token_type_ids")
            if options["return_token_type_ids"] or self._returns("token_type_ids"):
                return False
        return all(_is_neutral(name, options[name]) for name in asked)

    def _is_set_up_otherwise(self) -> bool:
        backend = self._backend
        return (
            vars(self._tokenizer).get(_BACKEND) is not backend
            or bool(getattr(self._tokenizer, "split_special_tokens", False))
            or backend.encode_special_tokens
            or backend.truncation is not None
            or backend.padding is not None
        )

    def _returns(self, name: str) -> bool:
        return name in getattr(self._tokenizer, "model_input_names", ())

    def _found(self, pieces: list[str]) -> list[Piece]:
        salt, store = _salt.get(), self.store
        keys: list[Any] = [(salt, text) for text in pieces] if salt else pieces
        found = [store.get(key) for key in keys]
        missing = {
            key: text for key, text, piece in zip(keys, pieces, found) if not piece
        }
        self._count(hits=len(found) - found.count(None), misses=found.count(None))
        if missing:
            new = self._encode_missing(missing)
            found = [piece or new[key] for key, piece in zip(keys, found)]
        return found

    def _encode_missing(self, missing: dict[Any, str]) -> dict[Any, Piece]:
        pieces = {}
        encoded = self._encode(list(missing.values()))
        for (key, text), ids in zip(missing.items(), encoded):
            shared = tuple(map(self._ids.__getitem__, ids))
            packed = array("q", ids).tobytes()
            pieces[key] = self.store.add(key, shared, packed, text)
        if self._metrics is not None:
            self._metrics.show(self.store)
        return pieces

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, as if they were encoded one by one."""
        # Without offsets, which take a third of the time, and never by the backend's
        # `encode`, which keeps the GIL. A batch takes every core there is from the
        # event loop and the detokenizer; one call for each text hands the GIL back
        # after each: beside a busy loop that took 208 ms instead of 85. As the words
        # of one text they are encoded in turn by one call, and a mark ends each.
        joined = "".join(texts)
        for mark, end in self._marks if len(texts) > 1 else ():
            if mark not in joined:
                words = [word for text in texts for word in (text, mark)]
                split = _split(self._encode_one(words, is_pretokenized=True), end)
                if len(split) == len(texts):
                    return split
        return [self._encode_one(text) for text in texts]

    def _encode_one(self, given: str | list[str], **options: bool) -> list[int]:
        encode = self._backend.encode_batch_fast
        ids: list[int] = encode([given], add_special_tokens=False, **options)[0].ids
        return ids

    def _join(self, pieces: list[Piece], special: bool) -> TokenIds:
        cuts = self._cuts
        prefix, suffix = (cuts.prefix, cuts.suffix) if special else ((), ())
        packed = array("q", prefix)
        packed.frombytes(b"".join([piece.packed for piece in pieces]))
        packed.extend(suffix)
        ids = list(prefix)
        for piece in pieces:
            ids += piece.ids
        ids += suffix
        return TokenIds(ids, packed)

    def _batch(self, found: list[Any], single: bool, options: dict[str, Any]) -> Any:
        from transformers import BatchEncoding

        data: dict[str, Any] = {"input_ids": found}
        mask = options.get("return_attention_mask")
        if mask or (mask is None and self._returns("attention_mask")):
            data["attention_mask"] = [[1] * len(ids) for ids in found]
        warn = getattr(self._tokenizer, "_eventual_warn_about_too_long_sequence", None)
        for ids in found if warn else []:
            warn(ids, options.get("max_length"), options.get("verbose", True))
        if single:
            data = {name: values[0] for name, values in data.items()}
        return BatchEncoding(data)

    def _count(self, hits: int = 0, misses: int = 0, refused: int = 0) -> None:
        if self._metrics is not None:
            self._metrics.count(hits, misses, refused)

    def _test(self) -> None:
        self._original("")  # takes out truncation and padding that came with the file
        for text in test_texts(self._cuts):
            for sizes in ((1, 1), (16, 16), (64, 256)):
                self._test_one(text, *sizes)

    def _test_one(self, text: str, shortest: int, inner: int) -> None:
        pieces = self._cuts.pieces(text, shortest, inner)
        if pieces is None:
            return
        ids = [token for part in self._encode(pieces) for token in part]
        for special in (False, True):
            whole = self._original(text, add_special_tokens=special)["input_ids"]
            cuts = self._cuts
            around = (cuts.prefix, cuts.suffix) if special else ((), ())
            if [*around[0], *ids, *around[1]] != list(whole):
                raise NoCuts(f"the test text {text[:40]!r} came out different")


def _split(ids: list[int], end: int) -> list[list[int]]:
    """The runs that `end` ends."""
    runs, start = [], 0
    for _ in range(ids.count(end)):
        stop = ids.index(end, start)
        runs.append(ids[start:stop])
        start = stop + 1
    return runs


def _is_neutral(name: str, value: Any) -> bool:
    if name in _STRATEGIES:
        return getattr(value, "value", None) == _STRATEGIES[name]
    return any(value is neutral for neutral in _NEUTRAL.get(name, ()))


def _backend_of(tokenizer: Any) -> Any:
    attributes = getattr(tokenizer, "__dict__", {})
    backend = attributes.get(_BACKEND)
    if backend is None or not _is_stock(type(tokenizer)):
        raise NoCuts(f"{type(tokenizer).__name__} has ways of its own to encode")
    if {"encode", _ENCODE} & attributes.keys():
        raise NoCuts("the tokenizer's own methods are replaced")
    if not hasattr(backend, "encode_batch_fast"):
        raise NoCuts("this version of tokenizers has no `encode_batch_fast`")
    return backend


def _is_stock(kind: type) -> bool:
    """Whether a tokenizer of this class encodes as Transformers' fast ones do."""
    base = "transformers.tokenization_utils_base"
    homes = {"encode": base, "__call__": base, _ENCODE: _FAST}
    methods = {name: getattr(kind, name, None) for name in homes}
    return all(
        getattr(methods[name], "__module__", None) == home
        for name, home in homes.items()
    )


def _config_of(backend: Any) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(backend.to_str())
    except Exception as error:  # a part that is written in Python
        raise NoCuts(f"the tokenizer has no configuration ({error})") from None
    return config


def _normalize_of(backend: Any) -> Callable[[str], str]:
    return str if backend.normalizer is None else backend.normalizer.normalize_str


def _highest_id(config: dict[str, Any]) -> int:
    vocabulary = config["model"]["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pieces with their scores, in order
        ids = [len(vocabulary)]
    else:
        ids = list(vocabulary.values())
    ids += [token["id"] for token in config.get("added_tokens") or []]
    return max(ids, default=0)


# The test at start

_LEFT = ("", "word ", "\n\n", "été 你好", "'", " 1", "x" * 40, "\t ")
_RIGHT = ("", "s and more", "  \n", "12345", "'s", "世界 ", "\u0301x", "\n\n end")


def test_texts(cuts: Cuts) -> list[str]:
    """Texts with every kind of cut, in changing surroundings, and around tokens."""
    parts = []
    for pattern, ends in cuts.pairs.items():
        chars = [
            char for char in pattern if char not in "-\\"
        ]  # ends of ranges, or all
        for index, end in enumerate(ends):
            char = chars[index % len(chars)]
            left, right = _LEFT[index % len(_LEFT)], _RIGHT[index // 3 % len(_RIGHT)]
            parts.append(f"{left}{char}{end}{right}")
    tokens = list(cuts.examples)
    texts = ["".join(parts), "\n".join(parts), " ".join(reversed(parts))]
    texts += [token.join(["", *_LEFT, *parts[:8], *_RIGHT, ""]) for token in tokens]
    texts.append("".join(f"{token}{part}" for token, part in zip(tokens * 9, parts)))
    return [text for text in texts if text]


# Metrics


@cache
def _collectors(*names: str) -> tuple[Any, Any, Any]:
    # Not imported at the top: prometheus_client chooses its store when it is imported,
    # by a variable that the server sets while it starts.
    from prometheus_client import Counter, Gauge

    def gauge(unit: str) -> Gauge:
        text = f"What the cache of token pieces holds, in {unit}."
        name = f"sglang:token_pieces_{unit}"
        return Gauge(name, text, names, multiprocess_mode="livesum")

    text = "Pieces of prompts by outcome: hit, miss; and whole texts: refused."
    pieces = Counter("sglang:token_pieces_total", text, [*names, "outcome"])
    return pieces, gauge("tokens"), gauge("bytes")


class Metrics:
    """Counts and sizes in the server's own Prometheus metrics."""

    def __init__(self, labels: dict[str, str]) -> None:
        pieces, tokens, size = _collectors(*labels)
        outcomes = ("hit", "miss", "refused")
        self._counts = [pieces.labels(**labels, outcome=item) for item in outcomes]
        self._tokens, self._bytes = tokens.labels(**labels), size.labels(**labels)

    @classmethod
    def of(cls, manager: Any) -> Metrics:
        """With the model's name as label, as the server's other metrics have it."""
        return cls({"model_name": str(getattr(manager, "served_model_name", ""))})

    def count(self, *counts: int) -> None:
        """Add hits, misses, refused texts."""
        for counter, number in zip(self._counts, counts):
            if number:
                counter.inc(number)

    def show(self, store: PieceStore) -> None:
        """Show what is held now."""
        self._tokens.set(store.tokens)
        self._bytes.set(store.size)
