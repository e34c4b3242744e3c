"""Does a real chat conversion run on entry 201's worker?

Run by `stackctl.smoke.environment.run_check`: an environment of the CPU-only packages, a planted tree in front
of the installed sglang, the model folder named by STACKCTL_MODEL. Builds a real TokenizerManager,
TemplateManager, OpenAIServingChat and fast tokenizer; only the scheduler is missing, and this script stands at
its socket. Prints one JSON object of facts; exit 0 when every claim holds, else 1, with the broken ones under
"problems" and on stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

# Both are read once, at start. Upstream's parallel encode turns itself off on a busy machine: times would jump.
os.environ["SGLANG_PREPROCESS_EXECUTOR"] = "on"
os.environ["SGLANG_PARALLEL_PROMPT_ENCODE"] = "0"

WORKER = "preprocess"
ROUNDS = 3
MESSAGES, WORDS = 24, 1_250
BEAT_S = 0.001
# The worker may hold the GIL for a few ms of an encode; a conversion on the loop holds all of it.
FREE_SHARE = 0.5
TIMEOUT_S = 120


@dataclass
class FrontEnd:
    """What the server builds before its first request, and the address that its scheduler listens at."""

    manager: Any
    chat: Any
    scheduler_address: str


@dataclass
class Sighting:
    """Where one conversion ran, and on which tokenizer."""

    thread: str
    tokenizer: Any
    backend: Any


class Claims:
    """What must hold; keeps the sentences that do not, each once."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def hold(self, claim: bool, problem: str) -> None:
        if not claim and problem not in self.problems:
            self.problems.append(problem)


def build_front_end(model: str) -> FrontEnd:
    """As sglang's Engine does it, up to the processes."""
    from sglang.srt.entrypoints.openai.serving_chat import OpenAIServingChat
    from sglang.srt.managers.tokenizer_manager import TokenizerManager
    from sglang.srt.parser.template_manager import TemplateManager
    from sglang.srt.runtime_context import publish
    from sglang.srt.server_args import PortArgs, prepare_server_args

    flags = ["--model-path", model, "--device", "cpu", "--load-format", "dummy"]
    flags += ["--attention-backend", "torch_native", "--log-level", "error"]
    server_args = prepare_server_args(flags)
    server_args.resolve_once()
    server_args.check_server_args()
    publish(server_args, role="tokenizer")
    ports = PortArgs.init_new(server_args)
    manager = TokenizerManager(server_args, ports)
    templates = TemplateManager()
    templates.initialize_templates(tokenizer_manager=manager, model_path=model)
    return FrontEnd(manager, OpenAIServingChat(manager, templates), ports.scheduler_input_ipc_name)


def long_chat() -> Any:
    """A new request, the same every time: some 95,000 tokens of made-up words in several messages."""
    from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest

    draw = random.Random(201)
    syllables = ("ka", "ri", "mo", "ten", "sul", "ova", "pre", "ing", "est", "山", "é", "12", "{x}", ".", ",", "\n")
    roles = ("user", "assistant")
    messages = [
        {"role": roles[turn % 2], "content": " ".join("".join(draw.choices(syllables, k=3)) for _ in range(WORDS))}
        for turn in range(MESSAGES - 1)
    ]
    return ChatCompletionRequest(model="any", messages=messages, max_tokens=4, temperature=0)


def watch_conversions(chat: Any) -> list[Sighting]:
    """Note thread and tokenizer of each conversion: its `_process_messages` is asked from inside."""
    sightings: list[Sighting] = []
    original = chat._process_messages

    def noting(*args: Any, **kwargs: Any) -> Any:
        tokenizer = chat.tokenizer_manager.tokenizer
        sightings.append(Sighting(threading.current_thread().name, tokenizer, tokenizer._tokenizer))
        return original(*args, **kwargs)

    chat._process_messages = noting
    return sightings


