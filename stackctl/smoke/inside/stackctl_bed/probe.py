"""What a smoke run sees from inside the server's process: order of entry, the loop's heartbeat, what is left over.

Installed before the server starts, on any tree: it wraps the entry points of handlers and adds a few routes
below /smoke. It changes nothing that a request does.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import threading
import time
from typing import Any

from stackctl_bed import answers

BEAT_S = 0.001
CONTROL = "STACKCTL_BED_CONTROL"  # "shared-backend": the worker is put on the shared backend, to see that it shows


class Probe:
    """Entries in order of arrival, and the heartbeat while it is on."""

    def __init__(self) -> None:
        self.entries: dict[str, float] = {}
        self.gaps: list[float] = []
        self.last = 0.0
        self.beating: asyncio.Task[None] | None = None

    def note(self, rid: Any) -> None:
        """A request reached its handler: the first sighting counts."""
        if isinstance(rid, str) and rid not in self.entries:
            self.entries[rid] = time.monotonic()

    async def beat(self) -> None:
        """Every BEAT_S, as far as the loop lets us."""
        while True:
            await asyncio.sleep(BEAT_S)
            self.tick()

    def tick(self) -> None:
        """Note the seconds since the last turn, beyond the pause."""
        now = time.monotonic()
        self.gaps.append(max(0.0, now - self.last - BEAT_S))
        self.last = now


def install(*, trace: bool) -> None:
    """Wrap the entries and add the routes, before the server runs. `trace` notes dispatches too, as the stand-in does."""
    from sglang.srt.entrypoints import http_server
    from sglang.srt.entrypoints.anthropic.serving import AnthropicServing
    from sglang.srt.entrypoints.openai.serving_base import OpenAIServingBase
    from sglang.srt.managers.tokenizer_manager import TokenizerManager

    probe = Probe()
    _note_first_argument(OpenAIServingBase, "handle_request", probe)
    _note_first_argument(TokenizerManager, "generate_request", probe)
    _note_first_argument(AnthropicServing, "handle_messages", probe)
    if trace:
        _note_dispatches(TokenizerManager)
    routes = {"entries": _entries, "beat": _beat, "pad": _pad, "state": _state}
    for name, handler in routes.items():
        route = functools.partial(_answered, handler, probe)
        http_server.app.add_api_route(f"/smoke/{name}", _endpoint(route), methods=["POST"])


def _endpoint(route: Any) -> Any:
    # FastAPI reads the signature: Request must be a real annotation, not a string.
    from fastapi import Request
    from fastapi.responses import JSONResponse

    async def endpoint(request):  # noqa: ANN001, ANN202
        return JSONResponse(await route(await request.json()))

    endpoint.__annotations__ = {"request": Request}
    return endpoint


async def _answered(handler: Any, probe: Probe, body: dict[str, Any]) -> dict[str, Any]:
    return await handler(probe, _manager(), body)


def _note_first_argument(owner: Any, name: str, probe: Probe) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def noting(self, request, *args, **kwargs):  # noqa: ANN001, ANN002, ANN003, ANN202
        probe.note(getattr(request, "rid", None))
        return original(self, request, *args, **kwargs)

    setattr(owner, name, noting)


def _note_dispatches(owner: Any) -> None:
    """Where a real scheduler is at the other end of the socket, the order is noted on this side of it."""
    original = owner._dispatch_to_scheduler
    trace = open(os.environ["STACKCTL_BED_TRACE"], "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - for good

    @functools.wraps(original)
    def noting(self, message, *args, **kwargs):  # noqa: ANN001, ANN002, ANN003, ANN202
        for request in getattr(message, "batch", None) or (message,):
            ids = getattr(request, "input_ids", None)
            if ids is not None:
                note = {"rid": request.rid, "at": time.monotonic(), "tokens": len(ids), "digest": answers.digest(ids)}
                trace.write(json.dumps(note) + "\n")
        return original(self, message, *args, **kwargs)

    owner._dispatch_to_scheduler = noting


def _manager() -> Any:
    from sglang.srt.entrypoints.http_server import get_global_state

    return get_global_state().tokenizer_manager


async def _entries(probe: Probe, manager: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The entries so far, in order, and a new list from here on."""
    entries, probe.entries = probe.entries, {}
    return {"entries": list(entries.items())}


async def _beat(probe: Probe, manager: Any, body: dict[str, Any]) -> dict[str, Any]:
    """{"on": true} starts the heartbeat, {"on": false} stops it and gives the gaps in seconds."""
    if body["on"]:
        probe.gaps, probe.last = [], time.monotonic()
        probe.beating = probe.beating or asyncio.create_task(probe.beat())
        return {}
    if probe.beating:
        probe.tick()  # the gap that we stand at the end of: seen once, this call came before the beat's next turn
        probe.beating.cancel()
        probe.beating = None
    return {"beats": len(probe.gaps), "longest_s": max(probe.gaps, default=0.0)}


async def _pad(probe: Probe, manager: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Padding calls on the loop's tokenizer, as a multimodal processor makes them: seconds and errors of each."""
    seconds: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + body["seconds"]
    while time.monotonic() < end:
        start = time.monotonic()
        try:
            manager.tokenizer(["a short text", "another one, a little longer"], padding=True)
            seconds.append(time.monotonic() - start)
        except Exception as error:  # "Already borrowed" is a RuntimeError of the Rust half
            errors.append(f"{type(error).__name__}: {error}")
        await asyncio.sleep(body["spacing_s"])
    return {"seconds": seconds, "errors": errors}


async def _state(probe: Probe, manager: Any, body: dict[str, Any]) -> dict[str, Any]:
    """What a server holds: requests, jobs, tasks, threads, descriptors, memory."""
    executor = getattr(manager, "preprocess_executor", None)
    if body.get("collect"):
        gc.collect()
    return {
        "requests": len(manager.rid_to_state),
        "jobs": getattr(executor, "_outstanding", 0),
        "mode": getattr(executor, "mode", None),
        "worker": bool(getattr(executor, "has_worker", False)),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "resident_kb": _resident_kb(),
        "pieces_kb": _pieces_kb(executor),
        "pid": os.getpid(),
    }


def _pieces_kb(executor: Any) -> int | None:
    """What entry 207 says that it keeps; None where it keeps nothing."""
    tokenizer = getattr(executor, "worker_tokenizer", None)
    store = getattr(getattr(tokenizer, "__dict__", {}).get("_encode_plus"), "store", None)
    return None if store is None else store.size // 1024


def _resident_kb() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def apply_control(manager: Any) -> None:
    """The fault that the environment asks for, to see that a scenario shows it."""
    wanted = os.environ.get(CONTROL)
    if wanted is None:
        return
    if wanted != "shared-backend":
        raise ValueError(f"{CONTROL} is {wanted!r}: only shared-backend is known")
    worker = manager.preprocess_executor._worker
    worker._targets[id(worker._source)] = worker._source
    worker._bound.clear()
    worker.refresh()
