"""Log-probabilities of output and prompt tokens are the model's own, however they were computed."""

from __future__ import annotations

import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import Request, SamplingParams, TokenLogprob
from infx.engine.sampling import logprobs
from infx.engine.weights import target_weights
from tests.engine.driving_engine import TOKENIZER, Driven, prompt
from tests.engine.tiny import BLOCK, TINY, serve_tiny

DRAFTS = {
    "none": {},
    "eagle3": {"method": "eagle3", "k": 3, "acceptance": Acceptance(k=3)},
    "dspark": {"method": "dspark", "k": 5, "acceptance": Acceptance(k=5)},
    "synthetic": {"method": "eagle3", "k": 3, "acceptance": Acceptance("synthetic", 2.5, k=3)},
}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    serve_tiny(monkeypatch)


def tiny(**changes) -> EngineConfig:
    return EngineConfig(**({"model": "tiny", "max_model_len": 120, "block_size": BLOCK} | changes))


def asking(**changes) -> SamplingParams:
    return SamplingParams(**({"max_tokens": 9, "ignore_eos": True, "logprobs": 3} | changes))


@torch.inference_mode()
def truth(tokens: list[int]) -> torch.Tensor:
    """Row i: the log-probabilities of what follows token i."""
    model = ReferenceModel(TINY, target_weights(TINY, "random:0"))
    return model.logits(tokens)[:, : TOKENIZER.size].log_softmax(-1)


def check(found: list[TokenLogprob], request: Request, first: int, count: int) -> None:
    """Compare what stands for the tokens from ``first`` on."""
    expected = truth(request.tokens)
    assert [one.token for one in found] == request.tokens[first : first + len(found)]
    for at, one in enumerate(found, first):
        row = expected[at - 1]
        assert one.logprob == pytest.approx(float(row[one.token]), abs=1e-4)
        values = [value for _, value in one.top[:count]]
        assert values == sorted(values, reverse=True)
        assert values == pytest.approx(row.topk(count).values.tolist(), abs=1e-4)
        assert dict(one.top)[one.token] == one.logprob
        assert len(one.top) in (count, count + 1)


@pytest.mark.parametrize("drafts", DRAFTS)
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_output_tokens(drafts, temperature):
    driven = Driven(tiny(max_num_seqs=3, **DRAFTS[drafts]))
    params = asking(temperature=temperature, seed=4, min_tokens=5)
    requests = [driven.add(prompt(n, 10 + n), params) for n in range(3)]
    silent = driven.add(prompt(0, 10), asking(logprobs=None))
    driven.finish()
    for request in requests:
        check(driven.logprobs[request], request, request.prompt_tokens, 3)
        assert len(driven.logprobs[request]) == request.generated == 9
    assert driven.logprobs[silent] == []


@pytest.mark.parametrize("drafts", ["none", "dspark"])
def test_a_whole_prompt_in_chunks_and_not_from_the_cache(drafts):
    driven = Driven(tiny(max_num_seqs=2, max_num_batched_tokens=13, **DRAFTS[drafts]))
    driven.add(prompt(1, 60))
    driven.finish()
    requests = [driven.add(prompt(1, 60), asking(prompt_logprobs=2)) for _ in range(2)]
    driven.finish()
    for request in requests:
        assert request.cached_tokens == 0
        assert request.prompt_logprobs[0] is None
        assert len(request.prompt_logprobs) == 60
        check(request.prompt_logprobs[1:], request, 1, 2)


def test_they_are_whole_before_the_first_emission():
    driven = Driven(tiny(max_num_batched_tokens=13))
    request = driven.add(prompt(1, 60), asking(prompt_logprobs=0))
    while not request.generated:
        driven.step()
        assert request.generated == 0 or request.unknown_logprobs == 0
    assert request.prompt_logprobs[7].top == (
        (request.tokens[7], request.prompt_logprobs[7].logprob),
    )


def test_no_output_at_all_ends_after_the_prompt():
    driven = Driven(tiny(max_num_seqs=3, max_num_batched_tokens=13, **DRAFTS["eagle3"]))
    request = driven.add(prompt(1, 30), asking(max_tokens=0, prompt_logprobs=1))
    one = driven.add(prompt(2, 1), asking(max_tokens=0, prompt_logprobs=1))
    driven.finish()
    assert (request.generated, request.finish_reason) == (0, "length")
    check(request.prompt_logprobs[1:], request, 1, 1)
    assert (one.prompt_logprobs, one.finish_reason) == ([None], "length")
    assert driven.scheduler.pool.free == driven.config.pages


def test_a_preempted_request_keeps_them_and_its_draws():
    params = asking(max_tokens=30, prompt_logprobs=2, temperature=1.0, seed=3)
    driven = Driven(tiny(max_num_seqs=3, max_model_len=48, num_blocks=14, max_num_batched_tokens=9))
    requests = [driven.add(prompt(n, 16), params) for n in range(3)]
    driven.finish()
    assert driven.scheduler.preemptions > 0
    for number, request in enumerate(requests):
        assert len(request.prompt_logprobs) == 16
        check(request.prompt_logprobs[1:], request, 1, 2)
        check(driven.logprobs[request], request, 16, 3)
        alone = Driven(tiny())
        same = alone.add(prompt(number, 16), params)
        alone.finish()
        assert request.tokens == same.tokens


def test_equal_logits_stand_in_the_order_of_the_greedy_choice():
    (one,) = logprobs(torch.tensor([[0.0, 2.0, 2.0, 1.0]]), [3], 2)
    assert [token for token, _ in one.top] == [1, 2, 3]


def test_a_cut_run_keeps_one_for_each_token():
    driven = Driven(tiny(method="eagle3", k=3, acceptance=Acceptance("synthetic", 4.0, k=3)))
    request = driven.add(prompt(0, 10), asking(max_tokens=7))
    driven.finish()
    assert len(driven.logprobs[request]) == request.generated == 7
