"""Tensor parallelism with real processes: the same output as one rank, and how ranks end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.engine.batch import Span, make_batch
from infx.engine.config import EngineConfig
from infx.engine.loop import Engine
from infx.engine.model.reference import ReferenceModel
from infx.engine.ranks.target import load_target
from infx.engine.request import SamplingParams
from infx.engine.runner import Runner
from infx.engine.scheduler import Result, Step
from infx.engine.weights import target_weights
from tests.engine.driving_engine import TOKENIZER, Driven, prompt, small
from tests.engine.running_engine import Running, end, running
from tests.engine.threaded_ranks import threaded_streams

pytestmark = pytest.mark.slow

# Logits that differ by less are equal, given the largest logit of the row.
TOLERANCE = 1e-4
TEN = SamplingParams(max_tokens=10, ignore_eos=True)
EAGLE = ("--speculative-method", "eagle3", "--num-speculative-tokens", "3")


def alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def gone(pids: Sequence[int], limit_s: float = 5) -> bool:
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not any(map(alive, pids)), limit_s)
    return not any(map(alive, pids))


def wait_until(condition: Callable[[], object], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("ranks", [2, 4])
def test_logits_are_those_of_one_rank_and_sums_are_in_rank_order_to_the_bit(ranks):
    config = small(tp=ranks, threads=1)
    pages, tokens = list(range(8)), prompt(3, 90)
    batches = [make_batch([Span(tokens, 0, pages)], 16), make_batch([Span([66], 90, pages)], 16)]
    with contextlib.closing(load_target(config)) as target, torch.inference_mode():
        pids = target.pids
        assert (pids[0], len(set(pids))) == (os.getpid(), ranks)
        streams = [target.forward(batch, prefill=True)[0] for batch in batches]
        logits = target.head(torch.cat(streams))
    assert gone(pids[1:], limit_s=0)
    in_order = threaded_streams(config, batches, range(ranks))[0]
    assert all(map(torch.equal, streams, in_order))
    if ranks > 2:  # a + b is b + a
        backwards = threaded_streams(config, batches, range(ranks)[::-1])[0]
        assert not all(map(torch.equal, streams, backwards))
    alone = ReferenceModel(config.shape, target_weights(config.shape, config.weights))
    expected = alone.logits([*tokens, 66])
    assert (logits - expected).abs().max() < TOLERANCE * expected.abs().max()


@dataclass
class Noted:
    """A runner; notes how many tokens each request emits, step for step."""

    runner: Runner
    emitted: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def run(self, step: Step) -> Result:
        result = self.runner.run(step)
        for work, tokens in zip(step.work, result.emitted, strict=True):
            self.emitted[work.request.number].append(len(tokens))
        return result


def forty_prompts() -> list[tuple[int, ...]]:
    """Prompts of which every eighth begins with the same 48 tokens: three pages."""
    return [prompt(n % 8, 48) + prompt(100 + n, 5 + n) for n in range(40)]


def served(config: EngineConfig) -> tuple[list[list[int]], dict[int, list[int]], int]:
    """Return the forty outputs, the emissions, and how many tokens were found in the cache."""
    with contextlib.closing(Runner(config, TOKENIZER.size)) as runner:
        noted = Noted(runner)
        driven = Driven(config, noted)
        requests = [driven.add(one, TEN) for one in forty_prompts()]
        driven.finish()
    texts = [request.tokens[request.prompt_tokens :] for request in requests]
    return texts, dict(noted.emitted), driven.scheduler.prefix_hits


def gap(config: EngineConfig, tokens: list[int]) -> float:
    """Return the distance of the two likeliest next tokens, as a share of the largest logit."""
    alone = ReferenceModel(config.shape, target_weights(config.shape, config.weights))
    row = alone.logits(tokens)[-1, : TOKENIZER.size]
    first, second = row.topk(2).values.tolist()
    return (first - second) / float(row.abs().max())


SYNTHETIC = {"acceptance": Acceptance("synthetic", 2.5, k=3), "acceptance_seed": 7}


@pytest.mark.parametrize(
    ("ranks", "settings"),
    [
        (2, {"method": "dspark", "k": 5, "max_num_batched_tokens": 128}),
        (2, {"method": "eagle3", "k": 3, "prefix_caching": False, **SYNTHETIC}),
        (4, {"method": "eagle3", "k": 3, "max_num_batched_tokens": 96}),
    ],
    ids=["dspark-2", "synthetic-2", "eagle3-4"],
)
def test_forty_greedy_texts_are_those_of_one_rank(ranks, settings):
    sizes = {"max_num_seqs": 20, "threads": 1, "max_num_batched_tokens": 256}
    config = small(**(sizes | settings))
    expected, emitted, hits = served(config)
    texts, emitted_by_ranks, hits_by_ranks = served(small(**(sizes | settings), tp=ranks))
    ties = []
    for number, (one, other) in enumerate(zip(expected, texts, strict=True)):
        if one == other:
            continue
        at = next(n for n, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        distance = gap(config, [*forty_prompts()[number], *one[:at]])
        ties.append(f"prompt {number}, token {at}: the two likeliest are {distance:.1e} apart")
        assert distance < TOLERANCE, ties[-1]
    print("\n".join(ties) or "no near-ties")
    if not ties:
        assert emitted_by_ranks == emitted
        assert hits_by_ranks == hits
        assert (hits > 0) == config.prefix_caching


def request(server: Running, **more) -> tuple[int, bytes]:
    """Return status and whole body of a completion, however its connection ends."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    body = {"prompt": "one two three", "max_tokens": 900, "ignore_eos": True} | more
    connection.request("POST", "/v1/completions", json.dumps(body))
    answer = connection.getresponse()
    try:
        return answer.status, answer.read()
    except http.client.IncompleteRead as error:
        return answer.status, error.partial


