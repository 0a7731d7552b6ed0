"""Which rows a step computes: continuous batching over one paged cache.

Each step holds every running request's decode rows first, then prefill chunks while the token
budget lasts; waiting requests are admitted in order of arrival while max-num-seqs and the pages
allow. When pages run out, the request admitted last gives its own back and is computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from infx.engine.cache import PagePool, chain
from infx.engine.config import EngineConfig
from infx.engine.request import Request

__all__ = ["Result", "Scheduler", "Step", "Work"]


@dataclass(frozen=True, slots=True)
class Work:
    """Rows of one request in a step: ``tokens`` from position ``start``.

    ``last`` is true when the step chooses a token after them (always in decode, in prefill for the
    prompt's last chunk).
    """

    request: Request
    start: int
    tokens: Sequence[int]
    last: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One step: verify rows of decoding requests, and prefill chunks."""

    decodes: tuple[Work, ...]
    prefills: tuple[Work, ...]

    @property
    def work(self) -> tuple[Work, ...]:
        """All of it, decodes first."""
        return self.decodes + self.prefills


@dataclass(frozen=True, slots=True)
class Result:
    """What a step gave each of its works: emitted tokens (maybe none), and the next drafts."""

    emitted: Sequence[list[int]]
    drafts: Sequence[list[int]]


@dataclass(slots=True)
class Scheduler:
    """Waiting and running requests, and the pages that they hold."""

    config: EngineConfig
    pool: PagePool = field(init=False)
    waiting: deque[Request] = field(init=False, default_factory=deque)
    running: list[Request] = field(init=False, default_factory=list)
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0

    def __post_init__(self) -> None:
        self.pool = PagePool(self.config.pages)

    def add(self, request: Request) -> None:
        """Put ``request`` at the end of the queue."""
        self.waiting.append(request)

    def schedule(self) -> Step | None:
        """Return the next step, or None when there is nothing to compute."""
        self._drop_aborted()
        decodes = tuple(self._decodes())
        budget = self.config.max_num_batched_tokens - sum(len(work.tokens) for work in decodes)
        prefills = tuple(self._prefills(budget))
        return Step(decodes, prefills) if decodes or prefills else None

    def commit(self, step: Step, result: Result) -> None:
        """Move the step's requests forward by what it computed; finished ones leave.

        Emitted tokens have been appended to the requests by `Request.accept` before.
        """
        for number, work in enumerate(step.work):
            request, emitted = work.request, result.emitted[number]
            decode = number < len(step.decodes)
            reached = work.start + (len(emitted) if decode else len(work.tokens))
            request.computed = min(reached, len(request.tokens))
            request.drafted = request.computed + 1
            request.drafts = result.drafts[number]
            request.decoding = request.decoding or work.last
            self._publish(request)
            if request.finish_reason is not None:
                self._leave(request)

    def check(self) -> None:
        """Raise AssertionError unless the pages agree with what the running requests hold."""
        self.pool.check(request.pages for request in self.running)

    def _drop_aborted(self) -> None:
        self.waiting = deque(request for request in self.waiting if not request.aborted)
        for request in [request for request in self.running if request.aborted]:
            self._leave(request)

    def _decodes(self) -> Iterator[Work]:
        for request in list(self.running):
            if not request.decoding or request not in self.running:
                continue
            if self._make_room(request):
                yield Work(request, request.computed, [request.tokens[-1], *request.drafts], True)

    def _make_room(self, request: Request) -> bool:
        """Give a decoding request its next pages; False when it had to be preempted for them."""
        wanted = self._pages_for(request.computed + self.config.slack) - len(request.pages)
        while wanted > self.pool.free:
            victim = self.running[-1]
            self._preempt(victim)
            if victim is request:
                return False
        request.pages += self.pool.take(max(wanted, 0))
        return True

    def _preempt(self, request: Request) -> None:
        self._leave(request)
        request.computed = request.drafted = request.published = 0
        request.drafts, request.decoding, request.preempted = [], False, True
        self.preemptions += 1
        self.waiting.appendleft(request)

    def _prefills(self, budget: int) -> Iterator[Work]:
        for request in self._prefilling():
            if budget <= 0:
                return
            start = request.computed
            tokens = request.tokens[start : start + budget]
            budget -= len(tokens)
            yield Work(request, start, tokens, start + len(tokens) == len(request.tokens))

    def _prefilling(self) -> Iterator[Request]:
        yield from [request for request in self.running if not request.decoding]
        while self.waiting and len(self.running) < self.config.max_num_seqs:
            if not self._admit(self.waiting[0]):
                return
            self.running.append(self.waiting.popleft())
            yield self.running[-1]

    def _admit(self, request: Request) -> bool:
        """Give the request pages for its whole prompt, cached ones first; False when too few."""
        shared = self.pool.share(self._known_hashes(request))
        wanted = self._pages_for(len(request.tokens) + self.config.k + 1) - len(shared)
        if wanted > self.pool.free:
            self.pool.release(shared)
            return False
        request.pages = shared + self.pool.take(wanted)
        request.computed = request.drafted = len(shared) * self.config.block_size
        request.published = len(shared)
        if not request.preempted:
            request.cached_tokens = request.computed
            self.prefix_queries += len(request.tokens)
            self.prefix_hits += request.computed
        return True

    def _known_hashes(self, request: Request) -> list[bytes]:
        """Return the hashes of full pages that may be shared: the last token is always computed."""
        if not self.config.prefix_caching:
            return []
        full = (len(request.tokens) - 1) // self.config.block_size
        self._hash(request, full)
        return request.hashes[:full]

    def _publish(self, request: Request) -> None:
        if not self.config.prefix_caching:
            return
        full = request.computed // self.config.block_size
        self._hash(request, full)
        for number in range(request.published, full):
            self.pool.publish(request.pages[number], request.hashes[number])
        request.published = full

    def _hash(self, request: Request, full: int) -> None:
        block = self.config.block_size
        for number in range(len(request.hashes), full):
            before = request.hashes[-1] if request.hashes else b""
            page = request.tokens[number * block : (number + 1) * block]
            request.hashes.append(chain(before, page))

    def _leave(self, request: Request) -> None:
        self.running.remove(request)
        self.pool.release(request.pages)
        request.pages = []

    def _pages_for(self, tokens: int) -> int:
        return -(-tokens // self.config.block_size)
