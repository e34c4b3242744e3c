"""Padding calls on the loop's tokenizer while long prompts are encoded: does anything wait, does anything raise?

With tokenizers 0.22 a shared backend raises "Already borrowed", with 0.23 it blocks the call. So what is judged is
the share of the time in which a padding call raised or waited: a share of the calls would count a wait of 100 ms
once, and the twenty calls that it keeps from being made not at all.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from stackctl_bed import client, texts
from stackctl_bed.figures import milliseconds
from stackctl_bed.target import Outcome, Target, ask


async def run(target: Target) -> Outcome:
    """Settings: seconds, spacing_s, long_tokens, messages, slow_s."""
    chat = texts.long_chat(target.model, "borrow", target.of("long_tokens", 36_000), target.of("messages", 26))
    outcome, encoded = Outcome(), []
    async with client.connected(target.base, timeout=120) as session:
        # Two, so that the next prompt waits when one is done and the worker never rests.
        encoders = [asyncio.create_task(_encode(target, session, chat, encoded)) for _ in range(2)]
        await asyncio.sleep(0.5)
        try:
            body = {"seconds": target.of("seconds", 5), "spacing_s": target.of("spacing_s", 0.005)}
            padded = await ask(session, "pad", body)
        finally:
            for encoder in encoders:
                encoder.cancel()
            await asyncio.gather(*encoders, return_exceptions=True)
    seconds, errors, slow_s = padded["seconds"], padded["errors"], target.of("slow_s", 0.020)
    calls = len(seconds) + len(errors)
    harmed_s = len(errors) * body["spacing_s"] + sum(second for second in seconds if second > slow_s)
    failed = [reply.error for reply in encoded if not reply.ok]
    outcome.hold(not failed, f"{len(failed)} of {len(encoded)} long chats failed: {failed[0] if failed else ''}")
    outcome.hold(not errors, f"{len(errors)} of {calls} padding calls raised: {errors[0] if errors else ''}")
    outcome.hold(len(encoded) >= 5, f"only {len(encoded)} long chats were encoded meanwhile")
    outcome.metrics = milliseconds(seconds, "pad") | {
        "pad_calls": calls, "pad_errors": len(errors), "harmed_share": round(harmed_s / body["seconds"], 4), "encoded": len(encoded),
    }  # fmt: skip
    outcome.samples = [{"pad_s": round(second, 6)} for second in seconds] + [{"error": error} for error in errors[:100]]
    return outcome


async def _encode(target: Target, session: Any, chat: list[dict[str, str]], encoded: list[client.Reply]) -> None:
    """Long chats one after the other until cancelled; each new, so that no cache answers."""
    while True:
        nonce = f"{target.run}-{len(encoded)}-{time.monotonic_ns()}"
        messages = [{**message, "content": f"{nonce} {message['content']}"} for message in chat]
        body = texts.as_json({"model": "smoke", "max_tokens": 1, "messages": messages})
        encoded.append(await client.call(session, "/v1/chat/completions", body))
