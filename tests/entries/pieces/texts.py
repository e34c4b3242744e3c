"""Texts that tokenizers cut in unexpected places, and chats made of them; the same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence

PROSE = (
    "The quick brown fox didn't jump; it wasn't asked. \"Why?\" they'd say, and I'll tell you: it's late. "
    "Über naïve façades (café, déjà-vu) e.g. 3.14159 or 1,234,567.89 and v2.0-rc1/beta_3. "
    "Привет, мир! Как дела? Всё хорошо. 你好，世界。今天天气很好！我们去哪里？ こんにちは、世界。カタカナ「テスト」です。 "
    "안녕하세요. 잘 지내세요? مرحبا بالعالم، كيف الحال؟ नमस्ते दुनिया। ยินดีต้อนรับ Γειά σου Κόσμε! שלום עולם "
)
CODE = (
    "def f(x: int = 0) -> str:\n    '''Doc.'''\n    if x > 1 and not y:\n        return f\"{x!r:>10}\"\n\n\n"
    "class A(B):\n\tpass\r\n\r\n# comment\nfor (int i=0;i<10;i++) { a[i] += b->c; }\n"
    '{"key": [1, 2.5e-3, null, true], "url": "https://example.org/a?b=c&d=%20#e"}\n<div class="x">text</div>\n'
)
ODD = (
    *(
        "\u0301",
        "é",
        "e\u0301",
        "ﬁ",
        "①",
        "İ",
        "ß",
        "ſ",
        "ǅ",
        "K",
        "\u200d",
        "👩\u200d👩\u200d👧",
        "🏳️\u200d🌈",
        "\ufeff",
        "\u00a0",
    ),
    *(
        "\u3000",
        "\u2028",
        "\x00",
        "\x1c",
        "\x85",
        "\t",
        "\r",
        "\n",
        "\r\n",
        " ",
        "  ",
        "   ",
        "\n\n",
        " \n ",
        "\n \n",
        "ㅎ",
        "ᄒ",
    ),
    *("한", "ไ", "ก็", "\u0600a", "’s", "'S", "'ll", "''", "``", "▁", "▁▁", "Ġ", "<0x0A>", "�", "\U0010ffff", "a" * 70),
    *(
        "QUJDREVGRw==",
        "0xdeadBEEF",
        "1" * 40,
        "-" * 30,
        "=" * 17,
        "。。。",
        "，",
        "、、",
        "「」",
        "A1b2C3",
        "x",
        "'",
        '"',
        ".",
    ),
)


def corpus() -> list[str]:
    """What tokenizers are trained on."""
    chance = random.Random(0)
    return [PROSE, CODE, *(text(chance, 400) for _ in range(40)), *PROSE.split(), *CODE.split()]


def text(chance: random.Random, length: int, tokens: Sequence[str] = ()) -> str:
    """Random text of some `length` characters, with whole and broken tokens in it."""
    parts, size = [], 0
    while size < length:
        part = _part(chance, tokens)
        parts.append(part)
        size += len(part)
    return "".join(parts)


def _part(chance: random.Random, tokens: Sequence[str]) -> str:
    kind = chance.random()
    if kind < 0.55:
        source = chance.choice((PROSE, PROSE, CODE))
        start = chance.randrange(len(source))
        return source[start : start + chance.randrange(1, 60)]
    if kind < 0.75:
        return chance.choice(ODD)
    if kind < 0.85:
        return "".join(chance.choice("abcdefgh XYZ\n") for _ in range(chance.randrange(1, 30)))
    if kind < 0.92:
        return "".join(_character(chance) for _ in range(chance.randrange(1, 9)))
    if not tokens:
        return " "
    token = chance.choice(tokens)
    start = chance.choice((0, 0, chance.randrange(len(token))))
    return token[start : chance.choice((len(token), chance.randrange(start, len(token)) + 1))]


def _character(chance: random.Random) -> str:
    while True:
        code = chance.randrange(chance.choice((0x80, 0x500, 0x3200, 0xFFFF, 0x10FFFF)))
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def prose(chance: random.Random, length: int) -> str:
    """Ordinary text and code, as most prompts are."""
    parts, size = [], 0
    while size < length:
        words = chance.choice((PROSE, CODE)).split(" ")
        start = chance.randrange(len(words))
        parts.append(
            " ".join(words[start : start + chance.randrange(3, 40)]) + chance.choice((" ", ". ", "\n", "\n\n"))
        )
        size += len(parts[-1])
    return "".join(parts)


def chats(chance: random.Random, tokens: Sequence[str]) -> Iterator[str]:
    """Rendered chats: with tools, growing turn by turn, and with one huge message of changing ends."""
    start, end = (*tokens, "<|im_start|>", "<|im_end|>")[:2]

    def turn(role: str, content: str) -> str:
        return f"{start}{role}\n{content}{end}\n"

    tools = json.dumps([{"name": f"tool_{i}", "parameters": {"type": "object"}} for i in range(30)], indent=2)
    rendered = turn("system", prose(chance, 1500) + tools)
    for _ in range(6):
        rendered += turn("user", text(chance, chance.randrange(20, 3000), tokens))
        yield rendered + f"{start}assistant\n"
        rendered += turn("assistant", prose(chance, chance.randrange(20, 4000)))
    huge = prose(chance, 12_000) + text(chance, 2000, tokens) + prose(chance, 6000)
    for _ in range(3):
        yield turn("user", huge + text(chance, 80, tokens)) + f"{start}assistant\n"
    middle = len(huge) // 2
    yield turn("user", huge[:middle] + text(chance, 100) + huge[middle:])
