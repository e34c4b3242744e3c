"""What the stand-in scheduler answers: a function of the prompt's token ids, so that an answer proves the ids.

Server and client both hold this module: the client encodes the prompt by itself, works out the answer, and
compares texts. Any token lost, doubled or changed on the way to the scheduler gives other words.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

EMBEDDING_WIDTH = 64


def digest(ids: Iterable[int]) -> str:
    """Of the token ids, in 16 hexadecimal characters."""
    packed = ids if isinstance(ids, array) and ids.typecode == "q" else array("q", ids)
    return hashlib.sha256(packed).hexdigest()[:16]


@cache
def words(model: str) -> tuple[int, ...]:
    """Ids of plain words in the model's vocabulary: any sequence of them is text that can be read."""
    vocabulary = json.loads((Path(model) / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    plain = (token.removeprefix("\u0120") for token in vocabulary)
    chosen = (vocabulary[token] for token in plain if token in vocabulary and token.isascii() and token.isalpha() and 3 <= len(token) <= 7)
    return tuple(sorted(set(chosen))[:4096])


def answer(model: str, prompt: Sequence[int], count: int) -> list[int]:
    """The `count` ids that the stand-in generates for a prompt."""
    return answer_to(model, digest(prompt), count)


def answer_to(model: str, prompt_digest: str, count: int) -> list[int]:
    """The same, where the prompt's digest is known."""
    return random.Random(prompt_digest).choices(words(model), k=count)


def logprob(prompt: Sequence[int], token: int) -> float:
    """The log-probability that the stand-in gives a token after a prompt."""
    return -random.Random(f"{digest(prompt)}/{token}").uniform(0.01, 9.0)


def embedding(prompt: Sequence[int]) -> list[float]:
    """The vector that the stand-in gives a prompt."""
    draw = random.Random(digest(prompt))
    return [draw.uniform(-1, 1) for _ in range(EMBEDDING_WIDTH)]
