# SPDX-License-Identifier: Apache-2.0
"""Encoded pieces: where texts are cut, what is kept, and that no token is another.

Runs in an SGLang checkout and, as the modules under test need the standard library
only, without SGLang. Tests of real tokenizers are skipped without transformers.
"""

import asyncio
import contextvars
import copy
import json
import pickle
import random
import re
import sys
from array import array
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from sglang.srt.managers import token_pieces as module
from sglang.srt.managers.preprocess_executor import (
    PreprocessExecutor,
    current_tokenizer,
)
from sglang.srt.managers.split_regex import NotUnderstood, SplitRegex
from sglang.srt.managers.token_cuts import NoCuts, cuts_of
from sglang.srt.managers.token_pieces import (
    MAX_MIB,
    MAX_TOKENS,
    SWITCH,
    Bounds,
    PieceEncoder,
    PieceStore,
    TokenIds,
    install_token_pieces,
    packed_ids,
    salt_pieces,
)

try:
    from sglang.test.ci.ci_register import register_cpu_ci
except ImportError:  # without SGLang

    def register_cpu_ci(**_):
        return None


register_cpu_ci(est_time=20, suite="base-a-test-cpu")

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def chars(text):
    return frozenset(text)


# Regular expressions


@pytest.mark.parametrize(
    "pattern, left, right, expected",
    [
        ("ab", "a", "b", True),
        ("ab", "b", "a", False),
        ("a|b", "a", "b", False),
        ("[ab]+", "a", "b", True),
        ("[ab]{1}", "a", "b", False),
        ("[ab]{1,2}", "a", "b", True),
        ("a?b*c", "a", "c", True),
        ("(?:ab?)c", "a", "c", True),
        ("(?i:'S)", "'", "s", True),
        ("[^a]+", "b", "a", False),
        ("a(?!x)b", "a", "b", True),
        (GPT2, "x", " ", False),
        (GPT2, " ", "x", True),
        (GPT2, "x", "1", False),
        (GPT2, "'", "s", True),
        (LLAMA3, "x", " ", False),
        (LLAMA3, ".", "\n", True),
        (LLAMA3, "x", "\n", False),
        (LLAMA3, "，", "你", True),
        (LLAMA3, "你", "，", False),
        (r"\p{Han}+", "你", "x", False),
        (r"\p{^L}+", "1", "2", True),
        (r"[a-c\-]+", "c", "-", True),
        (r"[\p{L}\p{M}]+\n", "x", "\n", True),
        (r"[A-Z\u4e00-\u9fa5]+", "Q", "你", True),
    ],
)
def test_what_a_match_may_join(pattern, left, right, expected):
    assert SplitRegex(pattern).joins(chars(left), chars(right)) is expected


@pytest.mark.parametrize(
    "pattern, text, expected",
    [
        ("a|b", "ab", True),
        ("a+", "a", True),
        ("ab?", "a", True),
        ("a?b", "a", False),
        ("a{2,}", "a", False),
        ("a(?!b)", "a", False),
        (GPT2, "x1. ", True),
        (r"\p{N}{1,3}", "1x", False),
    ],
)
def test_what_is_in_some_match(pattern, text, expected):
    assert SplitRegex(pattern).covers(chars(text)) is expected


def test_where_a_lookaround_is_tried():
    assert SplitRegex(GPT2).looks_after(chars(" "))
    assert not SplitRegex(GPT2).looks_after(chars("x"))
    assert SplitRegex(r"a(?:b|(?!c))").looks_after(chars("a"))


@pytest.mark.parametrize(
    "pattern",
    [
        *("a*", "a?", "(?=a)", "^a", "a$", r"\ba", "(?<=a)b", "(?>a)b", "a++", "a{2}+"),
        *(r"\X", r"a(?!bc)", r"[[:alpha:]]", "[a&&b]", r"\p{Nope}", "(a", "a)", "[a"),
        *("a**", "(?<n>a)", r"\1", "[b-a]", "a{x}", r"\p{L", "a(?!)"),
    ],
)
def test_what_is_not_understood_is_refused(pattern):
    with pytest.raises(NotUnderstood):
        SplitRegex(pattern)


