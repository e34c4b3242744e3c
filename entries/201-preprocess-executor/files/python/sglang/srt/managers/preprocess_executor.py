# SPDX-License-Identifier: Apache-2.0
"""Request preprocessing (templates, encoding) off the event loop, in arrival order.

One FIFO worker thread per TokenizerManager runs the jobs, on its own copy of the
tokenizer's Rust backend: two threads on one backend raise ``Already borrowed``
(tokenizers 0.22) or block each other (0.23: p50 92 ms for a call of the loop).
Standard library only, so that it can be imported and tested without SGLang.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import os
import threading
import types
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Callable, Iterable, TypeVar

logger = logging.getLogger(__name__)

SWITCH = "SGLANG_PREPROCESS_EXECUTOR"
MODES = ("on", "upstream", "inline")
SHORT_INPUT_CHARS = 2048

_BACKEND = "_tokenizer"  # where a Hugging Face fast tokenizer keeps its Rust half
_END = object()

T = TypeVar("T")
_Func = Callable[..., T]


class PreprocessExecutor:
    """Runs preprocessing jobs one at a time, first come, first served.

    `mode` is read from SGLANG_PREPROCESS_EXECUTOR when not given: ``on``;
    ``upstream``, the path of the release as it was; ``inline``, on the loop.
    ValueError on any other word. A tokenizer whose Rust backend cannot be copied
    leaves everything inline. Changes made in place to the shared Rust backend after
    startup (tokens added, another post-processor) do not reach the worker's copy.
    """

    def __init__(self, tokenizer: Any, mode: str | None = None) -> None:
        self.mode = _checked_mode(mode)
        # Copied here, never by a job: a backend takes ~0.3 s and holds the GIL.
        self._worker = _WorkerTokenizer.of(tokenizer) if self.mode == "on" else None
        self._thread = threading.local()
        mark = (self._thread, "is_worker", True)
        self._pool = ThreadPoolExecutor(1, "preprocess", setattr, mark)
        self._lock = threading.Lock()
        self._outstanding = 0
        self._warned = False
        if self.mode == "on" and self._worker is None and tokenizer is not None:
            self._warn_inline(f"{type(tokenizer).__name__} has no backend to copy")

    async def run(
        self, func: _Func[T], /, *args: Any, short: bool = False, hop: bool = False
    ) -> T:
        """What `func(*args)` returns or raises, computed on the worker.

        `short`: inline when nothing is outstanding. `hop`: this call site went through
        the loop's default executor in upstream's own code, as it does in mode upstream.
        """
        if self.mode == "upstream" and hop:
            return await asyncio.get_running_loop().run_in_executor(None, func, *args)
        worker = self._worker
        # A job that drives another loop can get here: it must not wait for itself.
        if worker is None or self._on_worker() or (short and not self._outstanding):
            return func(*args)
        return await self._queue(worker, func, args)

    def resolve(self, shared: Any) -> Any:
        """The tokenizer for this thread: in a job the worker's, else `shared`."""
        worker = self._worker
        if worker is not None and self._on_worker() and worker.stands_for(shared):
            return worker.tokenizer
        return shared

    def serves(self, tokenizer: Any) -> bool:
        """Whether jobs may use `tokenizer`: not one set after startup (one warning)."""
        if self._worker is None or self._worker.stands_for(tokenizer):
            return True
        if not self._warned:
            self._warn_inline("the tokenizer was replaced after startup")
        return False

    @property
    def has_worker(self) -> bool:
        """Whether jobs leave the event loop at all."""
        return self._worker is not None

    @property
    def worker_tokenizer(self) -> Any:
        """The tokenizer that jobs get, one object for good; None without a worker."""
        return None if self._worker is None else self._worker.tokenizer

    def shutdown(self) -> None:
        """Take no more jobs, cancel those not started, wait for the running one."""
        self._pool.shutdown(wait=not self._on_worker(), cancel_futures=True)

    def _on_worker(self) -> bool:
        # Per thread, not a context variable: a context would travel on to threads and
        # tasks that a job starts, and put them on the worker's backend as well.
        return getattr(self._thread, "is_worker", False)

    def _warn_inline(self, reason: str) -> None:
        self._warned = True
        logger.warning("Request preprocessing stays on the event loop: %s.", reason)

    async def _queue(
        self, worker: _WorkerTokenizer, func: _Func[T], args: tuple[Any, ...]
    ) -> T:
        context = copy_context()
        job = self._pool.submit(_run_job, worker, context, func, args)
        with self._lock:
            self._outstanding += 1
        try:
            outcome = await asyncio.wrap_future(job)
        finally:
            # Outstanding until here, where the handler resumes. Measured: counted down
            # when the worker ended instead, a short request that came in between ran
            # inline and overtook. Cancelled, it is outstanding until its job has ended.
            job.cancel()
            job.add_done_callback(self._settle)
        result: T = outcome.unwrap()
        return result

    def _settle(self, _: Future[_Outcome]) -> None:
        # On the worker thread when the request was cancelled, hence the lock.
        with self._lock:
            self._outstanding -= 1


