"""What runs inside the environment, as far as it needs nothing of it: percentiles, order, answers, texts."""

from __future__ import annotations

import json
import sys

import pytest

from stackctl.smoke.servers import INSIDE


@pytest.fixture(scope="module")
def bed():
    """The folder's modules, as the environment sees them."""
    sys.path.insert(0, str(INSIDE))
    try:
        yield __import__("stackctl_bed")
    finally:
        sys.path.remove(str(INSIDE))
        for name in [name for name in sys.modules if name.partition(".")[0] == "stackctl_bed"]:
            del sys.modules[name]


@pytest.fixture
def model(tmp_path):
    vocabulary = {f"word{chr(97 + n)}": n for n in range(20)} | {"\u0120other": 20, "x": 21, "12345": 22}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    return str(tmp_path)


def test_order(bed):
    from stackctl_bed.figures import overtaken

    assert overtaken("abcd", "abcd") == 0
    assert overtaken("abcd", "bacd") == 1
    assert overtaken("abcd", "dabc") == 3
    assert overtaken("abcd", "acd") == 0  # one that was cancelled never gets there
    assert overtaken("abcd", "xbya") == 1  # requests of others do not count


def test_percentiles_are_measured_values(bed):
    from stackctl_bed.figures import milliseconds, percentile

    values = [n / 1000 for n in range(1, 101)]
    assert milliseconds(values, "t") == {"t_p50_ms": 50.0, "t_p99_ms": 99.0, "t_max_ms": 100.0}
    assert percentile([5.0], 0.99) == 5.0
    assert milliseconds([], "t") == {}


def test_an_answer_follows_from_every_token(bed, model):
    from stackctl_bed import answers

    assert answers.answer(model, [1, 2, 3], 8) == answers.answer(model, [1, 2, 3], 8)
    for other in ([1, 2], [2, 1, 3], [1, 2, 4], [1, 2, 3, 3]):
        assert answers.answer(model, other, 8) != answers.answer(model, [1, 2, 3], 8)
    assert 21 not in answers.words(model) and 22 not in answers.words(model)
    assert answers.logprob([1], 2) < 0 and len(answers.embedding([1])) == answers.EMBEDDING_WIDTH


def test_the_three_forms_of_the_mixed_load(bed):
    from stackctl_bed.texts import varied

    base = [{"role": "user", "content": f"{n}\nand {n}"} for n in range(26)]
    changed = {form: sum(a != b for a, b in zip(base, varied(base, form, "x"), strict=False)) for form in ("shared", "unique", "tail")}
    assert changed == {"shared": 0, "unique": 26, "tail": 3}
    lines = [{line for message in varied(base, "unique", nonce) for line in message["content"].split("\n")} for nonce in "xy"]
    assert len(lines[0]) == 52 and not lines[0] & lines[1]


def test_prose_is_the_same_for_the_same_seed(bed):
    from stackctl_bed.texts import prose

    assert prose("a", 50) == prose("a", 50) != prose("b", 50)
    assert len(prose("a", 50).split()) == 50


def test_what_a_soak_says_of_memory_is_beyond_its_first_third(bed):
    from stackctl_bed.figures import held

    def state(mib, kept):
        return {"resident_kb": mib * 1024, "threads": 9, "descriptors": 50, "pieces_kb": kept}

    metrics = held([state(100 + turn, 1024 * turn) for turn in range(9)])
    assert (metrics["resident_growth"], metrics["threads_growth"]) == (3, 0)
    assert (metrics["pieces_least_mib"], metrics["pieces_most_mib"]) == (3, 8)
    assert "pieces_most_mib" not in held([state(100, None)] * 9)
    assert held([]) == {}
