"""One HTTP client for all loads: plain calls, streams with the time of the first token, polls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

JSON = {"content-type": "application/json"}


@dataclass
class Reply:
    """How a request went: times in seconds from when it was sent, the answer, the error if there was one."""

    status: int = 0
    started: float = 0.0
    first_s: float | None = None
    total_s: float = 0.0
    body: Any = None
    events: list[Any] = field(default_factory=list)
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.status == 200 and self.error is None


@contextlib.asynccontextmanager
async def connected(base: str, timeout: float, *, reuse: bool = False) -> AsyncIterator[aiohttp.ClientSession]:
    """A session without a limit of connections; every request of it ends within `timeout` seconds.

    `reuse` keeps connections open, for loads that use them all the time: the server closes one that was idle
    for 5 s, and on a busy machine it may be one that is just being used.
    """
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3) if reuse else aiohttp.TCPConnector(limit=0, force_close=True)
    limit = aiohttp.ClientTimeout(total=timeout)
    async with aiohttp.ClientSession(base, connector=connector, timeout=limit) as session:
        yield session


async def call(session: aiohttp.ClientSession, path: str, body: Any = None, *, method: str = "POST") -> Reply:
    """One request and its whole answer, as JSON where it is JSON."""
    reply = Reply(started=time.monotonic())
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    try:
        async with session.request(method, path, data=data, headers=JSON if data else None) as response:
            text = await response.read()
            reply.status = response.status
            reply.body = json.loads(text) if "json" in response.content_type else text.decode(errors="replace")
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        reply.error = f"{type(error).__name__}: {error}"
    reply.total_s = time.monotonic() - reply.started
    return _explained(reply)


async def stream(session: aiohttp.ClientSession, path: str, body: Any, *, has_text: Callable[[bytes], bool], keep: bool = False) -> Reply:
    """One streamed request; `has_text` tells the line with the first token. `keep` parses every event."""
    reply = Reply(started=time.monotonic())
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        async with session.post(path, data=data, headers=JSON) as response:
            reply.status = response.status
            if response.status != 200:
                reply.body = (await response.read()).decode(errors="replace")
            else:
                await _read_lines(response, reply, has_text, keep)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        reply.error = f"{type(error).__name__}: {error}"
    reply.total_s = time.monotonic() - reply.started
    if reply.status == 200 and reply.error is None and reply.first_s is None:
        reply.error = "the stream ended without a token"
    return _explained(reply)


async def _read_lines(response: aiohttp.ClientResponse, reply: Reply, has_text: Callable[[bytes], bool], keep: bool) -> None:
    async for line in response.content:
        if reply.first_s is None and has_text(line):
            reply.first_s = time.monotonic() - reply.started
        if keep and (event := _event(line)) is not None:
            reply.events.append(event)


def _event(line: bytes) -> Any:
    """The JSON of a server-sent event or of a line of JSON; None for anything else."""
    text = line.strip().removeprefix(b"data:").strip()
    return json.loads(text) if text.startswith(b"{") else None


def _explained(reply: Reply) -> Reply:
    if reply.status != 200 and reply.error is None:
        reply.error = f"HTTP {reply.status}: {str(reply.body)[:300]}"
    return reply


async def poll(session: aiohttp.ClientSession, path: str, spacing_s: float, until: float, seen: list[Reply]) -> None:
    """GET `path` every `spacing_s` until the moment `until`, each on time whether or not the last one is back."""
    pending: set[asyncio.Task[None]] = set()

    async def one() -> None:
        seen.append(await call(session, path, method="GET"))

    due = time.monotonic()
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        task = asyncio.create_task(one())
        pending.add(task)
        task.add_done_callback(pending.discard)
        due += spacing_s
    await asyncio.gather(*pending)


def chat_has_text(line: bytes) -> bool:
    """Does this line of a streamed chat or completion hold text?"""
    for key in (b'"content":"', b'"text":"', b'"delta":"'):
        place = line.find(key)
        if place >= 0 and not line.startswith(b'"', place + len(key)):
            return True
    return False