async def preprocess(
    manager: Any, func: _Func[T], /, *args: Any, short: bool = False, hop: bool = False
) -> T:
    """`run` of the manager's executor; inline when it has none, or a mock."""
    executor = _executor_of(manager)
    if executor is None:
        return func(*args)
    return await executor.run(func, *args, short=short, hop=hop)


async def preprocess_request(
    handler: Any, func: _Func[T], /, *args: Any, hop: bool = False
) -> T:
    """Run a step of an OpenAI handler, its request first: one hop per request."""
    executor = _executor_of(getattr(handler, "tokenizer_manager", None))
    if executor is None:
        return func(*args)
    converts = func == getattr(handler, "_convert_to_internal_request", None)
    if executor.has_worker and converts and not _conversion_encodes(handler):
        return func(*args)
    short = is_short_chat(args[0] if args else None)
    return await executor.run(func, *args, short=short, hop=hop)


async def preprocess_each(manager: Any, items: Iterable[T]) -> Iterable[T]:
    """The items of a lazy iterable as a list, each computed by a job of its own.

    Returns `items` untouched where no worker would compute them.
    """
    executor = _executor_of(manager)
    if executor is None or not executor.has_worker:
        return items
    iterator, results = iter(items), []
    # The sentinel: a StopIteration set on an asyncio future never wakes its awaiter.
    while (item := await executor.run(next, iterator, _END)) is not _END:
        results.append(item)
    return results


def current_tokenizer(manager: Any) -> Any:
    """What the property `TokenizerManager.tokenizer` returns on this thread."""
    attributes = vars(manager)
    if _BACKEND not in attributes:
        message = f"{type(manager).__name__!r} object has no attribute 'tokenizer'"
        raise AttributeError(message, name="tokenizer", obj=manager)
    executor = _real(attributes.get("preprocess_executor"))
    shared = attributes[_BACKEND]
    return shared if executor is None else executor.resolve(shared)


def own_backend(tokenizer: Any) -> Any:
    """A shallow copy of `tokenizer` on a Rust backend of its own, for another thread.

    The same object when the mode is not ``on`` or it cannot be copied.
    """
    worker = _WorkerTokenizer.of(tokenizer) if _checked_mode(None) == "on" else None
    return tokenizer if worker is None else worker.tokenizer


def is_short_text(texts: Any) -> bool:
    """Whether `texts` is one string of at most SHORT_INPUT_CHARS characters."""
    return isinstance(texts, str) and len(texts) <= SHORT_INPUT_CHARS


def is_short_chat(request: Any) -> bool:
    """Whether `request` is a plain-text chat of SHORT_INPUT_CHARS, without tools."""
    messages = getattr(request, "messages", None)
    if not isinstance(messages, list) or getattr(request, "tools", None):
        return False
    left = SHORT_INPUT_CHARS
    for message in messages:
        length = _plain_length(message)
        if length is None or length > left:
            return False
        left -= length
    return True


def _plain_length(message: Any) -> int | None:
    """Characters that a message puts into the prompt; None unless plain text."""
    fields = ("content", "reasoning_content", "tool_calls", "tools")
    if isinstance(message, dict):
        values = [message.get(field) for field in fields]
    else:
        values = [getattr(message, field, None) for field in fields]
    texts = [text for text in values[:2] if text is not None]
    if any(values[2:]) or not all(isinstance(text, str) for text in texts):
        return None
    return sum(map(len, texts))


def _conversion_encodes(handler: Any) -> bool:
    """Whether the handler's `_convert_to_internal_request` renders a chat or encodes.

    Chat does, with what derives from it (`_process_messages`), and System One with a
    pointer head. All others return the request, wrap its text for the tokenizer
    manager or return a lazy iterator: what they encode is encoded later, in a job, and
    a hop for the conversion would be the second. The request cannot tell: one for
    /v1/tokenize may have messages too, and is converted to itself.
    """
    if hasattr(handler, "_process_messages"):
        return True
    pointer = getattr(handler, "pointer_head", None) is not None
    return pointer and getattr(handler, "joint_head_config", None) is None


def _executor_of(manager: Any) -> PreprocessExecutor | None:
    executor = _real(getattr(manager, "preprocess_executor", None))
    attributes = getattr(manager, "__dict__", {})
    if executor is None or _BACKEND not in attributes:
        return executor
    return executor if executor.serves(attributes[_BACKEND]) else None


def _real(executor: Any) -> PreprocessExecutor | None:
    # By type(): a Mock with a spec claims through __class__ to be an instance.
    return executor if issubclass(type(executor), PreprocessExecutor) else None


def _checked_mode(mode: str | None) -> str:
    chosen = os.environ.get(SWITCH, MODES[0]) if mode is None else mode
    if chosen not in MODES:
        raise ValueError(f"{SWITCH} is {chosen!r}, not one of {', '.join(MODES)}")
    return chosen


