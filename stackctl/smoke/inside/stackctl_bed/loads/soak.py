"""Minutes of everything, with clients that vanish: memory, threads and descriptors stay flat, SIGTERM drains."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl_bed import client, texts
from stackctl_bed.figures import held
from stackctl_bed.target import Outcome, Target, ask

DRAIN_S = 30
DRAINED_STREAMS = 4


@dataclass
class Soak:
    """What came back and what the server held, second by second."""

    done: int = 0
    vanished: int = 0
    errors: list[str] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)


async def run(target: Target) -> Outcome:
    """Settings: seconds, clients, long_tokens, long_share, vanish_share, drain; fresh: every line of a long text is new."""
    soak = Soak()
    long_text = texts.prose_of_tokens(target.model, "soak", target.of("long_tokens", 12_000))
    until = time.monotonic() + target.of("seconds", 180)
    async with client.connected(target.base, timeout=60) as session:
        workers = [_client(target, session, number, until, long_text, soak) for number in range(target.of("clients", 6))]
        await asyncio.gather(_watch(session, until, soak), *workers)
    outcome = _outcome(soak)
    async with client.connected(target.base, timeout=60) as session:
        outcome.hold(await _empty(session), "requests or jobs are held after all clients are gone")
    if target.of("drain", True):
        await _drain(target, outcome)
    return outcome


async def _client(target: Target, session: Any, number: int, until: float, long_text: str, soak: Soak) -> None:
    draw = random.Random(number)
    sent = 0
    while time.monotonic() < until:
        sent += 1
        rid = f"{target.run}-{number}-{sent}"
        text = long_text if draw.random() < target.of("long_share", 0.2) else ""
        path, body = _request(draw, rid, texts.renewed(text, rid) if text and target.of("fresh", False) else text)
        vanish_s = draw.uniform(0.0, 0.3) if draw.random() < target.of("vanish_share", 0.2) else 60.0
        try:
            async with asyncio.timeout(vanish_s):
                reply = await client.call(session, path, body)
        except TimeoutError:
            soak.vanished += 1
            continue
        soak.done += reply.ok
        soak.errors += [] if reply.ok else [f"{path}: {reply.error}"]


def _request(draw: random.Random, rid: str, long_text: str) -> tuple[str, bytes]:
    """Any route, streamed or not."""
    text = f"{rid} {long_text or texts.prose(rid, 30)}"
    messages = [{"role": "user", "content": text}]
    stream, count = draw.random() < 0.5, draw.choice((1, 8, 32))
    choices: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/v1/chat/completions", {"messages": messages, "max_tokens": count, "stream": stream}),
        ("/v1/completions", {"prompt": text, "max_tokens": count, "stream": stream}),
        ("/v1/messages", {"messages": messages, "max_tokens": count, "stream": stream}),
        ("/v1/messages/count_tokens", {"messages": messages}),
        ("/v1/responses", {"input": text, "max_output_tokens": count + 4, "stream": stream}),
        ("/v1/tokenize", {"prompt": text}),
        ("/generate", {"text": text, "sampling_params": {"max_new_tokens": count}, "stream": stream}),
        ("/v1/score", {"query": text, "items": [" yes", " no"], "label_token_ids": [1000, 2000]}),
    )
    path, body = draw.choice(choices)
    return path, texts.as_json({"model": "smoke", **body})


async def _watch(session: Any, until: float, soak: Soak) -> None:
    while time.monotonic() < until:
        soak.states.append(await ask(session, "state") | {"at": time.monotonic()})
        await asyncio.sleep(2)


def _outcome(soak: Soak) -> Outcome:
    outcome = Outcome(metrics={"done": soak.done, "vanished": soak.vanished}, samples=soak.states)
    outcome.hold(not soak.errors, f"{len(soak.errors)} requests failed: {soak.errors[0] if soak.errors else ''}")
    outcome.hold(len(soak.states) >= 6, "too short a soak to say anything")
    outcome.metrics |= held(soak.states)
    return outcome


async def _empty(session: Any) -> bool:
    for _ in range(60):
        state = await ask(session, "state", {"collect": True})
        if (state["requests"], state["jobs"]) == (0, 0):
            return True
        await asyncio.sleep(0.25)
    return False


async def _drain(target: Target, outcome: Outcome) -> None:
    """SIGTERM while streams run: they come to their end, then the process does."""
    pid = target.pids[0]
    async with client.connected(target.base, timeout=DRAIN_S) as session:
        body = {"model": "smoke", "stream": True, "max_tokens": 100, "messages": [{"role": "user", "content": "drain"}]}
        streams = [
            asyncio.create_task(client.stream(session, "/v1/chat/completions", body, has_text=client.chat_has_text, keep=True))
            for _ in range(DRAINED_STREAMS)
        ]
        await asyncio.sleep(0.4)
        start = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        replies = await asyncio.gather(*streams)
    whole = sum(reply.ok and any(_finished(event) for event in reply.events) for reply in replies)
    outcome.hold(whole == DRAINED_STREAMS, f"only {whole} of {DRAINED_STREAMS} streams came to their end after SIGTERM")
    while _alive(pid) and time.monotonic() < start + DRAIN_S:
        await asyncio.sleep(0.1)
    outcome.hold(not _alive(pid), f"the server still runs {DRAIN_S} s after SIGTERM")
    outcome.metrics["drain_s"] = round(time.monotonic() - start, 2)


def _finished(event: Any) -> bool:
    return any(choice.get("finish_reason") for choice in event.get("choices", ()))


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
