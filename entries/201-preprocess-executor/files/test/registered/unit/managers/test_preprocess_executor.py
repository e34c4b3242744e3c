# SPDX-License-Identifier: Apache-2.0
"""The preprocessing executor: order, tokenizer, short inputs, errors, switch.

Runs in an SGLang checkout and, as the module under test needs the standard library
only, without SGLang. No test sleeps: threads meet at events, with a time limit.
"""

import ast
import asyncio
import concurrent.futures
import contextvars
import functools
import gc
import logging
import sys
import threading
import weakref
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest

from sglang.srt.managers import preprocess_executor as module
from sglang.srt.managers.preprocess_executor import (
    SHORT_INPUT_CHARS,
    SWITCH,
    PreprocessExecutor,
    current_tokenizer,
    is_short_chat,
    is_short_text,
    own_backend,
    preprocess,
    preprocess_each,
    preprocess_request,
)

try:
    from sglang.test.ci.ci_register import register_cpu_ci
except ImportError:  # without SGLang

    def register_cpu_ci(**_):
        return None


register_cpu_ci(est_time=10, suite="base-a-test-cpu")

LIMIT = 5  # seconds, for what takes milliseconds unless it hangs
LOOP = "the event loop"
WORKER = "preprocess_0"


class Backend(list):
    """In place of the Rust tokenizer. Remembers who encoded; `append` is built in."""

    copies = 0

    def __deepcopy__(self, memo):
        Backend.copies += 1
        return Backend()

    def encode(self, text):
        self.append(here())
        return [ord(char) for char in text]


class FastTokenizer:
    is_fast = True

    def __init__(self):
        self._tokenizer = Backend()
        self.chat_template = "first"

    def encode(self, text):
        return self._tokenizer.encode(text)

    def backend(self):
        return self._tokenizer


class Manager:
    """What the planted TokenizerManager has of its own."""

    def __init__(self, tokenizer, mode=None):
        self._tokenizer = tokenizer
        self.preprocess_executor = PreprocessExecutor(tokenizer, mode)

    @property
    def tokenizer(self):
        return current_tokenizer(self)


class Handler:
    """An OpenAI handler, its conversion without encoding, such as completions."""

    def __init__(self, manager):
        self.tokenizer_manager = manager

    def _convert_to_internal_request(self, request, raw_request=None):
        return here()

    def _tokenize(self, request):
        return here()


class ChatHandler(Handler):
    def _process_messages(self, request, is_multimodal):
        return here()


def here():
    """The name of this thread, or LOOP for the thread of a running event loop."""
    try:
        asyncio.get_running_loop()
        return LOOP
    except RuntimeError:
        return threading.current_thread().name


def drive(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT))


class Gate:
    """A job that starts, says so, and ends when it is let."""

    def __init__(self, log=None, name="long"):
        self.started, self.release = threading.Event(), threading.Event()
        self.log, self.name = [] if log is None else log, name

    def __call__(self, *_):
        self.started.set()
        assert self.release.wait(LIMIT), "never released: did the loop stand still?"
        self.log.append(self.name)
        return here()

    async def begin(self):
        assert await asyncio.to_thread(self.started.wait, LIMIT)


