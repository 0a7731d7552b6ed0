"""From the engine's thread to an answer: one wake-up of the event loop for all that waits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from infx.engine.request import Emission

__all__ = ["Deliver", "Gathered", "Mailbox", "Sink"]

Deliver = Callable[[int, Emission], None]


class Sink(Protocol):
    """Where the emissions of one call go, in the event loop's thread."""

    def take(self, index: int, emission: Emission) -> None:
        """Take what choice ``index`` emits."""


class Mailbox:
    """Emissions on their way. A step of 64 requests wakes the event loop once or twice, not 64
    times: a wake-up costs as much as writing an event (20 us).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Sink, int, Emission]] = deque()
        self._woken = False

    def to(self, sink: Sink) -> Deliver:
        """Return what any thread may call to have ``sink`` take an emission, in order."""

        def deliver(index: int, emission: Emission) -> None:
            self._waiting.append((sink, index, emission))
            if not self._woken:
                self._woken = True
                self._loop.call_soon_threadsafe(self._hand_out)

        return deliver

    def _hand_out(self) -> None:
        # Before the first look: who puts something in after the last one wakes the loop again.
        self._woken = False
        while self._waiting:
            sink, index, emission = self._waiting.popleft()
            sink.take(index, emission)


class Gathered:
    """The emissions of each choice taken together, for an answer that is not streamed."""

    def __init__(self, choices: int) -> None:
        self._parts: list[list[Emission]] = [[] for _ in range(choices)]
        self._going = choices
        self._ended = asyncio.get_running_loop().create_future()

    def take(self, index: int, emission: Emission) -> None:
        """Keep the emission."""
        self._parts[index].append(emission)
        self._going -= emission.finish_reason is not None
        if not self._going and not self._ended.done():
            self._ended.set_result(None)

    async def all(self) -> list[Emission]:
        """Return one emission a choice, when every choice has ended."""
        await self._ended
        return [_together(parts) for parts in self._parts]


def _together(parts: list[Emission]) -> Emission:
    return Emission(
        text="".join(part.text for part in parts),
        tokens=sum(part.tokens for part in parts),
        finish_reason=parts[-1].finish_reason,
        ids=tuple(token for part in parts for token in part.ids),
        logprobs=tuple(one for part in parts for one in part.logprobs),
    )
