"""A stand-in for the scheduler process: SGLang's own sockets and messages, no model.

It speaks the contract of 0.5.20 to 0.5.23: takes tokenized requests, sends token ids to the real
detokenizer at a fixed pace, and answers the few control requests of the tokenizer manager. Every arrival is
noted in a file, in order: that is the order in which requests were dispatched.
"""

from __future__ import annotations

import json
import os
import signal
import time
from array import array
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from stackctl_bed import answers

STEP_S = 0.010
PREFILL_S = 0.005
# The detokenizer decodes a new answer together with the prompt's last tokens.
CONTEXT_IDS = 5
NOTE_EVERY_S = 0.2


def run_stand_in(*args: Any) -> None:
    """SGLang's `run_scheduler_process`: the arguments differ per release, so they are told by type."""
    from sglang.srt.server_args import PortArgs, ServerArgs
    from sglang.srt.utils import kill_itself_when_parent_died

    kill_itself_when_parent_died()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for whoever started the server
    server_args = next(arg for arg in args if isinstance(arg, ServerArgs))
    ports = next(arg for arg in args if isinstance(arg, PortArgs))
    pipe = next(arg for arg in args if isinstance(arg, Connection))
    with open(os.environ["STACKCTL_BED_TRACE"], "a", encoding="utf-8") as trace:
        stand_in = StandIn(server_args, ports, trace)
        pipe.send(first_words(server_args))
        stand_in.serve()


def first_words(server_args: Any) -> dict[str, Any]:
    """What a scheduler reports when it is ready."""
    context = int(server_args.context_length or 131_072)
    return {
        "status": "ready",
        "max_total_num_tokens": 16 * context,
        "max_req_input_len": context - 6,
        "startup_time": {"load_weight": 0.0, "kv_cache_allocation": 0.0, "scheduler_e2e": 0.0, "cuda_graph": {}},
        "hicache_object_layout": None,
    }


@dataclass
class Running:
    """A request in generation: its answer, how much of it was sent, and when it may go on."""

    request: Any
    prompt: array[int]
    answer: list[int]
    due: float
    made: int = 0
    sent: int = 0

    @property
    def finished(self) -> bool:
        return self.made >= len(self.answer)


class StandIn:
    """The process: three sockets, the requests in generation, the trace."""

    def __init__(self, server_args: Any, ports: Any, trace: Any) -> None:
        import zmq
        from sglang.srt.managers import io_struct

        self.io = io_struct
        self.model = str(server_args.model_path)
        context = zmq.Context(1)
        self.source = _connected(context, zmq.PULL, ports.scheduler_input_ipc_name)
        self.detokenizer = _connected(context, zmq.PUSH, ports.detokenizer_ipc_name)
        self.tokenizer = _connected(context, zmq.PUSH, ports.tokenizer_ipc_name)
        self.running: dict[str, Running] = {}
        self.trace = trace
        self.noted = time.monotonic()
        self.stopping = False
        answers.words(self.model)  # now, not at the first request

    def serve(self) -> None:
        """Until a ShutdownReq: take what came, make one step of every answer, at most every STEP_S."""
        step = time.monotonic()
        while not self.stopping:
            step = max(step + STEP_S, time.monotonic())
            self._receive_until(step)
            self._step()
            if time.monotonic() - self.noted > NOTE_EVERY_S:
                self.trace.flush()
                self.noted = time.monotonic()
        self.trace.flush()

    def _receive_until(self, deadline: float) -> None:
        # With nothing to generate, only an arrival wakes us, or the flush of the trace.
        wait = NOTE_EVERY_S if not self.running else max(0.0, deadline - time.monotonic())
        while self.source.poll(int(wait * 1000)):
            self._take(self.io.sock_recv(self.source))
            wait = max(0.0, deadline - time.monotonic())
            if wait == 0.0:
                return

    def _take(self, message: Any) -> None:
        io = self.io
        if isinstance(message, io.TokenizedGenerateReqInput | io.TokenizedEmbeddingReqInput):
            self._start(message)
        elif isinstance(message, io.BatchTokenizedGenerateReqInput | io.BatchTokenizedEmbeddingReqInput):
            for request in message.batch:
                self._start(request)
        elif isinstance(message, io.AbortReq):
            self._abort(message)
        elif isinstance(message, io.FlushCacheReqInput):
            self._tell(io.FlushCacheReqOutput, success=True)
        elif isinstance(message, io.GetInternalStateReq):
            self._tell(io.GetInternalStateReqOutput, internal_state={})
        elif isinstance(message, io.FreezeGCReq | io.ConfigureLoggingReq):
            io.sock_send(self.detokenizer, message)
        elif isinstance(message, io.ShutdownReq):
            self.stopping = True
        else:
            print(f"stand-in scheduler: nothing to say to {type(message).__name__}", flush=True)

    def _tell(self, kind: Any, **fields: Any) -> None:
        self.io.sock_send(self.tokenizer, _filled(kind, **fields))

    def _start(self, request: Any) -> None:
        # Once, and as an array: half a core went into counting 36,000 ids five times over, beside the server's two.
        ids = array("q", request.input_ids or ())
        digest = answers.digest(ids)
        note = {"rid": request.rid, "at": time.monotonic(), "tokens": len(ids), "digest": digest}
        self.trace.write(json.dumps(note) + "\n")
        if isinstance(request, self.io.TokenizedEmbeddingReqInput):
            self._embed(request, ids)
            return
        count = request.sampling_params.max_new_tokens
        count = 128 if count is None else count
        made = answers.answer_to(self.model, digest, count)
        self.running[request.rid] = Running(request, ids, made, time.monotonic() + PREFILL_S)

    def _embed(self, request: Any, ids: array[int]) -> None:
        self.io.sock_send(self.detokenizer, _filled(
            self.io.BatchEmbeddingOutput, rids=[request.rid], http_worker_ipcs=[request.http_worker_ipc],
            finished_reasons=[{"type": "length", "length": 0}], embeddings=[answers.embedding(ids)],
            prompt_tokens=[len(ids)], cached_tokens=[0], retraction_counts=[0],
        ))  # fmt: skip

    def _abort(self, message: Any) -> None:
        rids = list(self.running) if message.abort_all else [rid for rid in self.running if rid.startswith(message.rid)]
        self.trace.write(json.dumps({"abort": message.rid, "at": time.monotonic(), "found": len(rids)}) + "\n")
        for rid in rids:
            request = self.running.pop(rid).request
            self.io.sock_send(self.tokenizer, _filled(self.io.AbortReq, rid=rid, http_worker_ipc=request.http_worker_ipc))

    def _step(self) -> None:
        now = time.monotonic()
        due = [one for one in self.running.values() if one.due <= now]
        for one in due:
            one.made = min(one.made + 1, len(one.answer))
        # As the real one: an answer that nobody streams is sent when it is whole.
        ready = [one for one in due if one.finished or one.request.stream]
        if ready:
            self.io.sock_send(self.detokenizer, self._output(ready))
        for one in ready:
            one.sent = one.made
            if one.finished:
                del self.running[one.request.rid]

    def _output(self, ready: list[Running]) -> Any:
        kind = self.io.BatchTokenIDOutput
        params = [one.request.sampling_params for one in ready]
        fields: dict[str, Any] = {
            "rids": [one.request.rid for one in ready],
            "http_worker_ipcs": [one.request.http_worker_ipc for one in ready],
            "finished_reasons": [{"type": "length", "length": one.made} if one.finished else None for one in ready],
            "decoded_texts": [""] * len(ready),
            "decode_ids": [array("q", _decode_ids(one)) for one in ready],
            "read_offsets": [len(one.prompt[-CONTEXT_IDS:]) for one in ready],
            "output_ids": [array("q", one.answer[one.sent : one.made]) for one in ready],
            "skip_special_tokens": [one.skip_special_tokens for one in params],
            "spaces_between_special_tokens": [one.spaces_between_special_tokens for one in params],
            "no_stop_trim": [one.no_stop_trim for one in params],
            "prompt_tokens": [len(one.prompt) for one in ready],
            "completion_tokens": [one.made for one in ready],
        }
        zeros = ("reasoning_tokens", "cached_tokens", "retraction_counts")
        return _filled(kind, **fields, **{name: [0] * len(ready) for name in zeros}, **_logprobs(ready))


