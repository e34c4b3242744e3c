"""Texts for the loads: made-up English of a given number of tokens, the same for the same seed."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

WORDS = ["the", "of", "and", "a", "to", "in", "is", "that", "it", "was", "for", "on", "are", "as", "with", "they", "at", "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what", "all", "were", "we", "when", "your", "can", "said", "there", "use", "an", "each", "which", "she", "do", "how", "their", "if", "will", "up", "other", "about", "out", "many", "then", "them", "these", "so", "some", "her", "would", "make", "like", "him", "into", "time", "has", "look", "two", "more", "write", "go", "see", "number", "no", "way", "could", "people", "my", "than", "first", "water", "been", "call", "who", "oil", "its", "now", "find", "long", "down", "day", "did", "get", "come", "made", "may", "part", "over", "new", "sound", "take", "only", "little", "work", "know", "place", "year", "live", "me", "back", "give", "most", "very", "after", "thing", "our", "just", "name", "good", "sentence", "man", "think", "great", "where", "help", "through", "much", "before", "line", "right", "too", "mean", "old", "any", "same", "tell", "boy", "follow", "came", "want", "show", "also", "around", "farm", "three", "small", "set", "put", "end", "does", "another", "well", "large", "must", "big", "even", "such", "because", "turn", "here", "why", "ask", "went", "men", "read", "need", "land", "different", "home", "move", "try", "kind", "hand", "picture", "again", "change", "off", "play", "spell", "air", "away", "animal", "house", "point", "page", "letter", "mother", "answer", "found", "study", "still", "learn", "should", "world", "high", "every", "near", "add", "food", "between", "own", "below", "country", "tokenizer", "scheduler", "throughput", "latency", "prefix", "batch", "request", "template", "executor", "backend", "position", "merge", "release"]

# What is new in a long chat when it is sent again.
FORMS = ("shared", "unique", "tail")
TAIL = 3


def prose(seed: str, words: int) -> str:
    """Sentences of made-up English, with numbers, punctuation and a line break now and then."""
    draw = random.Random(seed)
    parts: list[str] = []
    for place in range(words):
        word = draw.choice(WORDS) if draw.random() < 0.97 else str(draw.randrange(10_000))
        parts.append(word + draw.choice(("", "", "", "", "", "", "", ",", ".", ".\n")) if place % 7 == 6 else word)
    return " ".join(parts)


@cache
def tokenizer(model: str) -> Any:
    """The model folder's tokenizer, in this process: the client's own, which the server knows nothing of."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(model) / "tokenizer.json"))


def prose_of_tokens(model: str, seed: str, tokens: int) -> str:
    """Prose of about `tokens` tokens."""
    return prose(seed, max(1, round(tokens / _tokens_per_word(model))))


@cache
def _tokens_per_word(model: str) -> float:
    return len(tokenizer(model).encode(prose("rate", 5_000)).ids) / 5_000


def long_chat(model: str, seed: str, tokens: int, messages: int) -> list[dict[str, str]]:
    """A chat of `messages` messages and about `tokens` tokens that ends with the user's turn."""
    each = tokens // messages
    roles = ("assistant", "user") if messages % 2 == 0 else ("user", "assistant")
    return [{"role": roles[turn % 2], "content": prose_of_tokens(model, f"{seed}/{turn}", each)} for turn in range(messages)]


def varied(base: list[dict[str, str]], form: str, nonce: str) -> list[dict[str, str]]:
    """The chat with as many messages made new as the form says: each line of a new one begins with a nonce.

    With one at the head alone, a server that keeps parts of a message once had all its other lines already.
    """
    if form == "shared":
        return [*base, {"role": "assistant", "content": "Go on."}, {"role": "user", "content": f"And now {nonce}?"}]
    fresh = len(base) if form == "unique" else TAIL
    return [*base[: len(base) - fresh], *(_renewed(message, nonce) for message in base[len(base) - fresh :])]


def _renewed(message: dict[str, str], nonce: str) -> dict[str, str]:
    return {**message, "content": renewed(message["content"], nonce)}


def renewed(text: str, nonce: str) -> str:
    """`text` with the nonce before each line."""
    return "\n".join(f"{nonce} {line}" for line in text.split("\n"))


def decode(model: str, ids: list[int]) -> str:
    """The text of token ids."""
    text: str = tokenizer(model).decode(ids)
    return text


@cache
def _reference(model: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model)


def chat_ids(model: str, messages: list[dict[str, Any]], **keywords: Any) -> list[int]:
    """What the chat template makes of messages, by transformers alone."""
    ids = _reference(model).apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False, **keywords)
    return [int(token) for token in ids]


def text_ids(model: str, text: str, *, special: bool = True) -> list[int]:
    """What transformers alone encodes a text to."""
    return [int(token) for token in _reference(model).encode(text, add_special_tokens=special)]


def as_json(value: Any) -> bytes:
    """For a request's body."""
    return json.dumps(value, ensure_ascii=False).encode()
