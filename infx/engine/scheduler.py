"""Which rows a step computes: continuous batching over one paged cache.

Waiting requests are admitted in order of arrival while max-num-seqs and the pages allow. Each step
holds every decoding request's rows, so no prefill holds a decode back by more than one step, then
prefill chunks in the rest of max-num-batched-tokens: half of it for the oldest prompt, the other
half for the shortest first. So beside one long prompt a short one takes at most twice the steps
that it takes alone, and the long one, whatever comes after it, too (`shares`). When pages run out,
the request admitted last gives its own back and is computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from infx.engine.cache import PagePool, chain
from infx.engine.config import EngineConfig
from infx.engine.request import Emission, Request, TokenLogprob

__all__ = ["Result", "Scheduler", "Step", "Work", "shares"]


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
    """What a step gave each of its works: emitted tokens (maybe none), and the next drafts.

    ``logprobs`` of the emitted tokens and ``prompt_logprobs`` of the next unknown prompt tokens
    stand by the number of the work, where they were asked for. ``sampled_s`` is time.monotonic()
    when the sampler returned.
    """

    emitted: Sequence[list[int]]
    drafts: Sequence[list[int]]
    logprobs: Mapping[int, list[TokenLogprob]] = field(default_factory=dict)
    prompt_logprobs: Mapping[int, list[TokenLogprob]] = field(default_factory=dict)
    sampled_s: float = 0.0


def shares(needs: Sequence[int], budget: int) -> list[int]:
    """Return the rows of each prompt, oldest first, that still needs ``needs`` rows.

    The oldest gets half of ``budget`` if it can use it; what is left goes to the shortest first.
    """
    given = [0] * len(needs)
    shortest_first = sorted(range(len(needs)), key=needs.__getitem__)
    half = [(number, (budget + 1) // 2) for number in range(len(needs))[:1]]
    for number, most in [*half, *((number, budget) for number in shortest_first)]:
        given[number] += min(needs[number] - given[number], most, budget - sum(given))
    return given


@dataclass(slots=True)
class Scheduler:
    """Waiting and running requests, and the pages that they hold."""

    config: EngineConfig
    pool: PagePool = field(init=False)
    _context: int = field(init=False)
    waiting: deque[Request] = field(init=False, default_factory=deque)
    running: list[Request] = field(init=False, default_factory=list)
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0

    def __post_init__(self) -> None:
        self.pool = PagePool(self.config.pages)
        self._context = self.config.context

    def add(self, request: Request) -> None:
        """Put ``request`` at the end of the queue. Raises ValueError when it could never run."""
        if not self.fits(len(request.tokens) + request.params.max_tokens):
            raise ValueError(f"a request of {len(request.tokens)} tokens does not fit the cache")
        self.waiting.append(request)

    def fits(self, tokens: int) -> bool:
        """Return whether a request of ``tokens``, prompt and output, can run when alone."""
        within = tokens <= self._context
        return within and self._pages_for(tokens + self.config.slack) <= self.pool.pages

    def schedule(self) -> Step | None:
        """Return the next step, or None when there is nothing to compute."""
        self._drop_aborted()
        decodes = tuple(self._decodes())
        budget = self.config.max_num_batched_tokens - sum(len(work.tokens) for work in decodes)
        prefills = tuple(self._prefills(budget))
        return Step(decodes, prefills) if decodes or prefills else None

    def commit(self, step: Step, result: Result) -> list[tuple[Request, Emission]]:
        """Give the step's requests what it computed; finished ones leave.

        Return what each request that was not aborted has to show, in the order of ``step.work``.
        """
        shown = []
        for number, work in enumerate(step.work):
            if not work.request.aborted:
                shown.append((work.request, _accept(work.request, number, result)))
            self._advance(work, result, number, decode=number < len(step.decodes))
        return [(request, one) for request, one in shown if one.tokens or one.finish_reason]

    def _advance(self, work: Work, result: Result, number: int, *, decode: bool) -> None:
        request = work.request
        reached = work.start + (len(result.emitted[number]) if decode else len(work.tokens))
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
        self.running.remove(request)
        self._forget(request)
        request.preempted = True
        self.preemptions += 1
        self.waiting.appendleft(request)

    def _prefills(self, budget: int) -> Iterator[Work]:
        self._admit_waiting()
        going = [request for request in self.running if not request.decoding]
        for request in going:
            self._count_hit(request, self._share(request))
        needs = [len(request.tokens) - request.computed for request in going]
        for request, rows in zip(going, shares(needs, budget), strict=True):
            if rows:
                start, end = request.computed, request.computed + rows
                tokens = request.tokens[start:end]
                yield Work(request, start, tokens, last=end == len(request.tokens))

    def _admit_waiting(self) -> None:
        while self.waiting and len(self.running) < self.config.max_num_seqs:
            if not self._admit(self.waiting[0]):
                return
            self.running.append(self.waiting.popleft())

    def _admit(self, request: Request) -> bool:
        """Give the request pages for its whole prompt, cached ones first; False when too few."""
        found = self._share(request)
        wanted = self._pages_for(len(request.tokens) + self.config.k + 1) - len(request.pages)
        if wanted > self.pool.free:
            self._forget(request)
            return False
        request.pages += self.pool.take(wanted)
        if not request.preempted:
            self.prefix_queries += len(request.tokens)
        self._count_hit(request, found)
        return True

    def _share(self, request: Request) -> int:
        """Go on with cached pages where the request stands at a page's begin; return their tokens.

        What others have published since it was admitted takes the place of its own empty pages.
        """
        at, within = divmod(request.computed, self.config.block_size)
        if within:
            return 0
        shared = self.pool.share(self._known_hashes(request)[at:])
        if not shared:
            return 0
        reached = at + len(shared)
        self.pool.release(request.pages[at:reached])
        request.pages[at:reached] = shared
        request.computed = request.drafted = reached * self.config.block_size
        request.published = reached
        return len(shared) * self.config.block_size

    def _count_hit(self, request: Request, tokens: int) -> None:
        if not request.preempted:
            request.cached_tokens += tokens
            self.prefix_hits += tokens

    def _forget(self, request: Request) -> None:
        """Give back all pages of a request that is not running, and what it knows of them."""
        self.pool.release(request.pages)
        request.pages, request.drafts, request.decoding = [], [], False
        request.computed = request.drafted = request.published = 0

    def _known_hashes(self, request: Request) -> list[bytes]:
        """Return the hashes of full pages that may be shared: the last token is always computed."""
        if not self.config.prefix_caching or request.unknown_logprobs:
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


def _accept(request: Request, number: int, result: Result) -> Emission:
    request.prompt_logprobs += result.prompt_logprobs.get(number, ())
    logprobs = result.logprobs.get(number, ())
    return request.accept(result.emitted[number], logprobs, result.sampled_s)