# Cuts


def token(content, **more):
    flags = {"lstrip": False, "rstrip": False, "single_word": False}
    return {"content": content, "id": 9, "normalized": False, **flags, **more}


def config(pre=None, tokens=(), normal=None, post=None, **model):
    return {
        "added_tokens": [
            token(item) if isinstance(item, str) else item for item in tokens
        ],
        "normalizer": normal,
        "pre_tokenizer": pre,
        "post_processor": post,
        "model": {"type": "BPE", "vocab": {}, **model},
    }


def split(pattern, behavior="Isolated"):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior}


def test_tokens_are_found_leftmost_then_longest():
    words = ["<a>", "<a>b", "<", "ab", "b<", "\n", "\n\n", "\n\n\n\n"]
    cuts, chance = cuts_of(config(tokens=words), str), random.Random(1)
    for _ in range(500):
        text = "".join(chance.choice("<>ab\n") for _ in range(30))
        found, at = [], 0
        while at < len(text):
            longest = max(
                (w for w in words if text.startswith(w, at)), key=len, default=""
            )
            found += [(at, at + len(longest))] if longest else []
            at += len(longest) or 1
        assert [match.span() for match in cuts.tokens.finditer(text)] == found


def test_pieces_are_the_text_and_each_begins_at_a_token_or_a_pair():
    cuts, chance = cuts_of(config(split(GPT2), ["<t>"]), str), random.Random(2)
    for _ in range(200):
        text = "".join(
            chance.choice(["<t>", "word", " ", "\n", "1"]) for _ in range(60)
        )
        pieces = cuts.pieces(text, 1, 1)
        assert "".join(pieces) == text and all(pieces)
        for one, two in zip(pieces, pieces[1:]):
            pair = any(
                one[-1] in module_set(left) and two[0] in ends
                for left, ends in cuts.pairs.items()
            )
            assert pair or two.startswith("<t>")


def module_set(pattern):
    matcher = re.compile(f"[{pattern}]")
    return [chr(code) for code in range(0x20, 0x80) if matcher.match(chr(code))]


def test_a_longer_text_is_cut_in_the_same_places():
    cuts = cuts_of(config(split(GPT2), ["<t>"]), str)
    text = "".join(f"line {i} of <t> prose and more words\n" * 9 for i in range(30))
    whole = cuts.pieces(text)
    assert len(whole) > 10 and max(map(len, whole)) < 2200
    for end in range(1000, len(text), 777):
        shorter = cuts.pieces(text[:end])
        assert shorter[:-1] == whole[: len(shorter) - 1]


def test_after_a_change_in_the_middle_the_pieces_are_the_same_again():
    cuts = cuts_of(config(split(GPT2)), str)
    chance = random.Random(3)
    words = ["alpha", "beta.", "gamma\n", "delta;", "eps\n\n", "zeta1"]
    text = " ".join(chance.choice(words) for _ in range(9000))
    middle = len(text) // 2
    one = cuts.pieces(text)
    two = cuts.pieces(text[:middle] + " something new " + text[middle:])
    assert len(set(two) - set(one)) < len(two) / 3


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}


@pytest.mark.parametrize(
    "pre, pair",
    [
        (split(GPT2), "x "),
        (split(GPT2), "你。"),
        (split(LLAMA3), "x\n"),
        (split(LLAMA3), "x1"),
        (BYTES, "x\n"),
        ({**BYTES, "add_prefix_space": True}, "x "),
        (METASPACE, "x "),
        ({"type": "BertPreTokenizer"}, "x."),
        ({"type": "WhitespaceSplit"}, "x\n"),
        ({"type": "Whitespace"}, "x "),
        ({"type": "CharDelimiterSplit", "delimiter": " "}, "x "),
        ({"type": "Digits", "individual_digits": True}, "x1"),
        ({"type": "Sequence", "pretokenizers": [split(r"\p{N}{1,3}"), BYTES]}, "x "),
    ],
)
def test_a_pre_tokenizer_that_must_cut(pre, pair):
    pairs = cuts_of(config(pre), str).pairs
    assert any(
        pair[0] in left_of(left) and pair[1] in ends for left, ends in pairs.items()
    )