def _connected(context: Any, kind: int, address: str) -> Any:
    socket = context.socket(kind)
    socket.linger = 0
    socket.connect(address)
    return socket


def _decode_ids(one: Running) -> list[int]:
    """New ids; the first time behind the prompt's last ones."""
    new = one.answer[one.sent : one.made]
    return new if one.sent else [*one.prompt[-CONTEXT_IDS:], *new]


def _logprobs(ready: list[Running]) -> dict[str, Any]:
    """Only where a request asked, as for scores; the rest of the batch gets empty lists."""
    if not any(one.request.return_logprob for one in ready):
        return {}
    sides = ("input", "output")
    names = [f"{side}_{what}_{kind}" for side in sides for what in ("token_logprobs", "top_logprobs", "token_ids_logprobs") for kind in ("val", "idx")]
    fields: dict[str, list[Any]] = {name: [[] for _ in ready] for name in names}
    for place, one in enumerate(ready):
        if not one.request.return_logprob:
            continue
        new = one.answer[one.sent : one.made]
        fields["output_token_logprobs_val"][place] = [answers.logprob(one.prompt, token) for token in new]
        fields["output_token_logprobs_idx"][place] = new
        _add_asked(fields, place, one)
    return fields


def _add_asked(fields: dict[str, list[Any]], place: int, one: Running) -> None:
    """Log-probabilities of the tokens that were named: after the prompt, or at each position that is to be pooled."""
    asked = one.request.token_ids_logprob or []
    spots = getattr(one.request, "token_indices_to_pool", None) or getattr(one.request, "multi_item_delimiter_indices", None)
    if spots:
        fields["input_token_ids_logprobs_val"][place] = [[answers.logprob(one.prompt[: spot + 1], t) for t in asked] for spot in spots]
        fields["input_token_ids_logprobs_idx"][place] = [list(asked) for _ in spots]
    fields["output_token_ids_logprobs_val"][place] = [[answers.logprob(one.prompt, token) for token in asked]]
    fields["output_token_ids_logprobs_idx"][place] = [list(asked)]


def _filled(kind: Any, **fields: Any) -> Any:
    """A message with None for what a release requires and we do not know."""
    import msgspec

    known = {item.name: item for item in msgspec.structs.fields(kind)}
    given = {name: value for name, value in fields.items() if name in known}
    missing = {name: None for name, item in known.items() if item.required and name not in given}
    return kind(**missing, **given)
