"""Bursts of short and long requests on several routes, some of whose clients go away: order holds, nothing stays."""

from __future__ import annotations

import asyncio
import os
import random
import time
from dataclasses import dataclass, field
from typing import Any

from stackctl_bed import client, texts
from stackctl_bed.figures import milliseconds
from stackctl_bed.target import Order, Outcome, Target, ask, order, trace_size

SETTLE_S = 15
# Threads and descriptors may come once and stay: those of asyncio's default pool, a keep-alive connection's.
SLACK = {"threads": min(32, (os.cpu_count() or 1) + 4), "descriptors": 40}


@dataclass
class Burst:
    """What came back of all bursts; `vanished` were cancelled by their client."""

    replies: list[client.Reply] = field(default_factory=list)
    rids: set[str] = field(default_factory=set)
    vanished: int = 0


async def run(target: Target) -> Outcome:
    """Settings: bursts, size, long_tokens, long_share, vanish_share, seed."""
    draw = random.Random(target.of("seed", 201))
    long_text = texts.prose_of_tokens(target.model, "order", target.of("long_tokens", 12_000))
    burst = Burst()
    async with client.connected(target.base, timeout=60) as session:
        await _warm(session)
        before = await ask(session, "state", {"collect": True})
        await ask(session, "entries")
        since = trace_size(target)
        for number in range(target.of("bursts", 6)):
            await _one_burst(target, session, draw, number, long_text, burst)
        seen = await order(target, session, since, burst.rids)
    async with client.connected(target.base, timeout=60) as session:
        after = await _settled(session)
    return _outcome(burst, seen, before, after)


async def _warm(session: Any) -> None:
    """Every route once: templates and pools come into being at the first use."""
    for number in range(len(_ROUTES)):
        path, body = _request(number, f"warm-{number}-{time.monotonic_ns()}", "a word")
        await client.call(session, path, body)


async def _one_burst(target: Target, session: Any, draw: random.Random, number: int, long_text: str, burst: Burst) -> None:
    """All at once, a millisecond or so apart; those that vanish do it within 60 ms."""
    tasks = []
    for place in range(target.of("size", 24)):
        rid = f"{target.run}-b{number}-{place}"
        text = f"{rid} {long_text}" if draw.random() < target.of("long_share", 0.3) else f"{rid} {texts.prose(rid, 12)}"
        path, body = _request(draw.randrange(len(_ROUTES)), rid, text)
        vanish_s = draw.uniform(0.0, 0.06) if draw.random() < target.of("vanish_share", 0.25) else None
        tasks.append(asyncio.create_task(_one(session, path, body, vanish_s, burst)))
        if vanish_s is None:
            burst.rids.add(rid)
        await asyncio.sleep(draw.uniform(0.0, 0.002))
    await asyncio.gather(*tasks)


async def _one(session: Any, path: str, body: bytes, vanish_s: float | None, burst: Burst) -> None:
    if vanish_s is None:
        burst.replies.append(await client.call(session, path, body))
        return
    burst.vanished += 1
    try:
        async with asyncio.timeout(vanish_s):  # the client closes the connection on its way out
            await client.call(session, path, body)
    except TimeoutError:
        pass


def _chat(rid: str, text: str) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"model": "smoke", "rid": rid, "max_tokens": 2, "messages": [{"role": "user", "content": text}]}


def _completion(rid: str, text: str) -> tuple[str, dict[str, Any]]:
    return "/v1/completions", {"model": "smoke", "rid": rid, "max_tokens": 2, "prompt": text}


def _generate(rid: str, text: str) -> tuple[str, dict[str, Any]]:
    return "/generate", {"rid": rid, "text": text, "sampling_params": {"max_new_tokens": 2}}


_ROUTES = (_chat, _completion, _generate)


def _request(route: int, rid: str, text: str) -> tuple[str, bytes]:
    path, body = _ROUTES[route](rid, text)
    return path, texts.as_json(body)


async def _settled(session: Any) -> dict[str, Any]:
    """The server's state once it holds no request, or after SETTLE_S."""
    end = time.monotonic() + SETTLE_S
    while True:
        state = await ask(session, "state", {"collect": True})
        if (state["requests"], state["jobs"]) == (0, 0) or time.monotonic() > end:
            return state
        await asyncio.sleep(0.25)


def _outcome(burst: Burst, seen: Order, before: dict[str, Any], after: dict[str, Any]) -> Outcome:
    failed = [reply.error for reply in burst.replies if not reply.ok]
    outcome = Outcome(metrics={"ordered": seen.both, "overtaken": seen.overtaken, "vanished": burst.vanished, "done": len(burst.replies) - len(failed)})
    outcome.hold(not failed, f"{len(failed)} of {len(burst.replies)} requests failed: {failed[0] if failed else ''}")
    outcome.hold(seen.both >= len(burst.rids), f"only {seen.both} of {len(burst.rids)} requests were seen at both ends")
    outcome.hold(after["requests"] == 0, f"{after['requests']} requests are held after all clients are gone")
    outcome.hold(after["jobs"] == 0, f"{after['jobs']} jobs are outstanding after all clients are gone")
    for name, slack in SLACK.items():
        outcome.hold(after[name] <= before[name] + slack, f"{name} went from {before[name]} to {after[name]}")
    outcome.metrics |= milliseconds([reply.total_s for reply in burst.replies if reply.ok], "request")
    outcome.samples = [{"total_s": round(reply.total_s, 5), "error": reply.error} for reply in burst.replies]
    outcome.samples += seen.sightings
    return outcome