@pytest.fixture
def manager(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    manager = Manager(FastTokenizer())
    yield manager
    manager.preprocess_executor.shutdown()


@pytest.fixture
def executor(manager):
    return manager.preprocess_executor


async def spin(turns=5):
    """Let every task that can go on do so."""
    for _ in range(turns):
        await asyncio.sleep(0)


def chat(*contents, **more):
    messages = [{"role": "user", "content": content} for content in contents]
    return SimpleNamespace(messages=messages, tools=None, **more)


LONG = chat("x" * (SHORT_INPUT_CHARS + 1))
SHORT = chat("hello")


def test_needs_the_standard_library_only():
    with open(module.__file__, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module.split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= sys.stdlib_module_names


# One FIFO worker


def test_jobs_run_in_arrival_order_on_one_thread_and_leave_the_loop_free(executor):
    ran, left, threads = [], [], set()

    def job(number):
        ran.append(number)
        threads.add(here())

    async def request(number):
        await executor.run(job, number)
        left.append(number)

    async def main():
        gate = Gate()
        first = asyncio.create_task(executor.run(gate))
        await gate.begin()
        requests = [asyncio.create_task(request(number)) for number in range(50)]
        await spin()
        assert ran == []
        gate.release.set()
        assert await first == WORKER
        await asyncio.gather(*requests)

    drive(main())
    assert ran == left == list(range(50))
    assert threads == {WORKER}


def test_jobs_see_the_context_variables_of_their_request(executor):
    request_id = contextvars.ContextVar("request_id", default=None)

    async def request(number):
        request_id.set(number)
        return await executor.run(request_id.get)

    async def main():
        return await asyncio.gather(*(request(number) for number in range(5)))

    assert drive(main()) == list(range(5))


def test_a_job_may_come_back_through_a_loop_of_its_own(executor):
    def job():
        return asyncio.run(asyncio.wait_for(executor.run(inner), 1))

    def inner():
        return threading.current_thread().name

    async def main():
        return await executor.run(job)

    assert drive(main()) == WORKER


# The worker's tokenizer


def test_a_job_encodes_on_a_backend_of_its_own(manager, executor):
    async def main():
        await executor.run(lambda: manager.tokenizer.encode("job"))
        manager.tokenizer.encode("loop")
        return await executor.run(lambda: manager.tokenizer)

    worker = drive(main())
    shared = manager._tokenizer
    assert worker is not shared and manager.tokenizer is shared
    assert (list(worker._tokenizer), list(shared._tokenizer)) == ([WORKER], [LOOP])


def test_jobs_get_one_lasting_tokenizer_and_no_job_copies_a_backend(monkeypatch):
    monkeypatch.setattr(Backend, "copies", 0)
    manager = Manager(FastTokenizer())
    assert Backend.copies == 1

    async def main():
        run = manager.preprocess_executor.run
        return [await run(lambda: manager.tokenizer) for _ in range(5)]

    tokenizers = drive(main())
    manager.preprocess_executor.shutdown()
    own = manager.preprocess_executor.worker_tokenizer
    assert all(tokenizer is own for tokenizer in tokenizers)
    assert Backend.copies == 1


@pytest.mark.parametrize("mode", ["upstream", "inline"])
def test_other_modes_copy_nothing_and_warn_of_nothing(monkeypatch, caplog, mode):
    monkeypatch.setattr(Backend, "copies", 0)
    Manager(FastTokenizer(), mode)
    Manager(Slow(), mode)
    assert Backend.copies == 0 and caplog.records == []


def test_attributes_set_after_startup_are_current_in_a_job(manager, executor):
    shared = manager._tokenizer
    shared.extra = "set before the first job"

    def look():
        tokenizer = manager.tokenizer
        return tokenizer.chat_template, getattr(tokenizer, "extra", None)

    async def main():
        first = await executor.run(look)
        shared.chat_template = "second"
        del shared.extra
        return first, await executor.run(look)

    assert drive(main()) == (("first", "set before the first job"), ("second", None))


def test_what_a_job_caches_on_its_tokenizer_stays_there(manager, executor):
    async def main():
        await executor.run(lambda: setattr(manager.tokenizer, "cache", [1]))
        return await executor.run(lambda: manager.tokenizer.cache)

    assert drive(main()) == [1]
    assert not hasattr(manager._tokenizer, "cache")


def test_a_thread_that_a_job_starts_gets_the_shared_tokenizer(manager, executor):
    def job():
        found = []
        context = contextvars.copy_context()
        target = functools.partial(context.run, lambda: found.append(manager.tokenizer))
        thread = threading.Thread(target=target)
        thread.start()
        thread.join(LIMIT)
        return found

    async def main():
        return await executor.run(job)

    assert drive(main()) == [manager._tokenizer]


def test_a_job_gets_no_other_tokenizer_for_one_that_is_not_the_copied_one(executor):
    other = Manager(FastTokenizer())

    async def main():
        resolved = await executor.run(executor.resolve, other._tokenizer)
        return resolved, await executor.run(lambda: other.tokenizer)

    assert drive(main()) == (other._tokenizer, other._tokenizer)
    other.preprocess_executor.shutdown()


def by_method(tokenizer):
    return tokenizer.backend


def by_partial(tokenizer):
    return functools.partial(FastTokenizer.backend, tokenizer)


def by_partial_keyword(tokenizer):
    return functools.partial(FastTokenizer.backend, self=tokenizer)


def by_closure(tokenizer):
    return lambda: tokenizer._tokenizer


def by_closure_over_a_method(tokenizer):
    original = tokenizer.backend
    return lambda: original()


def by_closure_over_the_backend(tokenizer):
    backend = tokenizer._tokenizer
    return lambda: backend


def by_nested_wrappers(tokenizer):
    def drop_keywords(function):
        return lambda **_: function()

    return drop_keywords(drop_keywords(functools.partial(by_closure(tokenizer))))


def by_recursion(tokenizer):
    def patched(again=True):
        return patched(False) if again else tokenizer._tokenizer

    return patched


def by_default(tokenizer):
    return lambda tokenizer=tokenizer: tokenizer._tokenizer


def by_keyword_default(tokenizer):
    return lambda *, tokenizer=tokenizer: tokenizer._tokenizer


def by_function_bound_by_hand(tokenizer):
    def patched(self):
        assert self._tokenizer is tokenizer._tokenizer
        return self._tokenizer

    return patched.__get__(tokenizer)


PATCHES = [value for name, value in sorted(globals().items()) if name[:3] == "by_"]


@pytest.mark.parametrize("patch", PATCHES)
def test_a_method_patched_onto_the_tokenizer_stays_on_this_side(
    manager, executor, patch
):
    shared = manager._tokenizer
    shared.patched = patch(shared)

    def job():
        tokenizer = manager.tokenizer
        return tokenizer.patched, tokenizer.patched(), tokenizer._tokenizer

    async def main():
        return [await executor.run(job) for _ in range(2)]

    (first, used, own), (second, *_) = drive(main())
    assert used is own and used is not shared._tokenizer
    assert first is second, "a new object per job would miss caches"
    assert shared.patched() is shared._tokenizer


def test_a_built_in_method_of_the_backend_is_the_own_backends(manager, executor):
    manager._tokenizer.note = manager._tokenizer._tokenizer.append

    async def main():
        await executor.run(lambda: manager.tokenizer.note("job"))
        return await executor.run(lambda: list(manager.tokenizer.backend()))

    assert drive(main()) == ["job"]
    assert list(manager._tokenizer.backend()) == []


def test_a_patch_replaced_later_is_rebound_again(manager, executor):
    shared = manager._tokenizer

    async def main():
        for suffix in ("a", "b"):
            shared.patched = lambda end=suffix: (shared._tokenizer, end)
            backend, end = await executor.run(lambda: manager.tokenizer.patched())
            assert backend is not shared._tokenizer and end == suffix

    drive(main())


def test_a_patch_keeps_its_own_state_and_what_is_not_the_tokenizers(manager, executor):
    shared, calls = manager._tokenizer, 0

    def counted():
        nonlocal calls
        calls += 1
        return shared.chat_template

    def plain():
        return calls

    def unbound():
        return shared, never

    shared.counted, shared.plain, shared.unbound = counted, plain, unbound

    async def main():
        await executor.run(lambda: manager.tokenizer.counted())
        shared.counted()
        assert await executor.run(lambda: manager.tokenizer.plain) is plain

    drive(main())
    assert calls == 2
    if calls == 0:
        never = None  # what makes it a name of this scope, never bound


def test_a_tokenizer_replaced_after_startup_is_served_inline(manager, caplog):
    first = manager._tokenizer
    manager._tokenizer = FastTokenizer()

    async def main():
        names = [await preprocess(manager, here) for _ in range(3)]
        handler = ChatHandler(manager)
        names.append(await preprocess_request(handler, handler._tokenize, LONG))
        assert await preprocess_each(manager, names) is names
        assert await preprocess(manager, lambda: manager.tokenizer) is not first
        return names

    assert drive(main()) == [LOOP] * 4
    assert len(caplog.records) == 1 and "replaced" in caplog.text


def test_a_backend_replaced_after_startup_is_served_inline(manager, caplog):
    manager._tokenizer._tokenizer = Backend()

    async def main():
        return await preprocess(manager, here)

    assert drive(main()) == LOOP
    assert len(caplog.records) == 1


class Uncopyable(FastTokenizer):
    def __init__(self):
        super().__init__()
        self._tokenizer = threading.Lock()


class Atomic(FastTokenizer):
    """A deep copy of its backend is the same backend, as for a function."""

    def __init__(self):
        super().__init__()
        self._tokenizer = here


class Slow(FastTokenizer):
    is_fast = False


def mocked_fast_tokenizer():
    return Mock(is_fast=True)


def mocked_backend():
    tokenizer = MagicMock()
    tokenizer._tokenizer = MagicMock()
    return tokenizer


@pytest.mark.parametrize(
    "make",
    [
        *(Slow, Uncopyable, Atomic, object, str),
        *(Mock, MagicMock, mocked_fast_tokenizer, mocked_backend),
    ],
)
def test_what_cannot_be_copied_stays_inline_with_one_warning(make, caplog):
    manager = Manager(make())
    assert not manager.preprocess_executor.has_worker
    assert manager.preprocess_executor.worker_tokenizer is None

    async def main():
        run = manager.preprocess_executor.run
        return [await run(here), await run(here, short=True), await run(here, hop=True)]

    assert drive(main()) == [LOOP] * 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert own_backend(manager._tokenizer) is manager._tokenizer
    assert len(caplog.records) == 1


def test_without_a_tokenizer_everything_is_inline_and_nobody_is_warned(caplog):
    executor = PreprocessExecutor(None)

    async def main():
        return await executor.run(here)

    assert drive(main()) == LOOP
    assert caplog.records == []


def test_own_backend(monkeypatch):
    shared = FastTokenizer()
    shared.patched = by_closure(shared)
    for mode in ("upstream", "inline"):
        monkeypatch.setenv(SWITCH, mode)
        assert own_backend(shared) is shared
    monkeypatch.setenv(SWITCH, "on")
    own = own_backend(shared)
    assert own is not shared and own._tokenizer is not shared._tokenizer
    assert own.patched() is own._tokenizer
    assert shared.patched() is shared._tokenizer


def test_a_tokenizer_never_set_is_an_attribute_error():
    bare = object.__new__(Manager)
    assert not hasattr(bare, "tokenizer")
    with pytest.raises(AttributeError, match="'Manager' object .* 'tokenizer'"):
        bare.tokenizer
    bare._tokenizer = "set, and no executor"
    assert bare.tokenizer == "set, and no executor"
    bare.preprocess_executor = Mock(spec=PreprocessExecutor)
    assert bare.tokenizer == "set, and no executor"


# Short inputs, and what is outstanding


def test_short_runs_inline_only_when_nothing_is_outstanding(manager, executor):
    async def main():
        assert await executor.run(here, short=True) == LOOP
        assert await preprocess(manager, here, short=True) == LOOP
        assert await executor.run(here) == WORKER
        gate = Gate()
        first = asyncio.create_task(executor.run(gate))
        await gate.begin()
        second = asyncio.create_task(executor.run(here, short=True))
        await spin()
        assert not second.done()
        gate.release.set()
        assert await first == await second == WORKER
        assert await executor.run(here, short=True) == LOOP

    drive(main())


def test_a_job_is_outstanding_until_its_handler_resumes(executor):
    left = []

    async def request(name, **how):
        await executor.run(here, **how)
        left.append(name)

    async def main():
        first = asyncio.create_task(request("long"))
        await asyncio.sleep(0)
        # The worker is through with the first job; its handler has not resumed yet.
        executor._pool.submit(here).result(LIMIT)
        second = asyncio.create_task(request("short", short=True))
        await asyncio.gather(first, second)

    drive(main())
    assert left == ["long", "short"]


def test_a_cancelled_requests_running_job_is_outstanding_until_it_ends(executor):
    log = []

    async def main():
        gate = Gate(log)
        first = asyncio.create_task(executor.run(gate))
        await gate.begin()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(executor.run(log.append, "short", short=True))
        await spin()
        assert log == [] and not second.done()
        gate.release.set()
        await second
        assert await executor.run(here, short=True) == LOOP

    drive(main())
    assert log == ["long", "short"]


def test_a_cancelled_request_that_has_not_started_never_runs(executor):
    log = []

    async def main():
        gate = Gate(log)
        first = asyncio.create_task(executor.run(gate))
        second = asyncio.create_task(executor.run(log.append, "never"))
        await gate.begin()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.release.set()
        await first
        assert await executor.run(here, short=True) == LOOP
        await executor.run(here)

    drive(main())
    assert log == ["long"]


def test_what_one_loop_left_behind_counts_in_the_next(executor):
    log, gate = [], Gate(name="of the first loop")
    gate.log = log

    async def first():
        asyncio.create_task(executor.run(gate))
        await gate.begin()

    async def second():
        task = asyncio.create_task(executor.run(log.append, "second", short=True))
        await spin()
        assert not task.done()
        gate.release.set()
        await task
        assert await executor.run(here, short=True) == LOOP

    drive(first())
    drive(second())
    assert log == ["of the first loop", "second"]


def test_is_short_text():
    assert is_short_text("") and is_short_text("x" * SHORT_INPUT_CHARS)
    assert not is_short_text("x" * (SHORT_INPUT_CHARS + 1))
    assert not is_short_text(["x"]) and not is_short_text(None)


HALF = "x" * (SHORT_INPUT_CHARS // 2)
PART = {"type": "text", "text": "x"}


def message(**fields):
    """A message as an object, as pydantic makes it."""
    return SimpleNamespace(**{"role": "user", "content": None, **fields})


@pytest.mark.parametrize(
    "expected, request_",
    [
        (True, SHORT),
        (True, chat(HALF, HALF)),
        (True, chat(HALF, HALF, None, "")),
        (False, chat(HALF, HALF, "x")),
        (False, LONG),
        (False, chat([PART])),
        (False, chat("x", [PART])),
        (True, SimpleNamespace(messages=[message(content="x")])),
        (False, SimpleNamespace(messages=[message(content=HALF * 2 + "x")])),
        (False, SimpleNamespace(messages=[message(content=[PART])])),
        (False, SimpleNamespace(messages=[message(reasoning_content=HALF * 2 + "x")])),
        (False, SimpleNamespace(messages=[message(tools=[{}])])),
        (False, SimpleNamespace(messages=[message(tool_calls=[{}])])),
        (False, SimpleNamespace(messages=[{"content": "x", "tool_calls": [{}]}])),
        (False, SimpleNamespace(messages=SHORT.messages, tools=[{}])),
        (True, SimpleNamespace(messages=SHORT.messages, tools=[])),
        (False, SimpleNamespace(messages=None, prompt="x")),
        (False, SimpleNamespace(input="x")),
        (False, Mock()),
        (False, None),
    ],
)
def test_is_short_chat(expected, request_):
    assert is_short_chat(request_) is expected


# The switch


def test_the_switch_is_read_when_the_executor_is_built(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    assert PreprocessExecutor(None).mode == "on"
    for mode in ("on", "upstream", "inline"):
        monkeypatch.setenv(SWITCH, mode)
        assert PreprocessExecutor(None).mode == mode
    assert PreprocessExecutor(None, "on").mode == "on"


@pytest.mark.parametrize("word", ["off", "", "ON", "1"])
def test_another_word_is_an_error_that_names_the_words(monkeypatch, word):
    monkeypatch.setenv(SWITCH, word)
    for call in (PreprocessExecutor, own_backend):
        with pytest.raises(ValueError) as error:
            call(None)
        for part in (SWITCH, repr(word), "on", "upstream", "inline"):
            assert part in str(error.value)


@pytest.mark.parametrize(
    "mode, hop, expected",
    [
        ("on", False, WORKER),
        ("on", True, WORKER),
        ("upstream", False, LOOP),
        ("upstream", True, "asyncio_0"),
        ("inline", False, LOOP),
        ("inline", True, LOOP),
    ],
)
def test_where_a_job_runs_in_each_mode(mode, hop, expected):
    manager = Manager(FastTokenizer(), mode)
    handler = ChatHandler(manager)
    convert = handler._convert_to_internal_request

    async def main():
        assert await manager.preprocess_executor.run(here, hop=hop) == expected
        assert await preprocess(manager, here, hop=hop) == expected
        return await preprocess_request(handler, convert, LONG, None, hop=hop)

    assert drive(main()) == expected
    manager.preprocess_executor.shutdown()


def test_upstreams_hop_is_upstreams_own_call():
    """For every handler, also one of which the conversion does not encode."""
    handler, calls = Handler(Manager(FastTokenizer(), "upstream")), []
    convert = handler._convert_to_internal_request

    async def main():
        loop = asyncio.get_running_loop()
        original = loop.run_in_executor
        loop.run_in_executor = lambda *args: calls.append(args) or original(*args)
        await preprocess_request(handler, convert, SHORT, None, hop=True)

    drive(main())
    assert calls == [(None, convert, SHORT, None)]


# Errors


class Special(BaseException):
    pass


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        KeyError("x"),
        TimeoutError("x"),
        concurrent.futures.TimeoutError("x"),
        concurrent.futures.CancelledError(),
        asyncio.CancelledError(),
        concurrent.futures.InvalidStateError("x"),
        Special("x"),
        SystemExit(3),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mode", ["on", "inline"])
def test_an_error_reaches_the_caller_as_it_was(mode, error):
    executor = Manager(FastTokenizer(), mode).preprocess_executor

    def fail():
        raise error

    async def main():
        try:
            await executor.run(fail)
        except BaseException as caught:
            assert caught is error
        else:
            raise AssertionError("no error")
        return await executor.run(here), await executor.run(here, short=True)

    assert drive(main()) == (WORKER if mode == "on" else LOOP, LOOP)
    executor.shutdown()


@pytest.mark.parametrize("mode", ["on", "inline"])
def test_stop_iteration_is_what_python_makes_of_it(mode):
    executor = Manager(FastTokenizer(), mode).preprocess_executor

    async def main():
        with pytest.raises(RuntimeError) as error:
            await executor.run(next, iter(()))
        assert type(error.value.__cause__) is StopIteration

    drive(main())
    executor.shutdown()


@pytest.mark.parametrize("error", [ValueError, Special])
def test_an_error_does_not_keep_the_request_alive(executor, error):
    class Request:
        def fail(self):
            raise error

    async def main():
        request = Request()
        alive = weakref.ref(request)
        try:
            await executor.run(request.fail)
        except error:
            pass
        await executor.run(here)  # the worker has let go of the job
        del request
        return alive()

    gc.disable()  # reference counts must do: a cycle would keep long prompts
    try:
        assert drive(main()) is None
    finally:
        gc.enable()


# Managers and handlers


@pytest.mark.parametrize(
    "fake",
    [
        None,
        object(),
        Mock(),
        MagicMock(),
        SimpleNamespace(),
        SimpleNamespace(preprocess_executor=None),
        SimpleNamespace(preprocess_executor=Mock(spec=PreprocessExecutor)),
        object.__new__(Manager),
    ],
    ids=lambda fake: type(fake).__name__,
)
def test_a_manager_without_an_executor_runs_inline(fake):
    handler = SimpleNamespace(tokenizer_manager=fake)
    items = iter("ab")

    async def main():
        assert await preprocess(fake, here) == LOOP
        assert await preprocess(fake, here, short=True, hop=True) == LOOP
        assert await preprocess_request(handler, here, hop=True) == LOOP
        assert await preprocess_request(SimpleNamespace(), here) == LOOP
        assert await preprocess_each(fake, items) is items

    drive(main())


def test_a_fake_manager_may_have_a_real_executor(executor):
    fake = SimpleNamespace(preprocess_executor=executor)

    async def main():
        return await preprocess(fake, here)

    assert drive(main()) == WORKER


POINTER = {"pointer_head": object(), "joint_head_config": None}
JOINT = {"pointer_head": None, "joint_head_config": object()}
NO_HEAD = {"pointer_head": None, "joint_head_config": None}


@pytest.mark.parametrize(
    "make, attributes, request_, expected",
    [
        (ChatHandler, {}, LONG, WORKER),
        (ChatHandler, {}, SHORT, LOOP),
        (ChatHandler, {}, SimpleNamespace(input="responses"), WORKER),
        (Handler, {}, SimpleNamespace(prompt="x" * 9999), LOOP),
        (Handler, {}, SimpleNamespace(messages=LONG.messages, prompt=None), LOOP),
        (Handler, POINTER, SimpleNamespace(questions={}), WORKER),
        (Handler, JOINT, SimpleNamespace(questions={}), LOOP),
        (Handler, NO_HEAD, SimpleNamespace(questions={}), LOOP),
    ],
)
def test_only_a_conversion_that_encodes_takes_the_worker(
    manager, make, attributes, request_, expected
):
    handler = make(manager)
    vars(handler).update(attributes)

    async def main():
        convert = handler._convert_to_internal_request
        assert await preprocess_request(handler, convert, request_, None) == expected
        return await preprocess_request(handler, convert, request_, None, hop=True)

    assert drive(main()) == expected


def test_a_conversion_that_does_not_encode_never_waits(manager, executor):
    handler = Handler(manager)

    async def main():
        gate = Gate()
        first = asyncio.create_task(executor.run(gate))
        await gate.begin()
        convert = handler._convert_to_internal_request
        assert await preprocess_request(handler, convert, SHORT) == LOOP
        gate.release.set()
        await first

    drive(main())


def test_every_other_step_takes_the_worker_unless_the_chat_is_short(manager):
    handler = Handler(manager)

    async def main():
        step = handler._tokenize
        assert await preprocess_request(handler, step, LONG) == WORKER
        assert await preprocess_request(handler, step, SimpleNamespace()) == WORKER
        assert await preprocess_request(handler, here) == WORKER
        assert await preprocess_request(handler, step, SHORT) == LOOP

    drive(main())


def test_a_short_chat_waits_its_turn(manager, executor):
    handler, log = ChatHandler(manager), []
    handler._convert_to_internal_request = lambda request: log.append("short")

    async def main():
        gate = Gate(log)
        first = asyncio.create_task(executor.run(gate))
        await gate.begin()
        convert = handler._convert_to_internal_request
        second = asyncio.create_task(preprocess_request(handler, convert, SHORT))
        await spin()
        assert log == []
        gate.release.set()
        await asyncio.gather(first, second)

    drive(main())
    assert log == ["long", "short"]


# One job an item


def test_each_item_is_a_job_and_others_get_their_turn_between(manager, executor):
    log, gate = [], Gate()
    gate.log = log

    def items():
        yield gate()
        log.append("last item")
        yield here()

    async def main():
        first = asyncio.create_task(preprocess_each(manager, items()))
        await gate.begin()
        other = asyncio.create_task(executor.run(log.append, "other"))
        await spin()
        gate.release.set()
        await other
        return await first

    assert drive(main()) == [WORKER, WORKER]
    assert log == ["long", "other", "last item"]


def test_an_error_in_an_item_reaches_the_caller(manager):
    error = ValueError("question 2")

    def items():
        yield 1
        raise error

    async def main():
        with pytest.raises(ValueError) as caught:
            await preprocess_each(manager, items())
        assert caught.value is error
        assert await preprocess_each(manager, iter(())) == []
        assert await preprocess_each(manager, [None, 2]) == [None, 2]

    drive(main())


@pytest.mark.parametrize(
    "tokenizer, mode",
    [(FastTokenizer(), "upstream"), (FastTokenizer(), "inline"), (None, "on")],
)
def test_without_a_worker_the_items_stay_lazy(tokenizer, mode):
    items = (1 // number for number in [0])

    async def main():
        return await preprocess_each(Manager(tokenizer, mode), items)

    assert drive(main()) is items


# Shutdown


def test_shutdown_ends_the_running_job_and_drops_the_queue(executor):
    log = []

    async def main():
        gate = Gate(log)
        first = asyncio.create_task(executor.run(gate))
        await gate.begin()
        waiting = [
            asyncio.create_task(executor.run(log.append, number)) for number in range(3)
        ]
        await spin()
        shutdown = asyncio.create_task(asyncio.to_thread(executor.shutdown))
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(end) for end in ended} == {asyncio.CancelledError}
        assert not shutdown.done(), "the running job is waited for"
        gate.release.set()
        assert await first == WORKER
        await shutdown
        with pytest.raises(RuntimeError):
            await executor.run(log.append, "too late")
        executor.shutdown()

    drive(main())
    assert log == ["long"]
    assert not any(thread.is_alive() for thread in executor._pool._threads)


def test_a_job_may_shut_down_its_executor(executor):
    async def main():
        await executor.run(executor.shutdown)
        with pytest.raises(RuntimeError):
            await executor.run(here)

    drive(main())


# The real thing


def real_tokenizer():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(
        special_tokens=["[UNK]", "[PAD]"], show_progress=False
    )
    backend.train_from_iterator(["the quick brown fox jumps over the dog"], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]"
    )


def test_a_real_tokenizer_is_copied_and_agrees_with_the_shared_one():
    shared = real_tokenizer()
    shared.encode_one = shared._tokenizer.encode  # built in, bound to the Rust object
    manager = Manager(shared)
    assert manager.preprocess_executor.has_worker
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"

    def job():
        tokenizer = manager.tokenizer
        messages = [{"role": "user", "content": "the brown dog"}]
        rendered = tokenizer.apply_chat_template(messages, tokenize=False)
        owner = tokenizer.encode_one.__self__ is tokenizer.backend_tokenizer
        return rendered, tokenizer.encode(rendered), tokenizer.backend_tokenizer, owner

    async def main():
        shared.chat_template = template  # after startup, as the template manager does
        return await manager.preprocess_executor.run(job)

    rendered, ids, backend, owner = drive(main())
    manager.preprocess_executor.shutdown()
    assert rendered == "the brown dog" and ids == shared.encode("the brown dog")
    assert backend is not shared.backend_tokenizer and owner


def test_a_real_backend_on_two_threads_is_two_backends():
    """Padding set on one side must not show on the other, nor fail: on one backend it
    raised Already borrowed (tokenizers 0.22) or waited for its encode (0.23)."""
    shared = real_tokenizer()
    manager = Manager(shared)
    text, stop = "the quick brown fox " * 2000, threading.Event()

    def job():
        rounds = 0
        while not stop.is_set() or rounds == 0:
            encoded = manager.tokenizer([text, "the"])["input_ids"]
            assert len(encoded[1]) < len(encoded[0]), "padded by the other thread"
            rounds += 1
        return rounds

    async def main():
        task = asyncio.create_task(manager.preprocess_executor.run(job))
        try:
            for _ in range(50):
                padded = manager.tokenizer(["the dog", "the"], padding=True)
                assert len({len(ids) for ids in padded["input_ids"]}) == 1
                await asyncio.sleep(0)
        finally:
            stop.set()
        return await task

    assert drive(main()) > 0
    manager.preprocess_executor.shutdown()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