def left_of(pattern):
    return "你" if pattern.startswith("一") else module_set(pattern)


@pytest.mark.parametrize(
    "pre, pair",
    [
        (split(LLAMA3), ".\n"),  # swallowed by the punctuation before
        (split(GPT2), "x'"[::-1]),
        ({**BYTES, "add_prefix_space": True}, "x\n"),  # would get a space
        (METASPACE, "x\n"),
        ({**METASPACE, "split": False}, "x "),
        (split(r"\p{N}{1,3}"), "x "),  # nothing cuts there
        (split(r"\s", "Contiguous"), "x "),
        (split(" ", "MergedWithPrevious"), "x "),
        ({"type": "Digits", "individual_digits": False}, "x1"),
        (None, "x "),
    ],
)
def test_a_place_that_is_not_safe(pre, pair):
    pairs = cuts_of(config(pre, ["<t>"]), str).pairs
    assert not any(
        pair[0] in module_set(left) and pair[1] in ends for left, ends in pairs.items()
    )


def test_without_a_pre_tokenizer_the_vocabulary_decides():
    letters = [chr(code) for code in range(32, 127)]
    vocab = dict.fromkeys([*letters, "\n", "ab", "a b"], 1)
    cuts = cuts_of(config(tokens=["<t>"], vocab=vocab), str)
    assert "\n" in cuts.pairs["A-Za-z"] and " " not in cuts.pairs["A-Za-z"]
    for more in ({"ignore_merges": True}, {"end_of_word_suffix": "</w>"}):
        assert not cuts_of(config(tokens=["<t>"], vocab=vocab, **more), str).pairs


@pytest.mark.parametrize(
    "normal", ["Strip", "Prepend", "ByteLevel", "Precompiled", "New"]
)
def test_a_normalizer_that_is_not_local_leaves_the_added_tokens(normal):
    given = config(split(GPT2), ["<t>"], {"type": normal})
    assert cuts_of(given, str).pairs == {}


def test_a_pair_within_a_token_that_is_matched_later_is_no_place():
    given = config(split(GPT2), [token("ab 1", normalized=True)])
    assert " " not in cuts_of(given, str).pairs["A-Za-z"]
    assert " " in cuts_of(config(split(GPT2)), str).pairs["A-Za-z"]


def test_a_text_with_a_token_that_strips_is_refused():
    for flag in ("lstrip", "rstrip", "single_word"):
        cuts = cuts_of(config(split(GPT2), ["<t>", token("<s>", **{flag: True})]), str)
        assert cuts.pieces("a <t> b") and cuts.pieces("a <s> b") is None


@pytest.mark.parametrize(
    "given",
    [
        config(),
        config({"type": "UnicodeScripts"}, ["<t>"]),
        config({"type": "Unheard"}, ["<t>"]),
        config(split("a*"), ["<t>"]),
        config(split(GPT2, "Strange"), ["<t>"]),
        config(split(GPT2), dropout=0.1),
        config(
            tokens=[token("<m>", lstrip=True, normalized=True)], normal={"type": "NFC"}
        ),
        config(tokens=["<t>"], post={"type": "Unheard"}),
        config(tokens=["<t>"], post={"type": "TemplateProcessing", "single": []}),
        config(tokens=["<t>"], post={"type": "TemplateProcessing", "single": [{}]}),
    ],
)
def test_a_tokenizer_that_takes_the_full_encode(given):
    with pytest.raises(NoCuts) as reason:
        cuts_of(given, str)
    assert str(reason.value)


# Token ids


def test_token_ids_are_a_list_with_its_array():
    ids = TokenIds([1, 2], array("q", [1, 2]))
    assert ids == [1, 2] and isinstance(ids, list) and json.dumps(ids) == "[1, 2]"
    assert packed_ids(ids) is ids.array
    assert type(ids + [3]) is list and type(ids[:1]) is list
    for other in ([1], (1,), array("q", [1]), None, "x"):
        assert packed_ids(other) is other


