"""Compares the tokens of pieces with those of the full encode."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from tests.entries.pieces.texts import chats, text
from tests.support import ROOT

for _entry in ("207-token-pieces", "201-preprocess-executor"):
    sys.path.insert(0, str(Path(ROOT) / "entries" / _entry / "files" / "python"))

from sglang.srt.managers.token_pieces import Bounds, PieceEncoder  # noqa: E402

# Small bounds, so that pieces are dropped and encoded again while a check runs.
BOUNDS = Bounds(tokens=60_000, size=4 << 20)


class Checked:
    """A tokenizer with an encoder of pieces beside it. NoCuts when it has none."""

    def __init__(self, backend: Tokenizer) -> None:
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
        self.backend = self.tokenizer.backend_tokenizer  # a copy, which may break ties of Unigram otherwise
        self.encoder = PieceEncoder(self.tokenizer, BOUNDS)
        self.cuts = self.encoder._cuts
        self.compared = self.refused = self.pieces = 0

    @property
    def tokens(self) -> list[str]:
        """The contents of its added tokens, some of many."""
        added = [token.content for token in self.backend.get_added_tokens_decoder().values()]
        return sorted(set(added), key=len)[-40:] if len(added) > 40 else added

    def check(self, given: str, special: bool = False) -> str | None:
        """What is wrong with the tokens of `given`; None when they are the full encode's."""
        whole = self.tokenizer(given, add_special_tokens=special)["input_ids"]
        ids = self.encoder.encode(given, special)
        if ids is None:
            self.refused += 1
            return None
        self.compared += len(whole)
        if ids != whole or list(ids.array) != whole:
            return f"cached pieces of {given[:80]!r} differ"
        return self.check_everywhere(given)

    def check_everywhere(self, given: str) -> str | None:
        """The same with a cut at every place where one may be."""
        pieces = self.cuts.pieces(given, 1, 1)
        if pieces is None:
            return None
        whole = self.tokenizer.encode(given, add_special_tokens=False)
        encoded = self.backend.encode_batch_fast(pieces, add_special_tokens=False)
        self.compared += len(whole)
        self.pieces += len(pieces)
        if [token for part in encoded for token in part.ids] != whole:
            return f"{len(pieces)} pieces of {given[:80]!r} differ"
        return None

    def run(self, seed: int, tokens: int) -> list[str]:
        """What is wrong in `tokens` tokens of chats and random texts."""
        chance, wrong = random.Random(seed), []
        aim, most_refused = self.compared + tokens, self.refused + 400
        while True:
            marks = chance.sample(self.tokens, min(len(self.tokens), 6))
            for given in (*(text(chance, chance.randrange(1, 5000), marks) for _ in range(8)), *chats(chance, marks)):
                problem = self.check(given, special=chance.random() < 0.3)
                wrong += [problem] if problem else []
                if self.compared >= aim or self.refused >= most_refused:
                    return wrong
