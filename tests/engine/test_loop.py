"""The step loop between server and scheduler, with dice in the place of the model."""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import replace

import pytest

from infx.domain.errors import EngineError
from infx.engine.arguments import Address
from infx.engine.loop import Engine, RequestRefusedError
from infx.engine.request import Emission, SamplingParams
from infx.engine.server.app import serve
from tests.engine.driving_engine import Dice, prompt, small

PARAMS = SamplingParams(max_tokens=20, ignore_eos=True)


class Gated(Dice):
    """Waits at every step until it may go on."""

    def __init__(self) -> None:
        super().__init__(seed=0, k=0)
        self.gate, self.at_gate = threading.Semaphore(0), threading.Semaphore(0)

    def run(self, step):
        self.at_gate.release()
        assert self.gate.acquire(timeout=30)
        return super().run(step)

    def width(self, step):
        return sum(len(work.tokens) for work in step.work)


class Agreeing(Gated):
    """Every draft of the three is right."""

    def __init__(self) -> None:
        super().__init__()
        self.k = 3

    def run(self, step):
        result = super().run(step)
        emitted = [
            [97] * (len(work.tokens) if number < len(step.decodes) else int(work.last))
            for number, work in enumerate(step.work)
        ]
        return replace(result, emitted=emitted)


class Broken(Gated):
    def run(self, step):
        super().run(step)
        raise RuntimeError("no such kernel")


@pytest.fixture
def start(monkeypatch):
    """Start an engine over a runner; it is stopped at the end."""
    engines = []

    def start_engine(runner, **changes):
        monkeypatch.setattr("infx.engine.runner.Runner", lambda *_: runner)
        changed = threading.Event()
        engine = Engine(small(**changes), changed.set)
        engine.start()
        assert changed.wait(30)
        changed.clear()
        engine.changed = changed
        engines.append((engine, runner))
        return engine

    yield start_engine
    for engine, runner in engines:
        runner.gate.release(10_000)
        engine.stop()


def until_done(emissions: queue.Queue) -> list[Emission]:
    seen = []
    while not seen or seen[-1].finish_reason is None:
        seen.append(emissions.get(timeout=30)[1])
    return seen


def submit(engine, count=1, params=PARAMS):
    emissions: queue.Queue = queue.Queue()
    requests = engine.submit([list(prompt(0, 20))] * count, params, lambda *one: emissions.put(one))
    return requests, emissions


def test_a_request_is_served_and_counted(start):
    engine = start(runner := Gated())
    runner.gate.release(1000)
    (request,), emissions = submit(engine)
    seen = until_done(emissions)
    assert sum(emission.tokens for emission in seen) == request.generated == 20
    assert "".join(emission.text for emission in seen) == engine.tokenizer.decode(
        request.tokens[20:]
    )
    metrics = engine.metrics
    assert (metrics.prompt_tokens, metrics.generation_tokens) == (20, 20)
    assert (sum(metrics.ttft.counts), sum(metrics.itl.counts), sum(metrics.e2el.counts)) == (
        1,
        19,
        1,
    )
    assert metrics.finished == {"length": 1}
    engine.check()
    assert engine.idle


def test_the_acceptance_length_is_counted_before_the_cut_at_max_tokens(start):
    engine = start(runner := Agreeing(), method="eagle3", k=3)
    runner.gate.release(1000)
    (request,), emissions = submit(engine, params=SamplingParams(max_tokens=6, ignore_eos=True))
    assert [emission.tokens for emission in until_done(emissions)] == [1, 4, 1]
    assert request.generated == 6
    metrics = engine.metrics
    assert (metrics.spec_verify_steps, metrics.spec_draft_tokens) == (2, 6)
    assert (metrics.spec_accepted_tokens, metrics.acceptance_length) == (6, 4.0)


def test_the_queue_is_bounded_and_takes_all_of_a_call_or_none(start):
    engine = start(runner := Gated(), max_num_seqs=1, queue_limit=2)
    submit(engine)
    assert runner.at_gate.acquire(timeout=30)
    submit(engine)
    with pytest.raises(RequestRefusedError, match="queue holds 2") as refused:
        submit(engine, count=2)
    assert refused.value.code == "queue-full"
    submit(engine)
    assert (engine.metrics.running, engine.metrics.waiting) == (1, 2)


def test_what_could_never_run_is_refused_and_not_queued(start):
    engine = start(Gated(), max_model_len=30)
    with pytest.raises(RequestRefusedError, match="20 prompt and 11 output tokens") as refused:
        submit(engine, params=SamplingParams(max_tokens=11))
    assert refused.value.code == "context-length-exceeded"
    assert engine.idle
    submit(engine, params=SamplingParams(max_tokens=10))


