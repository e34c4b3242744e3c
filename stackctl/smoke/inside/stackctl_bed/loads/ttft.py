"""Time to the first token of streamed chats, random input of some 256 tokens, 32 out, at a fixed concurrency."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from stackctl_bed import client, texts
from stackctl_bed.figures import milliseconds
from stackctl_bed.target import Outcome, Target


async def run(target: Target) -> Outcome:
    """Settings: concurrency, seconds, warmup_s, input_tokens, output_tokens."""
    replies: list[client.Reply] = []
    begin = time.monotonic() + target.of("warmup_s", 1)
    until = begin + target.of("seconds", 5)
    async with client.connected(target.base, timeout=60, reuse=True) as session:
        await asyncio.gather(*(_client(target, session, number, until, replies) for number in range(target.of("concurrency", 1))))
    kept = [reply for reply in replies if reply.ok and reply.started >= begin]
    errors = [reply.error for reply in replies if not reply.ok]
    outcome = Outcome(samples=[{"at": round(r.started - begin, 4), "first_s": r.first_s, "total_s": round(r.total_s, 5)} for r in replies])
    outcome.hold(not errors, f"{len(errors)} of {len(replies)} requests failed: {errors[0] if errors else ''}")
    done = sum(reply.started + reply.total_s <= until for reply in kept)
    seconds = until - begin
    outcome.metrics = milliseconds([r.first_s for r in kept if r.first_s is not None], "ttft") | {"done": done, "per_s": round(done / seconds, 2)}
    return outcome


async def _client(target: Target, session: Any, number: int, until: float, replies: list[client.Reply]) -> None:
    sent = 0
    while time.monotonic() < until:
        text = texts.prose_of_tokens(target.model, f"{number}/{sent}", target.of("input_tokens", 256))
        body = {"model": "smoke", "stream": True, "max_tokens": target.of("output_tokens", 32), "messages": [{"role": "user", "content": text}]}
        replies.append(await client.stream(session, "/v1/chat/completions", body, has_text=client.chat_has_text))
        sent += 1
