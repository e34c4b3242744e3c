"""Does the whole engine decode sanely? For a real scheduler and model: the weights may be dummies."""

from __future__ import annotations

import math
from typing import Any

from stackctl_bed import client, texts
from stackctl_bed.target import Outcome, Target

COUNT = 48


async def run(target: Target) -> Outcome:
    """Settings: graphs (must the server have captured its graphs for decoding?)."""
    outcome = Outcome()
    async with client.connected(target.base, timeout=120) as session:
        first, again = [await _greedy(session, outcome, texts.prose("decode", 60)) for _ in range(2)]
        outcome.hold(first == again, "the same prompt was decoded to other tokens the second time, with its prefix cached")
        other = await _greedy(session, outcome, texts.prose("another", 60))
        outcome.hold(other != first, "another prompt was decoded to the same tokens")
        outcome.hold(len(set(first)) > 1, "one token was decoded again and again")
        await _long(session, outcome, target)
        if target.of("graphs", True):
            await _graphs(session, outcome)
    outcome.metrics["decoded"] = len(first)
    return outcome


async def _greedy(session: Any, outcome: Outcome, text: str) -> list[int]:
    params = {"max_new_tokens": COUNT, "temperature": 0, "ignore_eos": True}
    reply = await client.call(session, "/generate", {"text": text, "sampling_params": params, "return_logprob": True})
    outcome.hold(reply.ok, f"generate failed: {reply.error}")
    if not reply.ok:
        return []
    rows = reply.body["meta_info"]["output_token_logprobs"]
    outcome.hold(len(rows) == COUNT, f"{len(rows)} tokens came back, not {COUNT}")
    outcome.hold(all(math.isfinite(row[0]) and row[0] <= 0 for row in rows), "a log-probability is no number, or above 0")
    return [row[1] for row in rows]


async def _long(session: Any, outcome: Outcome, target: Target) -> None:
    """A prompt of many chunks of prefill, twice: the second time from the cache."""
    text = texts.prose_of_tokens(target.model, "decode", 36_000)
    once, twice = await _greedy(session, outcome, text), await _greedy(session, outcome, text)
    outcome.hold(once == twice, "a long prompt was decoded to other tokens from the cache")


async def _graphs(session: Any, outcome: Outcome) -> None:
    """The boot captured its graphs: what a half-lost hook of the model runner breaks."""
    reply = await client.call(session, "/server_info", method="GET")
    outcome.hold(reply.ok, f"server_info failed: {reply.error}")
    info = reply.body if reply.ok else {}
    outcome.hold(info.get("disable_cuda_graph") is False, f"graphs are off: disable_cuda_graph is {info.get('disable_cuda_graph')!r}")
    graphs = (info.get("startup_time") or {}).get("cuda_graph") or {}
    if graphs:  # releases that time their captures
        outcome.hold(any(seconds > 0 for seconds in graphs.values()), "no graph was captured")
