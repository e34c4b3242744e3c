"""The load of the pull request: streaming short chats beside long ones, /v1/models polled all the time.

What is cached decides everything, so the long chats come in three forms: `shared` (the same but for a short
last message), `unique` (every message new), `tail` (only the last three messages new).
"""

from __future__ import annotations

import asyncio
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from stackctl_bed import client, polling, texts
from stackctl_bed.figures import milliseconds
from stackctl_bed.target import Order, Outcome, Target, ask, order, trace_size


@dataclass
class Tally:
    """What came back, by kind of request."""

    polls: list[client.Reply] = field(default_factory=list)
    short: list[client.Reply] = field(default_factory=list)
    long: list[client.Reply] = field(default_factory=list)
    rids: list[str] = field(default_factory=list)


async def run(target: Target) -> Outcome:
    """Settings: seconds, warmup_s, short_clients, long_clients, long_tokens, messages, form, poll_s."""
    form = target.of("form", "shared")
    if form not in texts.FORMS:
        raise ValueError(f"form is {form!r}, not one of {', '.join(texts.FORMS)}")
    base = texts.long_chat(target.model, "mixed", target.of("long_tokens", 36_000), target.of("messages", 26))
    tally = Tally()
    async with client.connected(target.base, timeout=30) as probe, client.connected(target.base, timeout=120, reuse=True) as session:
        await ask(probe, "entries")
        since = trace_size(target)
        begin = time.monotonic()
        until = begin + target.of("warmup_s", 2) + target.of("seconds", 9)
        clients = [_poll(target, until, tally)]
        clients += [_short_client(target, session, number, until, tally) for number in range(target.of("short_clients", 8))]
        clients += [_long_client(target, session, number, until, tally, base) for number in range(target.of("long_clients", 4))]
        await asyncio.gather(*clients)
        seen = await order(target, probe, since, set(tally.rids))
    return _outcome(target, tally, begin + target.of("warmup_s", 2), until, seen)


async def _poll(target: Target, until: float, tally: Tally) -> None:
    tally.polls += await polling.polled(target.base, "/v1/models", target.of("poll_s", 0.010), until)


async def _short_client(target: Target, session: Any, number: int, until: float, tally: Tally) -> None:
    sent = 0
    while time.monotonic() < until:
        rid = f"{target.run}-s{number}-{sent}"
        text = f"Question {sent} of client {number}: {texts.prose(rid, 20)}"
        body = {"model": "smoke", "rid": rid, "stream": True, "max_tokens": 32, "messages": [{"role": "user", "content": text}]}
        tally.rids.append(rid)
        tally.short.append(await client.stream(session, "/v1/chat/completions", body, has_text=client.chat_has_text))
        sent += 1


async def _long_client(target: Target, session: Any, number: int, until: float, tally: Tally, base: list[dict[str, str]]) -> None:
    sent = 0
    while time.monotonic() < until:
        rid = f"{target.run}-l{number}-{sent}"
        messages = texts.varied(base, target.of("form", "shared"), f"{zlib.crc32(rid.encode()):x}")
        body = {"model": "smoke", "rid": rid, "max_tokens": 8, "messages": messages}
        tally.rids.append(rid)
        tally.long.append(await client.call(session, "/v1/chat/completions", texts.as_json(body)))
        sent += 1


def _outcome(target: Target, tally: Tally, begin: float, until: float, seen: Order) -> Outcome:
    """Only what was sent after the warm-up counts, errors apart: those always count."""
    kinds = {"models": tally.polls, "short": tally.short, "long": tally.long}
    kept = {name: [reply for reply in replies if reply.ok and reply.started >= begin] for name, replies in kinds.items()}
    outcome = Outcome()
    for name, replies in kinds.items():
        errors = [reply.error for reply in replies if not reply.ok]
        outcome.hold(not errors, f"{len(errors)} of {len(replies)} {name} requests failed: {errors[0] if errors else ''}")
        outcome.samples += [
            {"kind": name, "at": round(reply.started - begin, 4), "first_s": reply.first_s, "total_s": round(reply.total_s, 6)}
            for reply in replies
        ]
    outcome.metrics = {
        **milliseconds([reply.total_s for reply in kept["models"]], "models"),
        **milliseconds([reply.first_s for reply in kept["short"] if reply.first_s is not None], "ttft"),
        **milliseconds([reply.total_s for reply in kept["long"]], "long"),
        "polls": len(kept["models"]),
        "requests": len(tally.short) + len(tally.long),
        "short_done": sum(reply.started + reply.total_s <= until for reply in kept["short"]),
        "long_done": sum(reply.started + reply.total_s <= until for reply in kept["long"]),
    }
    outcome.metrics |= {"ordered": seen.both, "overtaken": seen.overtaken}
    outcome.samples += seen.sightings
    outcome.hold(seen.both >= 0.9 * len(tally.rids), f"only {seen.both} of {len(tally.rids)} requests were seen at both ends")
    return outcome
