"""DSpark's drafts on the paged cache are those of the plain formulas over the whole sequence."""

from __future__ import annotations

import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import Request, SamplingParams
from infx.engine.spec import dspark
from infx.engine.weights import draft_weights, target_weights
from tests.engine.dense_drafts import DenseBlock
from tests.engine.driving_engine import TOKENIZER, Driven, prompt
from tests.engine.tiny import BLOCK, TINY, serve_tiny

WEIGHTS = "random:0"
WINDOW = 21  # odd: its edge falls inside a page


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    serve_tiny(monkeypatch)
    monkeypatch.setattr(dspark, "WINDOW", WINDOW)


class Watched:
    """A dspark engine whose every block is compared with the dense computation."""

    def __init__(self, monkeypatch, window: int = WINDOW, **changes) -> None:
        k = changes.setdefault("k", 7)
        fields = {"model": "tiny", "block_size": BLOCK, "max_model_len": 160, "method": "dspark"}
        self.k = k
        self.driven = Driven(EngineConfig(**(fields | {"acceptance": Acceptance(k=k)} | changes)))
        self.model = ReferenceModel(TINY, target_weights(TINY, WEIGHTS))
        weights = draft_weights(TINY, "dspark", WEIGHTS)
        self.dense = DenseBlock(TINY, weights, self.model.embed)
        self.dense.window = window
        self.logits: list[torch.Tensor] = []
        self.seen: list[tuple[Request, int, list[int], list[torch.Tensor]]] = []
        choose = dspark.DsparkDrafter._choose

        def spy(drafter, before, logits):
            self.logits = list(logits)
            return choose(drafter, before, logits)

        monkeypatch.setattr(dspark.DsparkDrafter, "_choose", spy)

    def finish(self) -> int:
        """Serve to the end and compare; return how many blocks were compared."""
        going = True
        while going:
            before = {request: request.generated for request in self.driven.shown}
            going = self.driven.step()
            for request in self.driven.shown:
                if request.generated > before[request] and request.finish_reason is None:
                    state = (len(request.tokens), request.drafts, self.logits)
                    self.seen.append((request, *state))
        aux = {request: self.aux(request.tokens) for request in self.driven.shown}
        for request, length, drafts, logits in self.seen:
            *_, token = request.tokens[:length]
            expected = self.dense.logits(aux[request][: length - 1], token, self.k)
            ids = TOKENIZER.size
            assert drafts == self.dense.choose(expected, token, ids)
            assert min(float((x - expected[:, :ids]).abs().max()) for x in logits) < 1e-3
        return len(self.seen)

    @torch.inference_mode()
    def aux(self, tokens: list[int]) -> torch.Tensor:
        """The target's tapped states over the whole sequence in one pass."""
        pages = range(-(-len(tokens) // BLOCK))
        cache = KvCache.empty(TINY, len(pages))
        return self.model.forward(make_batch([Span(tokens, 0, pages)], BLOCK), cache)[1]


def params(count: int) -> SamplingParams:
    return SamplingParams(max_tokens=count, ignore_eos=True)


def test_one_request_from_one_token_on(monkeypatch):
    watched = Watched(monkeypatch)
    watched.driven.add(prompt(0, 1), params(30))
    assert watched.finish() >= 20
    assert watched.driven.emitted_by_verify < 2 * watched.driven.verify_steps  # drafts are rejected


def test_several_requests_in_chunks_with_pads(monkeypatch):
    watched = Watched(
        monkeypatch, k=3, max_num_seqs=4, max_num_batched_tokens=19, capture_sizes=(6, 16)
    )
    for number, length in enumerate((50, 3, 24, 7)):
        watched.driven.add(prompt(number, length), params(8))
    assert watched.finish() >= 20


def test_a_shared_prefix_brings_its_context(monkeypatch):
    watched = Watched(monkeypatch)
    for length in (40, 60):
        request = watched.driven.add(prompt(5, 60)[:length], params(6))
        assert watched.finish() >= 4
    assert request.cached_tokens == 40


def test_a_preempted_request_drafts_the_same(monkeypatch):
    watched = Watched(
        monkeypatch, k=2, max_num_seqs=3, max_model_len=48, num_blocks=20, prefix_caching=False
    )
    for number in range(3):
        watched.driven.add(prompt(number, 14), params(20))
    assert watched.finish() >= 30
    assert watched.driven.scheduler.preemptions > 0


def test_accepted_drafts_move_the_block(monkeypatch):
    watched = Watched(monkeypatch, k=7, acceptance=Acceptance("synthetic", 5.5, k=7))
    watched.driven.add(prompt(0, 9), params(50))
    assert watched.finish() >= 8
    assert watched.driven.emitted_by_verify / watched.driven.verify_steps > 4


@pytest.mark.slow
def test_the_window_is_1024(monkeypatch):
    monkeypatch.undo()
    serve_tiny(monkeypatch)
    watched = Watched(monkeypatch, window=1024, max_model_len=1100, max_num_batched_tokens=300)
    watched.driven.add(prompt(0, 1050), params(4))
    assert watched.finish() == 3
