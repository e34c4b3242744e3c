"""Entry 207: no token of a text in pieces is another than the full encode's."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")

from tests.entries.pieces.checking import Checked
from tests.entries.pieces.families import NEVER_CUT, TRAINED, real
from tests.entries.pieces.texts import CODE, ODD, PROSE

FAMILIES = {**dict(real([])), **TRAINED}


@cache
def checked(name: str) -> Checked:
    return Checked(FAMILIES[name]())


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NEVER_CUT and "tekken" not in name])
def test_chats_and_random_texts_have_the_tokens_of_the_full_encode(name: str) -> None:
    encoder = checked(name)
    encoder.encoder._test()
    assert encoder.run(seed=11, tokens=12_000) == []
    assert encoder.compared >= 12_000 and encoder.pieces > (100 if len(encoder.cuts.pairs) > 1 else 9)


@pytest.mark.parametrize("name", sorted(NEVER_CUT))
def test_a_tokenizer_that_knows_what_came_before_is_refused(name: str) -> None:
    from sglang.srt.managers.token_cuts import NoCuts

    with pytest.raises(NoCuts):
        checked(name)


# What the proof may not lose: families of which messages are cut inside, and of which they cannot be.
UNCUT = {"llama2", "unigram without a split", "words with stripped ends"}


def test_which_families_are_cut_inside_messages() -> None:
    trained = set(TRAINED) - NEVER_CUT
    assert {name for name in trained if not checked(name).cuts.pairs} == UNCUT
    for name in ("llama3", "qwen2", "o200k", "falcon", "t5", "wordpiece"):
        assert " " in checked(name).cuts.pairs["A-Za-z"], name
    assert " " not in checked("gpt2").cuts.pairs["A-Za-z"], "it has an added token with a space, matched late"


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen2", "o200k", "metaspace first", "wordpiece", "falcon"])
def test_a_changed_last_line_costs_a_tenth_of_the_encode(name: str) -> None:
    """Judging point 3, by what is encoded: at least four fifths of a huge message are found."""
    encoder = checked(name)
    message = (PROSE + "\n" + CODE) * 60
    known = set(encoder.cuts.pieces(message + "the last line"))
    changed = encoder.cuts.pieces(message + "another end")
    new = sum(len(piece) for piece in changed if piece not in known)
    assert new < len(message) / 10


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=30), st.sampled_from(ODD), st.sampled_from(PROSE.split(" ")), st.sampled_from(CODE.split("\n"))
    ),
    max_size=60,
).map(lambda parts: " ".join(parts) if len(parts) % 2 else "".join(parts))


@pytest.mark.parametrize("name", [name for name in TRAINED if name not in NEVER_CUT])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_text=TEXTS, marks=st.lists(st.integers(0, 10_000), max_size=5))
def test_hypothesis_finds_no_other_token(name: str, given_text: str, marks: list[int]) -> None:
    encoder = checked(name)
    for mark in marks:
        tokens = encoder.tokens
        at = mark % (len(given_text) + 1)
        given_text = given_text[:at] + tokens[mark % len(tokens)] + given_text[at:]
    assert encoder.check_everywhere(given_text) is None