CHANGES = {
    "append": (3,), "extend": ([3],), "insert": (0, 3), "remove": (1,), "pop": (),
    "clear": (), "sort": (), "reverse": (), "__setitem__": (0, 3), "__delitem__": (0,),
    "__iadd__": ([3],), "__imul__": (2,),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_list_has_no_array(name):
    ids, plain = TokenIds([2, 1], array("q", [2, 1])), [2, 1]
    getattr(ids, name)(*CHANGES[name])
    getattr(plain, name)(*CHANGES[name])
    assert ids == plain and packed_ids(ids) is ids


def test_every_method_that_changes_a_list_is_covered():
    same = {"copy", "count", "index"}
    public = {name for name in vars(list) if not name.startswith("_")} - same
    inplace = {"__setitem__", "__delitem__", "__iadd__", "__imul__"}
    assert public | inplace == set(CHANGES)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_is_a_plain_list(copied):
    ids = copied(TokenIds([1, 2], array("q", [1, 2])))
    assert type(ids) is list and ids == [1, 2]


# The store


def filled(bounds, *sizes):
    store = PieceStore(bounds)
    for number, size in enumerate(sizes):
        ids = tuple(range(size))
        store.add(str(number), ids, array("q", ids).tobytes(), str(number))
    return store


def kept(store):
    return [key for key in map(str, range(9)) if store.get(key)]


def test_least_recently_used_pieces_go_first():
    store = filled(Bounds(10, 1 << 20), 4, 4)
    assert store.get("0")
    store.add("2", (1, 2, 3), b"x" * 24, "2")
    assert kept(store) == ["0", "2"] and store.tokens == 7


def test_bytes_are_bounded_too_and_count_down_to_nothing():
    store = filled(Bounds(1000, 2000), *[20] * 8)
    assert 0 < store.size <= 2000 and len(store) < 8 and store.get("7")
    store = filled(Bounds(10, 1 << 20), 11)
    assert (len(store), store.tokens, store.size) == (0, 0, 0)


# Real tokenizers


MARKS = ("<|start|>", "<|end|>")
TEXT = "".join(
    f"<|start|>user\nLine {i} isn't short: naïve café 你好，世界。 1,234 x=[{i}];\t \n\n<|end|>\n"
    for i in range(60)
)


def backend(pre_tokenizer=None, post=None, normalizer=None, **model):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(**model))
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizer or level
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=level.alphabet()
    )
    made.train_from_iterator([TEXT], trainer)
    added = [
        tokenizers.AddedToken(mark, special=True, normalized=False) for mark in MARKS
    ]
    made.add_special_tokens(added)
    if post:
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single="<|start|> $A <|end|>",
            special_tokens=[(mark, made.token_to_id(mark)) for mark in MARKS],
        )
    if normalizer:
        made.normalizer = normalizer
    return made


def tokenizer(**options):
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend(**options))


@pytest.fixture
def pair():
    """A tokenizer, and the same with pieces."""
    plain = tokenizer(post=True)
    with_pieces = copy.deepcopy(plain)
    encoder = PieceEncoder(with_pieces, Bounds())
    encoder.install()
    return plain, with_pieces, encoder


def test_encode_and_call_are_the_full_encode(pair):
    plain, pieces, encoder = pair
    for _ in range(2):
        for special in (True, False):
            options = {"add_special_tokens": special}
            assert pieces.encode(TEXT, **options) == plain.encode(TEXT, **options)
            assert dict(pieces(TEXT, **options)) == dict(plain(TEXT, **options))
            batch = [TEXT, "short", "", TEXT[:3000]]
            assert dict(pieces(batch, **options)) == dict(plain(batch, **options))
    assert len(encoder.store) > 2


def test_the_array_is_the_list(pair):
    ids = pair[1].encode(TEXT)
    assert type(ids) is TokenIds and list(ids.array) == ids
    assert ids.array.typecode == "q"


