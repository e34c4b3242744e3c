"""Every route that entry 201 touches: right answers, streamed and not, and a free loop under a long input.

The stand-in's answer is a function of the token ids it was sent. So an answer is right when it is the one that
follows from ids that this process made by itself, with transformers alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from stackctl_bed import answers, client, texts
from stackctl_bed.target import Outcome, Target, ask, trace_size, traced

COUNT = 6  # tokens per answer
LABELS = [1000, 2000, 3000]
MARKER = "<｜User｜>"  # an added token of the model folder's tokenizer
SHORT = "Hello there, what is new in the world of schedulers? Grüße, 你好!"
TOOLS = [{
    "type": "function",
    "function": {
        "name": "look_up", "description": "Look a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}]  # fmt: skip
ANTHROPIC_TOOLS = [{"name": "look_up", "description": "Look a word up.", "input_schema": TOOLS[0]["function"]["parameters"]}]


@dataclass(frozen=True)
class Bench:
    """What a check needs: the session, the model folder, where findings go."""

    session: Any
    model: str
    outcome: Outcome
    long: str
    long_chat: list[dict[str, str]]
    target: Target

    def text(self, ids: list[int], count: int = COUNT) -> str:
        """The answer to a prompt of these ids."""
        return texts.decode(self.model, answers.answer(self.model, ids, count))

    def chat_text(self, messages: list[dict[str, Any]], count: int = COUNT) -> str:
        """The answer to a chat."""
        return self.text(texts.chat_ids(self.model, messages), count)

    async def ask(self, name: str, path: str, body: dict[str, Any]) -> Any:
        """A plain call; a failure is a problem, and None."""
        reply = await client.call(self.session, path, texts.as_json({"model": "smoke", **body}))
        self.outcome.hold(reply.ok, f"{name}: {reply.error}")
        return reply.body if reply.ok else None

    async def stream(self, name: str, path: str, body: dict[str, Any]) -> list[Any]:
        """A streamed call; its events, none after a failure."""
        reply = await client.stream(self.session, path, texts.as_json({"model": "smoke", **body, "stream": True}), has_text=bool, keep=True)
        self.outcome.hold(reply.ok, f"{name}: {reply.error}")
        return reply.events if reply.ok else []

    def expect(self, name: str, got: Any, wanted: Any) -> None:
        """The answer must be this one; and it is noted, to be compared between arms."""
        self.note(name, got)
        self.outcome.hold(got == wanted, f"{name}: answered {_short(got)}, not {_short(wanted)}")

    def note(self, name: str, got: Any) -> None:
        """An answer that cannot be worked out here, but must be the same in every arm."""
        self.outcome.hold(got not in (None, "", [], {}), f"{name}: an empty answer")
        self.outcome.answers[name] = hashlib.sha256(json.dumps(got, sort_keys=True).encode()).hexdigest()[:16]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:80]} ... {text[-30:]}"


# Seen on 0.5.21 and 0.5.22, with the entry on and inline; the stock source of both has the same call.
BROKEN_BEFORE = {"ollama": ((0, 5, 23), "the rendered chat reaches the tokenizer manager as a mapping, HTTP 500")}

Check = Callable[[Bench], Awaitable[None]]


async def run(target: Target) -> Outcome:
    """Settings: server ("generation", "embedding", "scoring" or "harmony"), long_tokens, gap_rounds."""
    outcome = Outcome()
    kind = target.of("server", "generation")
    tokens = target.of("long_tokens", 36_000)
    async with client.connected(target.base, timeout=60) as session:
        long_chat = texts.long_chat(target.model, "endpoints", tokens, 25)
        bench = Bench(session, target.model, outcome, texts.prose_of_tokens(target.model, "long", tokens), long_chat, target)
        routes = await _served(session)
        for name, (path, check) in CHECKS[kind].items():
            if why := _unserved(name, path, routes):
                outcome.skipped[name] = why
                continue
            await _guarded(bench, name, check)
        for name, (path, body) in LONG[kind].items():
            if not _unserved(name, path, routes):
                await _gap(bench, name, path, body(bench), target.of("gap_rounds", 3))
    return outcome


async def _served(session: Any) -> set[str]:
    reply = await client.call(session, "/openapi.json", method="GET")
    if not reply.ok:
        raise RuntimeError(f"the server tells no routes: {reply.error}")
    return set(reply.body["paths"])


def _unserved(name: str, path: str, routes: set[str]) -> str | None:
    """Why a release does not answer here, by no fault of the entry; None where it does."""
    if path not in routes:
        return f"this release has no {path}"
    release = tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("sglang"))[:3])
    since, why = BROKEN_BEFORE.get(name, ((0,), ""))
    return f"broken in upstream before {'.'.join(map(str, since))}: {why}" if release < since else None


async def _guarded(bench: Bench, name: str, check: Check) -> None:
    try:
        await check(bench)
    except (KeyError, IndexError, TypeError, AttributeError) as error:  # an answer of another shape
        bench.outcome.hold(False, f"{name}: an answer of another shape: {type(error).__name__}: {error}")


async def _gap(bench: Bench, name: str, path: str, body: dict[str, Any], rounds: int) -> None:
    """The longest time the loop stood still while this route worked on a long input: of the quietest round."""
    gaps: list[float] = []
    for _ in range(rounds):
        await ask(bench.session, "beat", {"on": True})
        if body.get("stream"):
            await bench.stream(f"{name}, long", path, body)
        else:
            await bench.ask(f"{name}, long", path, body)
        gaps.append((await ask(bench.session, "beat", {"on": False}))["longest_s"])
    bench.outcome.metrics[f"gap_{name}_ms"] = round(min(gaps) * 1000, 2)
    bench.outcome.samples.append({"route": name, "gaps_s": [round(gap, 5) for gap in gaps]})


def _user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def _tool_chat() -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "scheduler"}'}}
    return [
        {"role": "system", "content": "You look words up."}, *_user("What is a scheduler?"),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "One that schedules."}, *_user("Say it in other words."),
    ]  # fmt: skip


async def _chat(bench: Bench) -> None:
    path = "/v1/chat/completions"
    for size, messages in (("short", _user(SHORT)), ("long", bench.long_chat)):
        body = {"messages": messages, "max_tokens": COUNT}
        wanted = bench.chat_text(messages)
        whole = await bench.ask(f"chat {size}", path, body)
        if whole:
            bench.expect(f"chat {size}", whole["choices"][0]["message"]["content"], wanted)
            bench.expect(f"chat {size} usage", whole["usage"]["prompt_tokens"], len(texts.chat_ids(bench.model, messages)))
        bench.expect(f"chat {size} streamed", _deltas(await bench.stream(f"chat {size} streamed", path, body)), wanted)
    tools = await bench.ask("chat tools", path, {"messages": _tool_chat(), "tools": TOOLS, "max_tokens": COUNT})
    bench.note("chat tools", tools and [tools["choices"][0]["message"]["content"], tools["usage"]["prompt_tokens"]])
    parts = [{"role": "user", "content": [{"type": "text", "text": SHORT}, {"type": "text", "text": "And more."}]}]
    whole = await bench.ask("chat parts", path, {"messages": parts, "max_tokens": COUNT})
    bench.note("chat parts", whole and whole["choices"][0]["message"]["content"])


def _deltas(events: list[Any]) -> str:
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ()))


async def _completions(bench: Bench) -> None:
    path = "/v1/completions"
    for size, text in (("short", SHORT), ("long", bench.long)):
        body = {"prompt": text, "max_tokens": COUNT}
        wanted = bench.text(texts.text_ids(bench.model, text))
        whole = await bench.ask(f"completions {size}", path, body)
        bench.expect(f"completions {size}", whole and whole["choices"][0]["text"], wanted)
        events = await bench.stream(f"completions {size} streamed", path, body)
        bench.expect(f"completions {size} streamed", "".join(c["text"] for e in events for c in e.get("choices", ())), wanted)
    batch = await bench.ask("completions batch", path, {"prompt": [SHORT, bench.long[:900]], "max_tokens": COUNT})
    wanted_batch = [bench.text(texts.text_ids(bench.model, text)) for text in (SHORT, bench.long[:900])]
    bench.expect("completions batch", batch and [choice["text"] for choice in batch["choices"]], wanted_batch)


async def _generate(bench: Bench) -> None:
    params = {"max_new_tokens": COUNT}
    for size, text in (("short", SHORT), ("long", bench.long)):
        wanted = bench.text(texts.text_ids(bench.model, text))
        whole = await bench.ask(f"generate {size}", "/generate", {"text": text, "sampling_params": params})
        bench.expect(f"generate {size}", whole and whole["text"], wanted)
        events = await bench.stream(f"generate {size} streamed", "/generate", {"text": text, "sampling_params": params})
        bench.expect(f"generate {size} streamed", events[-1]["text"] if events else None, wanted)
    batch = await bench.ask("generate batch", "/generate", {"text": [SHORT, bench.long[:900]], "sampling_params": params})
    wanted_batch = [bench.text(texts.text_ids(bench.model, text)) for text in (SHORT, bench.long[:900])]
    bench.expect("generate batch", batch and [one["text"] for one in batch], wanted_batch)


async def _messages(bench: Bench) -> None:
    path = "/v1/messages"
    for size, messages in (("short", _user(SHORT)), ("long", bench.long_chat)):
        body = {"messages": messages, "max_tokens": COUNT}
        wanted = bench.chat_text(messages)
        whole = await bench.ask(f"messages {size}", path, body)
        bench.expect(f"messages {size}", whole and whole["content"][0]["text"], wanted)
        events = await bench.stream(f"messages {size} streamed", path, body)
        bench.expect(f"messages {size} streamed", "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta"), wanted)
    tools = await bench.ask("messages tools", path, {"messages": _user(SHORT), "tools": ANTHROPIC_TOOLS, "system": "Look up.", "max_tokens": COUNT})
    bench.note("messages tools", tools and [tools["content"], tools["usage"]["input_tokens"]])


async def _count_tokens(bench: Bench) -> None:
    for size, messages in (("short", _user(SHORT)), ("long", bench.long_chat)):
        counted = await bench.ask(f"count_tokens {size}", "/v1/messages/count_tokens", {"messages": messages})
        bench.expect(f"count_tokens {size}", counted and counted["input_tokens"], len(texts.chat_ids(bench.model, messages)))


async def _responses(bench: Bench) -> None:
    path = "/v1/responses"
    for size, text in (("short", SHORT), ("long", bench.long)):
        body = {"input": text, "max_output_tokens": COUNT}
        whole = await bench.ask(f"responses {size}", path, body)
        # Releases differ in how many of the tokens they keep for themselves.
        wanted = bench.chat_text(_user(text), count=whole["usage"]["output_tokens"]) if whole else ""
        bench.expect(f"responses {size}", whole and _output_text(whole["output"]), wanted)
        events = await bench.stream(f"responses {size} streamed", path, body)
        streamed = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        bench.expect(f"responses {size} streamed", streamed, wanted)
    tool = {"type": "function", **TOOLS[0]["function"]}
    tools = await bench.ask("responses tools", path, {"input": SHORT, "instructions": "Look up.", "tools": [tool], "max_output_tokens": COUNT})
    bench.note("responses tools", tools and _output_text(tools["output"]))


def _output_text(output: list[Any]) -> str:
    return "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"])


async def _tokenize(bench: Bench) -> None:
    path = "/v1/tokenize"
    for size, text in (("short", SHORT), ("long", bench.long)):
        one = await bench.ask(f"tokenize {size}", path, {"prompt": text})
        bench.expect(f"tokenize {size}", one and one["tokens"], texts.text_ids(bench.model, text))
    batch = await bench.ask("tokenize batch", path, {"prompt": [SHORT, bench.long]})
    bench.expect("tokenize batch", batch and batch["tokens"], [texts.text_ids(bench.model, text) for text in (SHORT, bench.long)])


async def _tokenize_chat(bench: Bench) -> None:
    chat = await bench.ask("tokenize chat", "/v1/tokenize", {"messages": bench.long_chat})
    bench.expect("tokenize chat", chat and chat["tokens"], texts.chat_ids(bench.model, bench.long_chat))


async def _detokenize(bench: Bench) -> None:
    ids = texts.text_ids(bench.model, SHORT)
    back = await bench.ask("detokenize", "/v1/detokenize", {"tokens": ids})
    bench.expect("detokenize", back and back["text"], SHORT)


async def _score(bench: Bench) -> None:
    items = [" a scheduler", " a tokenizer", " neither"]
    for size, query in (("short", SHORT), ("long", bench.long)):
        body = {"query": query, "items": items, "label_token_ids": LABELS, "apply_softmax": True}
        scored = await bench.ask(f"score {size}", "/v1/score", body)
        wanted = [_softmax([answers.logprob(_joined(bench, query, item), label) for label in LABELS]) for item in items]
        bench.expect(f"score {size}", scored and [[round(x, 6) for x in row] for row in scored["scores"]], wanted)


async def _score_extraction(bench: Bench) -> None:
    """Scores at each marker in an item: the prompt is encoded on a path of its own."""
    for size, query in (("short", SHORT), ("long", bench.long)):
        scored = await bench.ask(f"score extraction {size}", "/v1/score", _extraction(query))
        bench.note(f"score extraction {size}", scored and scored["scores"])
        bench.outcome.hold(not scored or [len(rows) for rows in scored["scores"]] == [1, 2], f"score extraction {size}: not a row per marker")


def _extraction(query: str) -> dict[str, Any]:
    items = [f" yes{MARKER}", f" no{MARKER} maybe{MARKER}"]
    return {"query": query, "items": items, "label_token_ids": LABELS, "score_extraction_token": MARKER}


def _joined(bench: Bench, query: str, item: str) -> list[int]:
    return texts.text_ids(bench.model, query) + texts.text_ids(bench.model, item, special=False)


def _softmax(logprobs: list[float]) -> list[float]:
    weights = [math.exp(value) for value in logprobs]
    return [round(weight / sum(weights), 6) for weight in weights]


async def _decisions(bench: Bench) -> None:
    for size, text in (("short", SHORT), ("long", bench.long)):
        answered = await bench.ask(f"decisions {size}", "/v1/decisions", _decision(text))
        bench.note(f"decisions {size}", answered and answered["answers"])
        ids = answered["answers"]["q0"]["prompt_token_ids"] if answered else []
        bench.outcome.hold(bool(ids) and text[-40:] in texts.decode(bench.model, ids), f"decisions {size}: the prompt does not hold the input")


def _decision(text: str) -> dict[str, Any]:
    questions = [{"id": f"q{number}", "type": "yes_no", "question": f"Is this question {number}?"} for number in range(3)]
    return {"input": text, "questions": questions, "return_prompt_token_ids": True}


async def _systemone(bench: Bench) -> None:
    body = {"state": SHORT, "questions": {"q": {"type": "noul", "instructions": "Is it new?"}}}
    answered = await bench.ask("systemone", "/v1/systemone", body)
    bench.note("systemone", answered and answered["answers"])


async def _ollama(bench: Bench) -> None:
    path = "/api/chat"
    for size, messages in (("short", _user(SHORT)), ("long", bench.long_chat)):
        body = {"messages": messages, "options": {"num_predict": COUNT}}
        wanted = bench.chat_text(messages)
        whole = await bench.ask(f"ollama {size}", path, {**body, "stream": False})
        bench.expect(f"ollama {size}", whole and whole["message"]["content"], wanted)
        events = await bench.stream(f"ollama {size} streamed", path, body)
        # Upstream's last event says that it is done and leaves the last token out.
        streamed = "".join(event["message"]["content"] for event in events)
        bench.note(f"ollama {size} streamed", streamed)
        bench.outcome.hold(streamed in (wanted, bench.chat_text(messages, COUNT - 1)), f"ollama {size} streamed: answered {_short(streamed)}")


async def _embeddings(bench: Bench) -> None:
    for size, text in (("short", SHORT), ("long", bench.long)):
        one = await bench.ask(f"embeddings {size}", "/v1/embeddings", {"input": text})
        bench.expect(f"embeddings {size}", one and one["data"][0]["embedding"], answers.embedding(texts.text_ids(bench.model, text)))
    batch = await bench.ask("embeddings batch", "/v1/embeddings", {"input": [SHORT, bench.long[:900]]})
    wanted = [answers.embedding(texts.text_ids(bench.model, text)) for text in (SHORT, bench.long[:900])]
    bench.expect("embeddings batch", batch and [one["embedding"] for one in batch["data"]], wanted)


async def _harmony(bench: Bench) -> None:
    """gpt-oss renders with an encoder of its own: what is compared are the ids that reached the scheduler."""
    for size, text in (("short", SHORT), ("long", bench.long)):
        for streamed in (False, True):
            name = f"responses harmony {size}{' streamed' if streamed else ''}"
            since = trace_size(bench.target)
            body = {"input": text, "instructions": "Be brief.", "max_output_tokens": COUNT + 4}
            await (bench.stream if streamed else bench.ask)(name, "/v1/responses", body)
            bench.note(name, await _dispatched(bench, since))


async def _dispatched(bench: Bench, since: int) -> list[Any]:
    """Number and digest of the ids of what was dispatched since then; the stand-in notes it within half a second."""
    for _ in range(30):
        if notes := [[note["tokens"], note["digest"]] for note in traced(bench.target, since) if "digest" in note]:
            return notes
        await asyncio.sleep(0.1)
    return []


CHECKS: dict[str, dict[str, tuple[str, Check]]] = {
    "generation": {
        "chat": ("/v1/chat/completions", _chat),
        "completions": ("/v1/completions", _completions),
        "generate": ("/generate", _generate),
        "messages": ("/v1/messages", _messages),
        "count_tokens": ("/v1/messages/count_tokens", _count_tokens),
        "responses": ("/v1/responses", _responses),
        "tokenize": ("/v1/tokenize", _tokenize),
        "tokenize_chat": ("/v1/tokenize", _tokenize_chat),
        "detokenize": ("/v1/detokenize", _detokenize),
        "score": ("/v1/score", _score),
        "decisions": ("/v1/decisions", _decisions),
        "systemone": ("/v1/systemone", _systemone),
        "ollama": ("/api/chat", _ollama),
    },
    "embedding": {"embeddings": ("/v1/embeddings", _embeddings)},
    "harmony": {"responses_harmony": ("/v1/responses", _harmony)},
    "scoring": {"score_extraction": ("/v1/score", _score_extraction)},
}

# Per route and variant, a long input: which of them stands on the loop?
LONG: dict[str, dict[str, tuple[str, Callable[[Bench], dict[str, Any]]]]] = {
    "generation": {
        "chat": ("/v1/chat/completions", lambda bench: {"messages": bench.long_chat, "max_tokens": 1}),
        "chat_stream": ("/v1/chat/completions", lambda bench: {"messages": bench.long_chat, "max_tokens": 1, "stream": True}),
        "completions": ("/v1/completions", lambda bench: {"prompt": bench.long, "max_tokens": 1}),
        "generate": ("/generate", lambda bench: {"text": bench.long, "sampling_params": {"max_new_tokens": 1}}),
        "generate_batch": ("/generate", lambda bench: {"text": [bench.long, SHORT], "sampling_params": {"max_new_tokens": 1}}),
        "messages": ("/v1/messages", lambda bench: {"messages": bench.long_chat, "max_tokens": 1}),
        "messages_stream": ("/v1/messages", lambda bench: {"messages": bench.long_chat, "max_tokens": 1, "stream": True}),
        "count_tokens": ("/v1/messages/count_tokens", lambda bench: {"messages": bench.long_chat}),
        "responses": ("/v1/responses", lambda bench: {"input": bench.long, "max_output_tokens": 5}),
        "responses_stream": ("/v1/responses", lambda bench: {"input": bench.long, "max_output_tokens": 5, "stream": True}),
        "tokenize": ("/v1/tokenize", lambda bench: {"prompt": bench.long}),
        "tokenize_batch": ("/v1/tokenize", lambda bench: {"prompt": [bench.long, SHORT]}),
        "tokenize_chat": ("/v1/tokenize", lambda bench: {"messages": bench.long_chat}),
        "score": ("/v1/score", lambda bench: {"query": bench.long, "items": [" yes", " no"], "label_token_ids": LABELS}),
        "decisions": ("/v1/decisions", lambda bench: _decision(bench.long)),
        "ollama": ("/api/chat", lambda bench: {"messages": bench.long_chat, "options": {"num_predict": 1}, "stream": False}),
    },
    "scoring": {"score_extraction": ("/v1/score", lambda bench: _extraction(bench.long))},
    "harmony": {
        "responses_harmony": ("/v1/responses", lambda bench: {"input": bench.long, "max_output_tokens": 5}),
    },
    "embedding": {
        "embeddings": ("/v1/embeddings", lambda bench: {"input": bench.long}),
        "embeddings_batch": ("/v1/embeddings", lambda bench: {"input": [bench.long, SHORT]}),
    },
}
