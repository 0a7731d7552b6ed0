"""From the engine's thread to the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from infx.engine.config import EngineConfig
from infx.engine.detokenizer import TextStream
from infx.engine.loop import Engine
from infx.engine.metrics import Histogram
from infx.engine.request import Emission, Request, SamplingParams, TokenLogprob
from infx.engine.server.answers import Answer, TextChoice
from infx.engine.server.bodies import Call
from infx.engine.server.delivery import Gathered, Mailbox
from infx.engine.server.events import MOST_UNREAD_BYTES, EventStream
from infx.engine.server.handlers import Handlers
from infx.engine.tokenizer import ChatTokenizer


class Notes:
    """Keeps what it takes, and the thread in which."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, str]] = []
        self.threads: set[int] = set()

    def take(self, index: int, emission: Emission) -> None:
        self.taken.append((index, emission.text))
        self.threads.add(threading.get_ident())


def test_emissions_of_many_threads_arrive_whole_in_order_and_in_the_loops_thread():
    async def deliver() -> Notes:
        notes, threads, each = Notes(), 4, 5000
        put = Mailbox(asyncio.get_running_loop()).to(notes)

        def work(index: int) -> None:
            for at in range(each):
                put(index, Emission(str(at), 1))

        workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
        for worker in workers:
            worker.start()
        async with asyncio.timeout(30):
            while len(notes.taken) < threads * each:
                await asyncio.sleep(0.001)
        return notes

    notes = asyncio.run(deliver())
    assert notes.threads == {threading.get_ident()}
    for index in range(4):
        assert [text for at, text in notes.taken if at == index] == list(map(str, range(5000)))


def test_each_step_wakes_the_loop_once():
    async def count() -> int:
        loop, notes, wakes = asyncio.get_running_loop(), Notes(), 0
        box = Mailbox(loop)

        def call_soon_threadsafe(function):
            nonlocal wakes
            wakes += 1
            loop.call_soon(function)

        box._loop = type("Loop", (), {"call_soon_threadsafe": staticmethod(call_soon_threadsafe)})
        put = box.to(notes)
        for step in (1, 2, 3):
            for at in range(64):
                put(at, Emission("x", 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(notes.taken) == 64 * step
        return wakes

    assert asyncio.run(count()) == 3


class Posted:
    """Stands for an HTTP request with a body."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def read(self) -> bytes:
        return self.data


@pytest.mark.parametrize(("size", "beside"), [(10, False), (100_000, True)])
def test_only_large_bodies_are_read_beside_the_loop(size, beside):
    async def thread() -> int:
        handlers = Handlers(Engine(EngineConfig(model="null")))
        data = b'{"prompt": "' + b"x" * size + b'"}'
        return await handlers._read(Posted(data), lambda *_: threading.get_ident())

    assert (asyncio.run(thread()) != threading.get_ident()) == beside


def test_a_whole_answer_is_every_choices_parts_together():
    async def gather() -> list[Emission]:
        gathered, one = Gathered(2), TokenLogprob(97, -0.5, ((97, -0.5),))
        gathered.take(1, Emission("b", 1, "stop", (98,)))
        gathered.take(0, Emission("a", 1, None, (97,), (one,)))
        gathered.take(0, Emission("", 1, "length", (97,), (one,)))
        return await gathered.all()

    first, second = asyncio.run(gather())
    assert (first.text, first.tokens, first.finish_reason) == ("a", 2, "length")
    assert (first.ids, len(first.logprobs)) == ((97, 97), 2)
    assert (second.text, second.finish_reason) == ("b", "stop")


class Unread:
    """A transport whose client reads nothing."""

    def __init__(self) -> None:
        self.held, self.aborted = 0, False

    def get_write_buffer_size(self) -> int:
        return self.held

    def write(self, data: bytes) -> None:
        self.held += len(data)

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def test_a_client_that_does_not_read_is_cut_off():
    async def written() -> Unread:
        answer = Answer("tiny", chat=False, synthetic=False)
        stream, transport = EventStream(answer, True, Histogram()), Unread()
        request = Request(
            number=0, tokens=[97], params=SamplingParams(max_tokens=9), text=TextStream(()),
            eos=frozenset(), deliver=lambda _: None,
        )  # fmt: skip
        call = Call([[97]], request.params, stream=True, include_usage=False)
        stream._choices = [TextChoice(0, request, call, ChatTokenizer())]
        stream._transport, stream._going = transport, 1
        for _ in range(40):
            stream.take(0, Emission("x" * (1 << 20), 1))
        return transport

    transport = asyncio.run(written())
    assert transport.aborted
    assert MOST_UNREAD_BYTES < transport.held < MOST_UNREAD_BYTES + (2 << 20)