def test_only_what_is_new_is_encoded(pair, monkeypatch):
    _, pieces, encoder = pair
    pieces.encode(TEXT)
    encoded = []
    original = PieceEncoder._encode
    monkeypatch.setattr(
        PieceEncoder,
        "_encode",
        lambda self, texts: original(self, encoded_now(encoded, texts)),
    )
    pieces.encode(TEXT)
    assert encoded == []
    pieces.encode(TEXT + "and one more line")
    assert 0 < sum(map(len, encoded)) < 2000


def encoded_now(encoded, texts):
    encoded += texts
    return list(texts)


@pytest.mark.parametrize("used", range(len(MARKS) + 1))
def test_misses_take_one_call_where_a_mark_is_left(monkeypatch, used):
    encoder = PieceEncoder(tokenizer(), Bounds())
    calls = []
    original = PieceEncoder._encode_one
    monkeypatch.setattr(
        PieceEncoder,
        "_encode_one",
        lambda self, given, **options: calls.append(given)
        or original(self, given, **options),
    )
    texts = ["one two", "".join(MARKS[len(MARKS) - used :]), "", " three\n", "one two"]
    ids = encoder._encode(texts)
    assert len(calls) == (1 if used < len(MARKS) else len(texts))
    assert ids == [original(encoder, text) for text in texts]


def test_a_mark_that_a_text_becomes_is_told_by_its_count(pair):
    encoder = pair[2]
    texts = ["one two", " three", "four"]
    expected = [encoder._encode_one(text) for text in texts]
    mark, _ = encoder._marks[0]
    encoder._marks = [(mark, expected[1][0])]  # an id that a text has too
    assert encoder._encode(texts) == expected
    encoder._marks = [("no added token", encoder._backend.token_to_id(mark))]
    assert encoder._encode(texts) == expected