def test_a_request_for_no_token_ends_with_one_empty_emission(start):
    engine = start(runner := Gated())
    runner.gate.release(1000)
    _, emissions = submit(engine, params=SamplingParams(max_tokens=0))
    assert until_done(emissions) == [Emission("", 0, "length")]
    metrics = engine.metrics
    assert (metrics.generation_tokens, sum(metrics.ttft.counts)) == (0, 0)
    assert (metrics.finished, sum(metrics.e2el.counts)) == ({"length": 1}, 1)


def test_an_abort_in_the_middle_of_a_step_frees_the_pages_before_the_next(start):
    engine = start(runner := Gated())
    requests, _ = submit(engine)
    assert runner.at_gate.acquire(timeout=30)
    assert engine.metrics.kv_cache_usage > 0
    engine.abort(requests)
    runner.gate.release(1)
    for _ in range(300):
        if engine.idle:
            break
        threading.Event().wait(0.02)
    engine.check()
    assert engine.idle
    assert engine.metrics.kv_cache_usage == 0
    assert engine.metrics.finished == {"abort": 1}


def test_a_request_that_ends_in_the_step_in_which_it_is_aborted_is_counted_once(start):
    engine = start(runner := Gated())
    requests, emissions = submit(engine, params=SamplingParams(max_tokens=1, ignore_eos=True))
    assert runner.at_gate.acquire(timeout=30)
    engine.abort(requests)
    engine.abort(requests)
    runner.gate.release(1000)
    _, later = submit(engine)
    until_done(later)
    assert emissions.empty()
    assert engine.metrics.finished == {"abort": 1, "length": 1}
    engine.check()


def test_what_still_runs_when_the_loop_is_stopped_ends_by_abort(start):
    engine = start(runner := Gated())
    (gone,), nothing = submit(engine)
    _, emissions = submit(engine)
    assert runner.at_gate.acquire(timeout=30)
    engine.abort([gone])
    stopping = threading.Thread(target=engine.stop)
    stopping.start()
    runner.gate.release(1000)
    stopping.join(30)
    assert until_done(emissions)[-1].finish_reason == "abort"
    assert nothing.empty()
    assert engine.metrics.finished == {"abort": 2}


def test_an_abort_after_the_end_counts_nothing(start):
    engine = start(runner := Gated())
    runner.gate.release(1000)
    requests, emissions = submit(engine)
    until_done(emissions)
    engine.abort(requests)
    assert engine.metrics.finished == {"length": 1}


def test_a_server_whose_engine_fails_as_soon_as_it_is_ready_ends(monkeypatch):
    class Dead(Gated):
        def check(self):
            raise EngineError("rank-died", "rank 1 ended")

    monkeypatch.setattr(Engine, "_load", lambda _: Dead())
    # The server looks only when both have happened.
    monkeypatch.setattr(Engine, "_open", lambda self, _: setattr(self, "state", "ready"))

    async def served() -> int:
        async with asyncio.timeout(20):
            return await serve(small(), Address("127.0.0.1", 0))

    with pytest.raises(EngineError, match="rank 1 ended"):
        asyncio.run(served())


def test_an_engine_told_to_drain_while_it_loads_stays_closed(start, monkeypatch):
    def drain_first(self):
        self.drain()
        return Gated()

    monkeypatch.setattr(Engine, "_load", drain_first)
    engine = start(Gated())
    with pytest.raises(RequestRefusedError, match="draining"):
        submit(engine)


def test_draining_refuses_new_requests_and_ends_the_old(start):
    engine = start(runner := Gated())
    _, emissions = submit(engine)
    engine.drain()
    with pytest.raises(RequestRefusedError) as refused:
        submit(engine)
    assert refused.value.code == "draining"
    runner.gate.release(1000)
    assert until_done(emissions)[-1].finish_reason == "length"


def test_a_failed_step_ends_every_request_and_the_engine(start, capsys):
    engine = start(runner := Broken())
    (gone,), _ = submit(engine)
    _, emissions = submit(engine)
    assert runner.at_gate.acquire(timeout=30)
    engine.abort([gone])
    runner.gate.release()
    assert until_done(emissions)[-1].finish_reason == "error"
    assert engine.metrics.finished == {"error": 1, "abort": 1}
    assert engine.changed.wait(30)
    with pytest.raises(RequestRefusedError, match="no such kernel") as refused:
        submit(engine)
    assert refused.value.code == "engine-failed"
    assert "RuntimeError" in capsys.readouterr().err