def _run_job(
    worker: _WorkerTokenizer, context: Context, func: _Func[Any], args: tuple[Any, ...]
) -> _Outcome:
    try:
        worker.refresh()
        return _Outcome(context.run(func, *args))
    except BaseException as error:  # SystemExit too is for the caller, as inline
        return _Outcome(error=error)


@dataclass
class _Outcome:
    """How a job ended. A future's own exception would not do: it refuses StopIteration,
    and asyncio replaces some exceptions by others on the way."""

    value: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        if self.error is None:
            return self.value
        try:
            raise self.error
        finally:
            self.error = None  # else error, traceback and frame keep the prompt alive


class _WorkerTokenizer:
    """A shallow copy of a fast tokenizer, on its own Rust backend, kept up to date.

    One object for good: upstream keys caches by tokenizer object (measured: a new copy
    per job rebuilds the parallel-encode plan each time, 0.9 s under the GIL).
    """

    def __init__(self, shared: Any, backend: Any) -> None:
        self._shared = shared
        self._source = vars(shared)[_BACKEND]
        self.tokenizer = copy.copy(shared)
        self._targets = {id(shared): self.tokenizer, id(self._source): backend}
        self._bound: dict[str, tuple[Any, Any]] = {}
        self.refresh()

    @classmethod
    def of(cls, tokenizer: Any) -> _WorkerTokenizer | None:
        """None when there is no Rust backend that can be copied."""
        # A Mock has every attribute: hence the `__dict__`, and `is True`.
        source = getattr(tokenizer, "__dict__", {}).get(_BACKEND)
        if source is None or getattr(tokenizer, "is_fast", False) is not True:
            return None
        try:
            backend = copy.deepcopy(source)
            return None if backend is source else cls(tokenizer, backend)
        except Exception:
            logger.debug("Cannot copy %s", type(tokenizer).__name__, exc_info=True)
            return None

    def stands_for(self, tokenizer: Any) -> bool:
        """Whether `tokenizer` is the one copied, and still on the same backend."""
        same = tokenizer is self._shared
        return same and vars(tokenizer).get(_BACKEND) is self._source

    def refresh(self) -> None:
        """Take over the shared tokenizer's attributes as they are (chat_template)."""
        current = {**vars(self._shared), _BACKEND: self._source}
        attributes = vars(self.tokenizer)
        for name in self._bound.keys() - current.keys():
            del self._bound[name]
            attributes.pop(name, None)
        new = dict(self._targets)
        for name, value in current.items():
            if name not in self._bound or self._bound[name][0] is not value:
                self._bound[name] = (value, _rebound(value, new))
            attributes[name] = self._bound[name][1]


def _rebound(value: Any, new: dict[int, Any]) -> Any:
    """`value` with all it would call exchanged for `new`, by id(); itself if nothing.

    Methods patched onto an instance keep the instance: upstream's Python chat templates
    are closures over the shared tokenizer, and would take a job back to its backend.
    """
    if id(value) in new or not _reaches(value, new, set()):
        return new.get(id(value), value)
    exchange = functools.partial(_rebound, new=new)
    if isinstance(value, types.FunctionType):
        return _rebound_function(value, new)
    if isinstance(value, types.MethodType):
        return types.MethodType(exchange(value.__func__), exchange(value.__self__))
    if isinstance(value, types.BuiltinMethodType):
        return getattr(exchange(value.__self__), value.__name__)
    keywords = {name: exchange(item) for name, item in value.keywords.items()}
    return functools.partial(
        exchange(value.func), *map(exchange, value.args), **keywords
    )


def _rebound_function(function: types.FunctionType, new: dict[int, Any]) -> Any:
    # Cells that reach nothing new stay the same cells: callers may share their state.
    cells = function.__closure__ or ()
    own = [types.CellType() if _reaches(cell, new, set()) else cell for cell in cells]
    code, name = function.__code__, function.__name__
    clone = types.FunctionType(code, function.__globals__, name, None, tuple(own))
    new[id(function)] = clone  # before its cells are filled: it may call itself
    exchange = functools.partial(_rebound, new=new)
    for cell, old in zip(own, cells):
        if cell is not old:
            cell.cell_contents = exchange(old.cell_contents)
    clone.__qualname__ = function.__qualname__
    clone.__defaults__ = tuple(map(exchange, function.__defaults__ or ())) or None
    keywords = function.__kwdefaults__ or {}
    clone.__kwdefaults__ = {key: exchange(item) for key, item in keywords.items()}
    clone.__dict__.update(function.__dict__)
    return clone


def _reaches(value: Any, new: dict[int, Any], seen: set[int]) -> bool:
    if id(value) in new or id(value) in seen:
        return id(value) in new
    seen.add(id(value))
    return any(_reaches(part, new, seen) for part in _parts(value))


def _parts(value: Any) -> list[Any]:
    """The objects that a call of `value` goes through."""
    if isinstance(value, types.CellType):
        # An empty cell: a name that the outer function has not bound.
        return [value.cell_contents] if value != types.CellType() else []
    if isinstance(value, types.FunctionType):
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return [*(value.__closure__ or ()), *defaults]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.BuiltinMethodType):
        return [value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    return []