OPTIONS = [
    {"padding": True},
    {"padding": "max_length", "max_length": 3000},
    {"truncation": True, "max_length": 50},
    {"return_offsets_mapping": True},
    {"return_special_tokens_mask": True},
    {"return_token_type_ids": True},
    {"return_length": True},
    {"return_overflowing_tokens": True},
    {"text_pair": "another"},
    {"split_special_tokens": True},
    {"return_attention_mask": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_does_what_it_did(pair, options):
    plain, pieces, _ = pair
    plain.pad_token = pieces.pad_token = "<|end|>"
    for text in (TEXT, [TEXT, TEXT[:2000]]):
        given = {**options}
        if "text_pair" in given and isinstance(text, list):
            given["text_pair"] = ["another", "pair"]
        assert dict(pieces(text, **given)) == dict(plain(text, **given))
        assert dict(pieces(text)) == dict(plain(text)), "and nothing of it stays"


def test_split_words_and_pretokenized_input(pair):
    plain, pieces, _ = pair
    words = TEXT.split(" ")
    assert dict(pieces(words, is_split_into_words=True)) == dict(
        plain(words, is_split_into_words=True)
    )
    plain.split_special_tokens = pieces.split_special_tokens = True
    assert pieces.encode(TEXT) == plain.encode(TEXT)


@pytest.mark.parametrize("text", [TEXT + "\ud800", None, 5, [TEXT, 5], [TEXT, None]])
def test_what_fails_fails_as_it_did(pair, text):
    plain, pieces, _ = pair
    with pytest.raises(Exception) as expected:
        plain(text)
    with pytest.raises(type(expected.value)) as error:
        pieces(text)
    assert str(error.value) == str(expected.value)


def test_a_token_that_strips_takes_the_full_encode(pair):
    tokenizers = pytest.importorskip("tokenizers")
    plain = tokenizer()
    plain.add_tokens([tokenizers.AddedToken("<m>", lstrip=True, normalized=False)])
    pieces = copy.deepcopy(plain)
    encoder = PieceEncoder(pieces, Bounds())
    encoder.install()
    text = TEXT[:4000] + "  <m> " + TEXT
    assert encoder.encode(text) is None
    assert pieces.encode(text) == plain.encode(text)


def test_bounds_hold_while_texts_go_by(pair):
    encoder = pair[2]
    encoder.store = PieceStore(Bounds(tokens=2000, size=60_000))
    for number in range(30):
        text = TEXT.replace("user", f"user {number}")
        assert pair[1].encode(text) == pair[0].encode(text)
        assert encoder.store.tokens <= 2000 and encoder.store.size <= 60_000


def test_a_salt_shares_no_pieces(pair):
    _, pieces, encoder = pair

    def encode(**request):
        salt_pieces(SimpleNamespace(**request))
        before = len(encoder.store)
        pieces.encode(TEXT)
        return len(encoder.store) - before

    def all_of_them():
        first = encode()
        assert first > 0 and encode() == 0 and encode(cache_salt=None) == 0
        assert encode(cache_salt="a") == first and encode(cache_salt="a") == 0
        assert encode(extra_key="a") == first
        assert encode(cache_salt="a", extra_key=["b"]) == first
        assert encode() == 0

    contextvars.copy_context().run(all_of_them)


def test_a_plan_that_is_wrong_is_found_at_start(monkeypatch):
    wrong = tokenizer()
    encoder = PieceEncoder(wrong, Bounds())
    joined = {"A-Za-z": "abcdefghijklmnopqrstuvwxyz"}
    object.__setattr__(encoder._cuts, "inner", re.compile("[A-Za-z](?=[a-z])"))
    object.__setattr__(encoder._cuts, "pairs", joined)
    with pytest.raises(NoCuts, match="different"):
        encoder.install()
    assert "_encode_plus" not in vars(wrong)


def test_truncation_and_padding_that_came_with_the_file():
    made = backend()
    made.enable_truncation(20)
    made.enable_padding(length=30)
    transformers = pytest.importorskip("transformers")
    plain = transformers.PreTrainedTokenizerFast(tokenizer_object=made)
    pieces = copy.deepcopy(plain)
    PieceEncoder(pieces, Bounds()).install()
    assert type(pieces.encode(TEXT)) is TokenIds
    assert pieces.encode(TEXT) == plain.encode(TEXT)


def slow():
    return SimpleNamespace(_tokenizer=None)


def with_own_encode():
    made = tokenizer()
    made.encode = lambda text: [1]
    return made


def with_own_class():
    made = tokenizer()
    kind = type(made)
    made.__class__ = type("Own", (kind,), {"encode": lambda self, text: [1]})
    return made


def with_python_part():
    from tokenizers import pre_tokenizers

    class Own:
        def pre_tokenize(self, text):
            text.split(lambda i, part: part.split(" ", "isolated"))

    made = tokenizer()
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Own())
    return made


@pytest.mark.parametrize(
    "make", [slow, with_own_encode, with_own_class, with_python_part]
)
def test_another_kind_of_tokenizer_is_left_alone(make):
    with pytest.raises(NoCuts):
        PieceEncoder(make(), Bounds())


# In the server


class Manager:
    def __init__(self, shared, mode="on", metrics=False):
        self._tokenizer = shared
        self.enable_metrics = metrics
        self.served_model_name = "model"
        self.preprocess_executor = PreprocessExecutor(shared, mode)
        install_token_pieces(self)

    @property
    def tokenizer(self):
        return current_tokenizer(self)

    def on_worker(self, text):
        async def main():
            run = self.preprocess_executor.run
            return await run(lambda: self.tokenizer.encode(text))

        return asyncio.run(main())


def test_jobs_have_pieces_and_the_loop_has_not(monkeypatch, caplog):
    monkeypatch.delenv(SWITCH, raising=False)
    caplog.set_level("INFO")
    shared = tokenizer()
    manager = Manager(shared)
    expected = shared.encode(TEXT)
    assert type(expected) is list and type(manager.tokenizer.encode(TEXT)) is list
    for _ in range(2):
        ids = manager.on_worker(TEXT)
        assert type(ids) is TokenIds and ids == expected
    assert "_encode_plus" not in vars(shared)
    assert caplog.text.count("Token pieces are kept") == 1
    manager.preprocess_executor.shutdown()


@pytest.mark.parametrize(
    "mode, switch", [("on", "off"), ("upstream", "on"), ("inline", "on")]
)
def test_off_or_without_a_worker_nothing_changes(monkeypatch, mode, switch):
    monkeypatch.setenv(SWITCH, switch)
    shared = tokenizer()
    manager = Manager(shared, mode)
    assert type(manager.on_worker(TEXT)) is list
    manager.preprocess_executor.shutdown()


@pytest.mark.parametrize(
    "manager",
    [None, object(), Mock(spec=[]), SimpleNamespace(preprocess_executor=None)],
)
def test_a_manager_without_an_executor_is_left_alone(monkeypatch, manager):
    monkeypatch.delenv(SWITCH, raising=False)
    install_token_pieces(manager)


def test_why_pieces_are_not_kept_is_logged(monkeypatch, caplog):
    monkeypatch.delenv(SWITCH, raising=False)
    tokenizers = pytest.importorskip("tokenizers")
    caplog.set_level("INFO")
    manager = Manager(
        tokenizer(pre_tokenizer=tokenizers.pre_tokenizers.UnicodeScripts())
    )
    assert (
        "Token pieces are not kept: unknown pre-tokenizer UnicodeScripts" in caplog.text
    )
    assert type(manager.on_worker(TEXT)) is list
    manager.preprocess_executor.shutdown()


@pytest.mark.parametrize(
    "name, value",
    [(SWITCH, "yes"), (MAX_TOKENS, "0"), (MAX_TOKENS, "many"), (MAX_MIB, "-1")],
)
def test_a_setting_that_makes_no_sense_is_an_error(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    manager = SimpleNamespace(
        preprocess_executor=SimpleNamespace(worker_tokenizer=object())
    )
    with pytest.raises(ValueError) as error:
        install_token_pieces(manager)
    assert name in str(error.value) and repr(value) in str(error.value)


def test_counts_and_sizes_are_in_the_servers_metrics(monkeypatch):
    prometheus = pytest.importorskip("prometheus_client")
    monkeypatch.delenv(SWITCH, raising=False)
    tokenizers = pytest.importorskip("tokenizers")
    shared = tokenizer()
    shared.add_tokens([tokenizers.AddedToken("<m>", lstrip=True, normalized=False)])
    manager = Manager(shared, metrics=True)

    def value(name, **labels):
        sample = prometheus.REGISTRY.get_sample_value
        return (
            sample(f"sglang:token_pieces_{name}", {"model_name": "model", **labels})
            or 0
        )

    manager.on_worker(TEXT)
    missed, held = value("total", outcome="miss"), value("tokens")
    assert missed > 2 and held > 1000 and value("bytes") > held
    assert value("total", outcome="hit") == 0
    manager.on_worker(TEXT)
    assert value("total", outcome="hit") == missed
    manager.on_worker(TEXT + "<m>")
    assert value("total", outcome="refused") == 1
    manager.preprocess_executor.shutdown()


def test_installed_twice_in_one_process(monkeypatch):
    pytest.importorskip("prometheus_client")
    monkeypatch.delenv(SWITCH, raising=False)
    for _ in range(2):
        Manager(tokenizer(), metrics=True).preprocess_executor.shutdown()


def test_no_token_is_another(pair):
    plain, pieces, encoder = pair
    chance = random.Random(7)
    parts = [
        "<|start|>",
        "<|sta",
        "end|>",
        " ",
        "\n",
        "word",
        "'s",
        "１",
        "你好",
        "。",
        "\u0301",
        "x1",
    ]
    for _ in range(60):
        text = TEXT[: chance.randrange(3000)]
        text += "".join(chance.choice(parts) for _ in range(chance.randrange(900)))
        text += TEXT[chance.randrange(3000) :]
        assert pieces.encode(text) == plain.encode(text)
        encoded = encoder._backend.encode_batch_fast(
            encoder._cuts.pieces(text, 1, 1), add_special_tokens=False
        )
        ids = [token for part in encoded for token in part.ids]
        assert ids == plain.encode(text, add_special_tokens=False)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
