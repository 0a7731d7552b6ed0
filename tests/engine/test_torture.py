"""Random requests, aborts and limits: each output is that of the request alone, no page is lost."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.engine import config as shapes
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import Request, SamplingParams
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
from tests.engine.driving_engine import Driven, prompt

CONTEXT, BLOCK = 72, 4
TINY = mini(
    hidden_size=32, num_layers=3, heads=4, head_dim=8, rotary_dim=4, block_size=BLOCK,
    topk_blocks=3, experts=6, experts_per_token=2, expert_size=12, shared_size=8, dense_size=20,
    max_positions=128, aux_layers=(0, 1, 2),
)  # fmt: skip
# Two logits nearer than this may change places when rows are batched in another way.
TIE = 1e-4
# Random weights never write the special tokens; these printable ones end an output instead.
ENDS = frozenset(b"aeio")


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(shapes.MODELS, "mini", lambda: TINY)


def random_config(rng: random.Random, k: int) -> EngineConfig:
    """Limits from just enough to roomy; every draft count ``k`` is verified for real."""
    seats = rng.randint(1, 6)
    rows = seats * (k + 1)
    config = EngineConfig(
        max_num_seqs=seats,
        max_num_batched_tokens=rows + rng.choice((0, 1, 7, 40)),
        max_model_len=CONTEXT,
        block_size=BLOCK,
        capture_sizes=tuple(sorted(rng.sample(range(1, rows + 1), min(3, rows)))),
        prefix_caching=rng.random() < 0.8,
        method="eagle3" if k else "none",
        k=k,
        acceptance=Acceptance(k=k),
    )
    return replace(config, num_blocks=config.pages_per_request + rng.randint(0, 30))


def random_request(rng: random.Random) -> tuple[tuple[int, ...], SamplingParams]:
    """A prompt of one of three families that share prefixes, and any way to end."""
    length = rng.randint(1, 50)
    most = rng.randint(1, min(CONTEXT - length, 20))
    params = SamplingParams(
        max_tokens=most,
        min_tokens=rng.choice((0, 0, rng.randint(0, most))),
        ignore_eos=rng.random() < 0.3,
        stop=rng.choice(((), (), (chr(rng.randint(32, 126)),))),
        temperature=rng.choice((0.0, 0.0, 0.0, 1.0)),
        seed=rng.randint(0, 3),
    )
    return prompt(rng.randrange(3), 50)[:length], params


class Alone:
    """Outputs of requests served one at a time, without drafts, prefix cache or padding."""

    def __init__(self) -> None:
        self.config = EngineConfig(
            max_num_seqs=1, max_model_len=CONTEXT, block_size=BLOCK, prefix_caching=False
        )
        self.driven = Driven(self.config)
        self.model = ReferenceModel(TINY, target_weights(TINY, 0))
        self.output = functools.cache(self._output)

    def _output(self, tokens, params) -> tuple[list[int], str, str | None]:
        request = self.driven.add(tokens, params)
        request.eos = ENDS
        self.driven.finish()
        return request.tokens, self.driven.shown[request], request.finish_reason

    @torch.inference_mode()
    def tied(self, tokens: list[int], one: int, two: int) -> bool:
        """True when the model is in two minds whether ``one`` or ``two`` follows ``tokens``."""
        pages = self.config.pages
        batch = make_batch([Span(tokens, 0, range(pages))], BLOCK)
        hidden, _ = self.model.forward(batch, KvCache.empty(TINY, pages))
        logits = self.model.logits(hidden[-1:])[0]
        return abs(float(logits[one] - logits[two])) < TIE

    def agrees(self, request: Request, shown: str) -> bool:
        """True when the request, or its first difference is a tie."""
        prompt_tokens = tuple(request.tokens[: request.prompt_tokens])
        tokens, text, reason = self.output(prompt_tokens, request.params)
        if request.tokens == tokens:
            return (shown, request.finish_reason) == (text, reason)
        pairs = enumerate(zip(request.tokens, tokens, strict=False))
        at = next((at for at, (ours, theirs) in pairs if ours != theirs), None)
        if at is None or request.params.temperature:
            return False
        return self.tied(tokens[:at], request.tokens[at], tokens[at])


def serve_episode(rng: random.Random, k: int, count: int) -> tuple[Driven, list[Request]]:
    """Serve ``count`` random requests that come in bursts, some of them leaving at any moment."""
    driven, taken = Driven(random_config(rng, k)), []

    def leave() -> None:
        if taken and rng.random() < 0.05:
            request = rng.choice(taken)
            request.aborted = request.finish_reason is None

    going = True
    while len(taken) < count or going:
        for _ in range(rng.choice((0, 0, 0, 1, 4)) if len(taken) < count else 0):
            tokens, params = random_request(rng)
            taken.append(driven.add(tokens, params))
            taken[-1].eos = ENDS
        leave()
        going = driven.step(leave)
        assert len(driven.scheduler.running) <= driven.config.max_num_seqs
    return driven, taken


def torture(seed: int, episodes: int, count: int) -> dict[str, int]:
    """Serve and compare; return how often each thing happened."""
    rng, alone, seen = random.Random(seed), Alone(), dict.fromkeys(("preempted", "hits", "left"), 0)
    for episode in range(episodes):
        driven, taken = serve_episode(rng, (0, 1, 3, 8)[episode % 4], count)
        assert driven.scheduler.pool.free == driven.config.pages
        for request in taken:
            assert request.aborted or request.finish_reason
            assert request.aborted or alone.agrees(request, driven.shown[request]), request
        seen["preempted"] += driven.scheduler.preemptions
        seen["hits"] += driven.scheduler.prefix_hits
        seen["left"] += sum(request.aborted for request in taken)
    return seen


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("episodes", "count"),
    [
        pytest.param(4, 20, marks=pytest.mark.slow, id="short"),
        pytest.param(40, 50, marks=pytest.mark.proof, id="2000-requests"),
    ],
)
def test_no_history_changes_an_output_or_loses_a_page(episodes, count):
    seen = torture(episodes, episodes, count)
    assert all(seen.values()), seen