@contextlib.contextmanager
def two_requests(server: Running) -> Iterator[list[tuple[int, bytes]]]:
    """One whole and one streamed request run during the block; their answers come after it."""
    answers: list[tuple[int, bytes]] = [(0, b""), (0, b"")]

    def ask(place: int) -> None:
        answers[place] = request(server, stream=bool(place))

    threads = [threading.Thread(target=ask, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    server.until(lambda: server.metric("num_requests_running") == 2)
    yield answers
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def died(server: Running) -> str:
    """Return the line that a server says at its end by `rank-died`, exit code 4."""
    assert server.process.wait(20) == 4
    server.until(lambda: any(line.startswith("rank-died ") for line in server.log), 5)
    return next(line for line in server.log if line.startswith("rank-died "))


def test_a_killed_rank_takes_the_server_down_and_its_requests_with_it():
    with running("--tensor-parallel-size", "4", *EAGLE, "--num-blocks", "256") as server:
        info = server.get("/server_info")
        pids = info["rank_pids"]
        assert (info["config"]["tp"], len(pids), pids[0]) == (4, 4, server.process.pid)
        with two_requests(server) as answers:
            os.kill(pids[2], signal.SIGKILL)
        line = died(server)
        assert f"rank 2 (pid {pids[2]}) was ended by signal 9 (SIGKILL)" in line
        assert gone(pids)
    (status, whole), (_, stream) = answers
    assert status == 500
    assert b"engine_failed" in whole.replace(b"-", b"_")
    assert b"data: " in stream
    assert b'"error"' in stream


def test_a_rank_that_hangs_takes_the_server_down_within_its_limit_even_when_it_drains():
    with running("--tensor-parallel-size", "2", "--rank-limit-s", "2") as server:
        pid = server.get("/server_info")["rank_pids"][1]
        began_s = time.monotonic()
        with two_requests(server) as answers:
            os.kill(pid, signal.SIGSTOP)
            server.process.send_signal(signal.SIGTERM)
        line = died(server)
        assert f"rank 1 (pid {pid}) did not answer within 2 s" in line
        assert time.monotonic() - began_s < 20
        assert gone([pid])
    assert answers[0][0] == 500


def test_a_rank_that_dies_while_nothing_is_computed_is_noticed():
    engine = Engine(small(tp=2, threads=1))
    engine.start()
    try:
        wait_until(lambda: engine.state == "ready")
        os.kill(engine.pids[1], signal.SIGKILL)
        wait_until(lambda: engine.failed is not None, limit_s=5)
        assert engine.failed.code == "rank-died"
        assert f"rank 1 (pid {engine.pids[1]}) was ended by signal 9" in str(engine.failed)
    finally:
        engine.stop()


def test_signals_are_for_rank_0_which_drains_and_leaves_no_rank():
    with running("--tensor-parallel-size", "2") as server:
        pids = server.get("/server_info")["rank_pids"]
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pids[1], number)
        assert request(server, max_tokens=3)[0] == 200
        assert end(server) == 0
        assert gone(pids, limit_s=0.5)


def test_rank_0_killed_leaves_no_rank():
    with running("--tensor-parallel-size", "2") as server:
        pids = server.get("/server_info")["rank_pids"]
        server.process.kill()
        assert gone(pids)


@contextlib.contextmanager
def starting() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that has just started its other rank; that one's pid."""
    command = [sys.executable, "-m", "infx.engine", "--port", "0", "--tensor-parallel-size", "2"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=root) as process:
        seen = psutil.Process(process.pid)
        try:
            wait_until(lambda: process.poll() is not None or seen.children())
            (rank,) = seen.children()
            yield process, rank.pid
        finally:
            process.kill()


def test_a_rank_that_does_not_start_takes_the_server_down():
    with starting() as (process, rank):
        os.kill(rank, signal.SIGKILL)
        log = process.communicate(timeout=60)[1]
        assert process.returncode == 4
        assert f"rank 1 (pid {rank}) was ended by signal 9" in log


def test_rank_0_killed_while_it_starts_leaves_no_rank():
    with starting() as (process, rank):
        process.kill()
        assert gone([rank])
