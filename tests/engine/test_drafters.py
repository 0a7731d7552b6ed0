"""What a drafter proposes depends on the tokens alone, however they came into the cache."""

from __future__ import annotations

import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import SamplingParams
from infx.engine.spec.eagle import EagleDraft
from infx.engine.weights import draft_weights, target_weights
from tests.engine.dense_drafts import DenseEagle
from tests.engine.driving_engine import TOKENIZER, Driven, prompt
from tests.engine.tiny import BLOCK, TINY, serve_tiny

METHODS = [("eagle3", 3), ("dspark", 5)]
PARAMS = SamplingParams(max_tokens=10, ignore_eos=True)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    serve_tiny(monkeypatch)


def serving(method: str, k: int, **changes) -> Driven:
    fields = {"model": "tiny", "block_size": BLOCK, "max_model_len": 100, "method": method, "k": k}
    return Driven(EngineConfig(**(fields | {"acceptance": Acceptance(k=k)} | changes)))


def drafts_of(driven: Driven, prompts) -> list[dict[int, tuple[int, ...]]]:
    """For each prompt: the drafts after each of its token counts, all served together."""
    requests = [driven.add(one, PARAMS) for one in prompts]
    seen = [{} for _ in requests]
    while driven.step():
        for request, drafts in zip(requests, seen, strict=True):
            if request.drafts and not request.finish_reason:
                drafts[len(request.tokens)] = tuple(request.drafts)
    return seen


@pytest.fixture(params=METHODS, ids=[method for method, _ in METHODS])
def method(request):
    return request.param


def alone(method, one) -> dict[int, tuple[int, ...]]:
    return drafts_of(serving(*method, max_num_seqs=1, prefix_caching=False), [one])[0]


def test_eagle_drafts_are_those_of_its_formulas():
    method, k = METHODS[0]
    driven = serving(method, k, max_num_batched_tokens=32)
    model = ReferenceModel(TINY, target_weights(TINY, "random:0"))
    dense = DenseEagle(TINY, draft_weights(TINY, method, "random:0"), model.embed)
    for length in (1, 45):
        (drafts,) = drafts_of(driven, [prompt(1, length)])
        request = list(driven.shown)[-1]
        batch = make_batch([Span(request.tokens, 0, range(20))], BLOCK)
        with torch.inference_mode():
            _, aux = model.forward(batch, KvCache.empty(TINY, 20))
        for count, ours in drafts.items():
            known = request.tokens[:count]
            assert list(ours) == dense.choose(aux[: count - 1], known, k, TOKENIZER.size)
        assert len(drafts) > 5


def test_chunks_and_company(method):
    prompts = [prompt(number, 11 + 17 * number) for number in range(4)]
    driven = serving(*method, max_num_seqs=4, max_num_batched_tokens=25)
    assert drafts_of(driven, prompts) == [alone(method, one) for one in prompts]


def test_pages_from_the_cache(method):
    driven = serving(*method)
    drafts_of(driven, [prompt(0, 40)])
    assert drafts_of(driven, [prompt(0, 60)]) == [alone(method, prompt(0, 60))]
    assert driven.scheduler.prefix_hits == 40


def test_a_draft_computes_no_shared_position_again(monkeypatch):
    rows, forward = [], EagleDraft.forward

    def spy(draft, batch, *rest):
        rows.append(batch.rows)
        return forward(draft, batch, *rest)

    monkeypatch.setattr(EagleDraft, "forward", spy)
    driven = serving(*METHODS[0])
    drafts_of(driven, [prompt(0, 40)])
    rows.clear()
    drafts_of(driven, [prompt(0, 60)])
    assert rows[0] == 60 + 1 - 40  # the prompt and the first output token, less the cached pages


def test_pages_that_another_prompt_is_filling(method):
    driven = serving(*method, max_num_seqs=2, max_num_batched_tokens=24)
    expected = alone(method, prompt(0, 70))
    assert drafts_of(driven, [prompt(0, 70)] * 2) == [expected, expected]
    assert driven.scheduler.prefix_hits > 20


def test_preemption(method):
    prompts = [prompt(number, 14) for number in range(3)]
    driven = serving(*method, max_num_seqs=3, max_model_len=40, num_blocks=19)
    found = drafts_of(driven, prompts)
    assert driven.scheduler.preemptions > 0
    expected = [alone(method, one) for one in prompts]
    for ours, theirs in zip(found, expected, strict=True):
        shared = ours.keys() & theirs.keys()
        assert len(shared) > 2
        assert {at: ours[at] for at in shared} == {at: theirs[at] for at in shared}
