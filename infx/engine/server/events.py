"""A streamed answer: server-sent events, written to the socket as they come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from aiohttp import web

from infx.engine.metrics import Histogram
from infx.engine.request import Emission, Request
from infx.engine.server.answers import Answer, ChatChoice, TextChoice, error_body, sse

__all__ = ["EventStream"]

# What may wait for a client that reads more slowly than its answer comes. 20 alternatives of a
# prompt of 8,192 tokens are 5 MB, and a step ends several prompts.
MOST_UNREAD_BYTES = 32 << 20
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class EventStream:
    """Events of one call.

    They go straight to the connection's transport, in the call that hands the emission over: a
    task to wake and aiohttp's writer took 60 us an event, which for 64 streams in step is 4 ms
    between the first and the last. A client that leaves more than `MOST_UNREAD_BYTES` unread is cut
    off, which ends its requests as a client that goes away does.
    """

    def __init__(self, answer: Answer, include_usage: bool, write_delay: Histogram) -> None:
        self._answer, self._include_usage, self._write_delay = answer, include_usage, write_delay
        self._early: list[tuple[int, Emission]] = []
        self._choices: Sequence[ChatChoice | TextChoice] = ()
        self._requests: Sequence[Request] = ()
        self._opened: set[int] = set()
        self._going = 0
        self._transport: asyncio.WriteTransport | None = None
        self._chunked = False
        self._ended = asyncio.get_running_loop().create_future()

    def take(self, index: int, emission: Emission) -> None:
        """Write the emission's event, or keep it until the head of the response is written."""
        if self._transport is None:
            self._early.append((index, emission))
        elif not self._ended.done():
            self._write(self._events(index, emission))
            if emission.sampled_s:
                self._write_delay.observe(time.monotonic() - emission.sampled_s)

    async def run(
        self, http: web.Request, choices: Sequence[ChatChoice | TextChoice], requests: list[Request]
    ) -> web.StreamResponse:
        """Answer ``http`` until every choice has ended; ``choices`` and ``requests`` by index."""
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(http)
        self._choices, self._requests, self._going = choices, requests, len(choices)
        self._chunked = response.headers.get("Transfer-Encoding") == "chunked"
        self._transport = http.transport
        for index, emission in self._early:
            self.take(index, emission)
        await self._ended
        await response.write_eof()
        return response

    def _events(self, index: int, emission: Emission) -> bytes:
        if emission.finish_reason == "error":
            self._ended.set_result(None)
            return sse(error_body(500, "engine-failed", "a step of the engine failed", None))
        choice, events = self._choices[index], b""
        if index not in self._opened:
            self._opened.add(index)
            opening = choice.opening()
            events = sse(self._answer.chunk(opening)) if opening else b""
        events += sse(self._answer.chunk(choice.piece(emission)))
        self._going -= emission.finish_reason is not None
        return events if self._going else events + self._last()

    def _last(self) -> bytes:
        self._ended.set_result(None)
        closing = sse(self._answer.closing(self._requests)) if self._include_usage else b""
        return closing + b"data: [DONE]\n\n"

    def _write(self, events: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self._transport.abort()
            return
        if self._chunked:
            events = b"%x\r\n%b\r\n" % (len(events), events)
        self._transport.write(events)