@contextlib.asynccontextmanager
async def heartbeat() -> AsyncIterator[list[float]]:
    """Yields a list that holds, afterwards, the seconds between the loop's beats."""
    gaps: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(BEAT_S)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    task = asyncio.create_task(beat())
    await asyncio.sleep(5 * BEAT_S)
    try:
        yield gaps
        await asyncio.sleep(2 * BEAT_S)
    finally:
        task.cancel()


def convert_inline(chat: Any) -> tuple[list[int], float]:
    """Token ids and seconds of a conversion on this thread, as releases before 0.5.22 did it."""
    request = long_chat()
    start = time.perf_counter()
    adapted, _ = chat._convert_to_internal_request(request, None)
    return token_ids(adapted), time.perf_counter() - start


async def convert_on_worker(chat: Any) -> tuple[list[int], float, float]:
    """Token ids, seconds, and the loop's longest gap meanwhile."""
    request = long_chat()
    async with heartbeat() as gaps:
        start = time.perf_counter()
        adapted, _ = await chat._preprocess(chat._convert_to_internal_request, request, None)
        seconds = time.perf_counter() - start
    return token_ids(adapted), seconds, max(gaps)


async def request_to_scheduler(front: FrontEnd) -> list[int]:
    """Token ids that reach the scheduler's socket when the chat goes in through `handle_request`."""
    import zmq
    import zmq.asyncio
    from sglang.srt.managers.io_struct import async_sock_recv

    with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as socket:
        socket.connect(front.scheduler_address)
        handler = asyncio.create_task(front.chat.handle_request(long_chat(), None))
        receiver = asyncio.create_task(async_sock_recv(socket))
        tasks = (handler, receiver)
        await asyncio.wait(tasks, timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        try:
            if handler.done():  # it may only wait for us: an answer now is an error response
                raise RuntimeError(f"handle_request did not reach the scheduler: {described(handler.result())}")
            return token_ids(await asyncio.wait_for(receiver, TIMEOUT_S))
        finally:
            await cancelled(tasks)


async def cancelled(tasks: tuple[asyncio.Task[Any], ...]) -> None:
    """End the tasks, whatever they say to it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def described(response: Any) -> str:
    return getattr(response, "body", response if isinstance(response, bytes) else repr(response).encode()).decode()


def token_ids(request: Any) -> list[int]:
    """The ids of a converted or tokenized request."""
    if request.input_ids is None:
        raise RuntimeError("the conversion left the prompt as text: no ids to compare")
    return [int(token) for token in request.input_ids]


def check_place(claims: Claims, front: FrontEnd, sighting: Sighting, what: str) -> None:
    """A conversion off the loop: the worker's thread, its own tokenizer, its own backend."""
    shared = front.manager.tokenizer
    claims.hold(sighting.thread.startswith(WORKER), f"{what} ran on thread {sighting.thread!r}, not on the worker")
    claims.hold(sighting.tokenizer is not shared, f"{what} saw the shared tokenizer")
    claims.hold(sighting.backend is not shared._tokenizer, f"{what} used the shared tokenizer's backend")


async def check_worker(claims: Claims, front: FrontEnd, sightings: list[Sighting]) -> dict[str, Any]:
    """Conversions through `_preprocess`: place, ids, a free loop, one stable tokenizer object."""
    convert_inline(front.chat)  # the first one compiles the template
    expected, inline_s = convert_inline(front.chat)
    sightings.clear()
    rounds = [await convert_on_worker(front.chat) for _ in range(ROUNDS)]
    for sighting in sightings:
        check_place(claims, front, sighting, "the conversion")
    claims.hold(len(sightings) == ROUNDS, f"{len(sightings)} conversions seen for {ROUNDS} requests")
    claims.hold(all(ids == expected for ids, _, _ in rounds), "the worker's token ids differ from the inline ones")
    claims.hold(len({id(seen.tokenizer) for seen in sightings}) == 1, "the worker's tokenizer is not one stable object")
    longest = min(gap for _, _, gap in rounds)  # of the quietest round: other processes make gaps too
    claims.hold(longest < FREE_SHARE * inline_s, f"the loop stood still for {longest:.3f} s of {inline_s:.3f} s")
    return {
        "thread": sightings[0].thread if sightings else None,
        "tokens": len(expected),
        "inline_s": round(inline_s, 4),
        "worker_s": [round(seconds, 4) for _, seconds, _ in rounds],
        "longest_gap_s": [round(gap, 4) for _, _, gap in rounds],
    }


async def check_handler(claims: Claims, front: FrontEnd, sightings: list[Sighting]) -> dict[str, Any]:
    """The same chat through `handle_request`, up to the scheduler's socket."""
    expected, _ = convert_inline(front.chat)
    sightings.clear()
    arrived = await request_to_scheduler(front)
    claims.hold(len(sightings) == 1, f"handle_request converted {len(sightings)} times")
    for sighting in sightings:
        check_place(claims, front, sighting, "handle_request's conversion")
    claims.hold(arrived == expected, "the ids at the scheduler's socket differ from the inline ones")
    return {"scheduler_tokens": len(arrived)}


async def check_template(claims: Claims, front: FrontEnd, sightings: list[Sighting]) -> dict[str, Any]:
    """A chat template that is set after startup is the worker's too."""
    before, _ = convert_inline(front.chat)
    front.manager.tokenizer.chat_template = "A template of later on. " + front.manager.tokenizer.chat_template
    expected, _ = convert_inline(front.chat)
    sightings.clear()
    converted, _, _ = await convert_on_worker(front.chat)
    claims.hold(expected != before, "the new chat template changed nothing, even inline")
    claims.hold(converted == expected, "the worker did not see the chat template that was set after startup")
    for sighting in sightings:
        check_place(claims, front, sighting, "the conversion under a new template")
    return {"template_tokens": len(converted)}


async def check_all(front: FrontEnd, claims: Claims) -> dict[str, Any]:
    """All claims, one after the other, on this loop; facts of all."""
    sightings = watch_conversions(front.chat)
    facts: dict[str, Any] = {}
    try:
        for check in (check_worker, check_handler, check_template):
            try:
                facts |= await check(claims, front, sightings)
            except Exception as error:  # SGLang's own too: what stops one check is a reason, and the next still runs
                traceback.print_exc()
                claims.hold(False, f"{check.__name__} ended with {type(error).__name__}: {error}")
    finally:
        await cancelled(tuple(front.manager.asyncio_tasks))
    return facts


def versions() -> dict[str, str]:
    """Of everything that the result depends on."""
    names = ("sglang", "transformers", "tokenizers", "torch")
    return {"python": sys.version.split()[0]} | {name: importlib.metadata.version(name) for name in names}


def run(model: str) -> dict[str, Any]:
    """Facts and problems of one run."""
    import sglang

    claims = Claims()
    facts: dict[str, Any] = {"package": os.path.dirname(sglang.__file__), "versions": versions()}
    start = time.perf_counter()
    front = build_front_end(model)
    facts["startup_s"] = round(time.perf_counter() - start, 1)
    claims.hold(hasattr(front.manager, "preprocess_executor"), "the TokenizerManager has no executor: not planted?")
    claims.hold(hasattr(front.chat, "_preprocess"), "OpenAIServingChat has no _preprocess: not planted?")
    if not claims.problems:
        facts |= asyncio.run(check_all(front, claims))
        front.manager.preprocess_executor.shutdown()
        alive = [thread.name for thread in threading.enumerate() if thread.name.startswith(WORKER)]
        claims.hold(not alive, f"the worker outlived its shutdown: {alive}")
    return facts | {"ok": not claims.problems, "problems": claims.problems}


def main() -> int:
    """Print the facts, alone on stdout: what SGLang prints goes to stderr."""
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    model = os.environ.get("STACKCTL_MODEL")
    if not model:
        print("STACKCTL_MODEL names no model folder", file=sys.stderr)
        return 2
    result = run(model)
    print(json.dumps(result), file=report, flush=True)
    for problem in result["problems"]:
        print(problem, file=sys.stderr)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
