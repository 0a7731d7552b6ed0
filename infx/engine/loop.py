"""The step loop: a thread that schedules, computes and hands out tokens.

Torch runs in this thread alone, so the server keeps answering during long steps. The scheduler is
shared with the server's thread under one lock, which is never held while a step is computed.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from infx.domain.errors import InfxError
from infx.engine.config import EngineConfig
from infx.engine.detokenizer import TextStream
from infx.engine.memory import refuse_too_large
from infx.engine.metrics import Metrics
from infx.engine.null import NullRunner
from infx.engine.request import Emission, FinishReason, Request, SamplingParams
from infx.engine.scheduler import Result, Scheduler, Step
from infx.engine.shapes import NULL
from infx.engine.tokenizer import ChatTokenizer

if TYPE_CHECKING:
    from infx.engine.mono.refusal import Refusal
    from infx.engine.runner import Runner

__all__ = ["Engine", "RequestRefusedError"]

# A rank that dies while nothing is computed is noticed within this time.
IDLE_CHECK_S = 1.0


class RequestRefusedError(InfxError):
    """A request that the engine does not take; the code says why."""


class Engine:
    """The engine behind the server: `submit`, `abort`, and the figures in `metrics`.

    ``state`` goes loading → ready → draining; ``failed`` holds the error when loading or a step
    failed, after which nothing more is served. Once loaded, ``pids`` are the processes that
    compute, rank by rank, ``layers`` what computes the target's layers, and ``refusal`` why mono
    serves no step though it was asked for. Raises RefusalError when the cache does not fit.
    """

    def __init__(self, config: EngineConfig, on_change: Callable[[], None] = lambda: None) -> None:
        if config.model != NULL:
            refuse_too_large(config)
        self.config, self.metrics, self.tokenizer = config, Metrics(), ChatTokenizer()
        self.state, self.failed = "loading", None  # type: str, BaseException | None
        self._scheduler = Scheduler(config)
        self.pids: tuple[int, ...] = ()
        self.layers = ""
        self.refusal: Refusal | None = None
        self._arrivals = 0
        self._on_change = on_change
        self._stopping = False
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="engine-steps", daemon=True)

    def start(self) -> None:
        """Load the model and begin to step, in the engine's own thread."""
        self._thread.start()

    def drain(self) -> None:
        """Refuse new requests from now on; those taken go on."""
        with self._wake:
            self.state = "draining"

    def stop(self) -> None:
        """End the loop after the step it is in, and wait for it; who still runs ends by abort."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    @property
    def idle(self) -> bool:
        """True when no request waits or runs."""
        return not self._scheduler.waiting and not self._scheduler.running

    def submit(
        self, prompts: Sequence[list[int]], params: SamplingParams, deliver: Callable[..., None]
    ) -> list[Request]:
        """Queue one request a prompt, all or none; ``deliver(index, emission)`` from the thread.

        Raises RequestRefusedError: ``queue-full``, ``draining``, ``loading``, ``engine-failed``,
        ``context-length-exceeded``.
        """
        self._refuse_too_long(max(map(len, prompts), default=0), params.max_tokens)
        with self._wake:
            self._refuse_now(len(prompts))
            requests = [
                self._request(index, prompt, params, deliver)
                for index, prompt in enumerate(prompts)
            ]
            for request in requests:
                self._scheduler.add(request)
            self._gauges()
            self._wake.notify()
        return requests

    def abort(self, requests: Sequence[Request]) -> None:
        """Drop requests whose client is gone; their pages are free before the next step.

        Those that have ended by themselves stay as they are.
        """
        with self._wake:
            for request in requests:
                if request.finish_reason is None and not request.aborted:
                    request.aborted = True
                    self.metrics.finished["abort"] += 1
            self._wake.notify()

    def check(self) -> None:
        """Raise AssertionError unless the pages agree with what the requests hold."""
        with self._wake:
            self._scheduler.check()

    def _refuse_now(self, arriving: int) -> None:
        if self.failed is not None:
            raise RequestRefusedError("engine-failed", f"a step failed: {self.failed}")
        if self.state != "ready":
            raise RequestRefusedError(self.state, f"the engine is {self.state}")
        waiting, limit = len(self._scheduler.waiting), self.config.queue_limit
        # A seat that the next step will fill is no place in the queue.
        seats = self.config.max_num_seqs - len(self._scheduler.running)
        if waiting + arriving > limit + seats:
            raise RequestRefusedError(
                "queue-full", f"{waiting} requests wait and the queue holds {limit}"
            )

    def _refuse_too_long(self, prompt: int, output: int) -> None:
        if not self._scheduler.fits(prompt + output):
            raise RequestRefusedError(
                "context-length-exceeded",
                f"{prompt} prompt and {output} output tokens: expected at most"
                f" {self.config.context} together; shorten the prompt or lower max_tokens",
            )

    def _request(
        self, index: int, prompt: list[int], params: SamplingParams, deliver: Callable[..., None]
    ) -> Request:
        self._arrivals += 1
        self.metrics.prompt_tokens += len(prompt)
        return Request(
            number=self._arrivals - 1,
            tokens=list(prompt),
            params=params,
            text=TextStream(self.tokenizer.token_bytes, params.stop),
            eos=self.tokenizer.eos,
            deliver=lambda emission: deliver(index, emission),
            arrived_s=time.monotonic(),
        )

    def _serve(self) -> None:
        try:
            with closing(self._load()) as runner:
                self._open(runner)
                while (step := self._next(runner)) is not None:
                    self._finish(step, runner.run(step), runner.width(step))
                self._end_all("abort")
        except Exception as error:  # noqa: BLE001 the thread's boundary: nothing above would see it
            self._fail(error)

    def _load(self) -> Runner | NullRunner:
        if self.config.model == NULL:
            return NullRunner(self.config.null_rate)
        import torch

        from infx.engine.runner import Runner

        if self.config.threads:
            torch.set_num_threads(self.config.threads)
        return Runner(self.config, self.tokenizer.size)

    def _open(self, runner: Runner | NullRunner) -> None:
        """Take requests from now on, unless told to drain while loading."""
        with self._wake:
            self.pids, self.layers, self.refusal = tuple(runner.pids), runner.layers, runner.refusal
            self.metrics.mono = runner.coverage
            if self.state == "loading":
                self.state = "ready"
        self._on_change()

    def _next(self, runner: Runner | NullRunner) -> Step | None:
        """Wait for the next step; None when the loop is to end."""
        with self._wake:
            while not self._stopping:
                runner.check()
                step = self._scheduler.schedule()
                self._gauges()
                if step is not None:
                    return step
                self._wake.wait(IDLE_CHECK_S if len(self.pids) > 1 else None)
        return None

    def _finish(self, step: Step, result: Result, width: int) -> None:
        now = time.monotonic()
        with self._wake:
            emissions = self._scheduler.commit(step, result)
            self._count_step(step, result, width)
            self._gauges()
        for request, emission in emissions:
            self._count_emission(request, emission, now)
            request.deliver(emission)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, InfxError):
            traceback.print_exc(file=sys.stderr)
        self.failed = error
        self._end_all("error")
        self._on_change()

    def _end_all(self, reason: FinishReason) -> None:
        with self._wake:
            taken = [*self._scheduler.running, *self._scheduler.waiting]
        for request in [request for request in taken if not request.aborted]:
            request.finish_reason = reason
            self.metrics.finished[reason] += 1
            request.deliver(Emission("", 0, reason))

    def _gauges(self) -> None:
        metrics, scheduler = self.metrics, self._scheduler
        metrics.running, metrics.waiting = len(scheduler.running), len(scheduler.waiting)
        metrics.kv_cache_usage = scheduler.pool.usage
        metrics.preemptions = scheduler.preemptions
        metrics.prefix_cache_queries = scheduler.prefix_queries
        metrics.prefix_cache_hits = scheduler.prefix_hits

    def _count_step(self, step: Step, result: Result, width: int) -> None:
        metrics = self.metrics
        if step.prefills:
            metrics.prefill_steps += 1
        else:
            metrics.decode_widths[width] += 1
            metrics.decode_rows += width
            metrics.padded_rows += width - sum(len(work.tokens) for work in step.decodes)
        if not self.config.k:
            return
        for work, emitted in zip(step.decodes, result.emitted, strict=False):
            metrics.spec_verify_steps += 1
            metrics.spec_draft_tokens += len(work.tokens) - 1
            metrics.spec_accepted_tokens += len(emitted) - 1

    def _count_emission(self, request: Request, emission: Emission, now: float) -> None:
        metrics = self.metrics
        metrics.generation_tokens += emission.tokens
        if emission.tokens and request.last_token_s is None:
            metrics.ttft.observe(now - request.arrived_s)
        elif emission.tokens and request.last_token_s is not None:
            gap = (now - request.last_token_s) / emission.tokens
            metrics.itl.observe(gap, emission.tokens)
        request.last_token_s = now
        if emission.finish_reason is not None:
            metrics.finished[emission.finish_reason] += 1
            metrics.e2el.observe(now - request.arrived_s)
