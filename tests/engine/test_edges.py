"""Ends of every range, together with drafts: sampling, seeds, context, stops, broken numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.domain.codes import CODES
from infx.domain.errors import EngineError, UsageError
from infx.engine.config import EngineConfig
from infx.engine.detokenizer import TextStream
from infx.engine.request import Request, SamplingParams
from infx.engine.sampling import Draw, sample
from infx.engine.shapes import MODELS, mini
from infx.engine.weights.public_config import public_config
from tests.engine.driving_engine import TOKENIZER, Driven, outputs, prompt
from tests.engine.tiny import BLOCK, TINY, serve_tiny

CONTEXT = 40
DRAFTS = {
    "eagle3": {"method": "eagle3", "k": 3, "acceptance": Acceptance(k=3)},
    "dspark": {"method": "dspark", "k": 7, "acceptance": Acceptance(k=7)},
}
SAMPLED = SamplingParams(max_tokens=10, temperature=1.0, seed=5, ignore_eos=True)
EDGES = {
    "only the best": {"top_k": 1},
    "two": {"top_k": 2},
    "more than there are": {"top_k": 2**62},
    "no mass": {"top_p": 0.0},
    "hardly any mass": {"top_p": 1e-300},
    "both": {"top_k": 5, "top_p": 0.5, "temperature": 1.7},
    "coldest": {"temperature": 5e-324},
    "hottest": {"temperature": 1e300},
    "negative seed": {"seed": -(2**63)},
    "huge seed": {"seed": 2**63 - 1},
    "no end before the last": {"min_tokens": 10, "ignore_eos": False},
}
QUICK = ("two", "no mass", "coldest", "negative seed", "no end before the last")
SLOW = [pytest.param(edge, marks=pytest.mark.slow) for edge in EDGES if edge not in QUICK]
PROMPTS = [prompt(n, 7 + 6 * n) for n in range(3)]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    serve_tiny(monkeypatch)


def tiny(**changes) -> EngineConfig:
    return EngineConfig(**({"model": "tiny", "max_model_len": 120, "block_size": BLOCK} | changes))


@pytest.fixture(scope="module")
def greedy() -> list[list[int]]:
    """What every prompt of PROMPTS is answered with by the best token, without drafts."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        serve_tiny(monkeypatch)
        return outputs(tiny(), PROMPTS, replace(SAMPLED, temperature=0.0))


@pytest.mark.parametrize("edge", [*QUICK, *SLOW])
def test_edges_of_sampling_give_the_same_text_with_drafts(edge, greedy):
    params = replace(SAMPLED, **EDGES[edge])
    alone = outputs(tiny(max_num_seqs=1), PROMPTS, params)
    for drafts in DRAFTS.values():
        assert outputs(tiny(max_num_seqs=3, **drafts), PROMPTS, params) == alone
    assert (alone == greedy) == (edge in ("only the best", "no mass", "hardly any mass", "coldest"))


def test_seeds_of_every_size_and_sign_are_different_draws():
    seeds = (0, 1, -1, -(2**63), 2**63 - 1)
    texts = [outputs(tiny(), [prompt(0, 9)], replace(SAMPLED, seed=seed)) for seed in seeds]
    assert all(one not in texts[:at] for at, one in enumerate(texts))


@pytest.mark.parametrize("point", [0.0, 0.5, 1 - 2**-53])
def test_what_is_banned_or_beyond_top_k_never_comes(point):
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]]).expand(3, -1)
    draws = [
        Draw(1e300, point=point, banned=frozenset({0, 3})),
        Draw(1e300, top_k=2, point=point),
        Draw(1e300, top_p=0.6, point=point),
    ]
    banned, few, likely = sample(logits, draws)
    assert (banned, few, likely) == ((1, 0, 0) if point < 0.3 else (2, 1, likely))
    assert likely <= 2


@pytest.mark.parametrize("drafts", [*DRAFTS.values(), {"method": "eagle3", "k": 16}])
@pytest.mark.parametrize("accepted", ["real", "all"])
def test_the_last_position_of_the_context_is_reached_with_drafts(monkeypatch, drafts, accepted):
    """The cache holds one request of full length, and the shape no position more."""
    monkeypatch.setitem(MODELS, "tiny", lambda: replace(TINY, max_positions=CONTEXT))
    k = drafts["k"]
    law = Acceptance(k=k) if accepted == "real" else Acceptance("synthetic", k + 1.0, k=k)
    config = tiny(max_model_len=0, max_num_seqs=1, **(drafts | {"acceptance": law}))
    config = replace(config, num_blocks=config.pages_per_request, max_model_len=CONTEXT)
    params = SamplingParams(max_tokens=CONTEXT - 3, ignore_eos=True)
    driven = Driven(config)
    request = driven.add(prompt(0, 3), params)
    driven.finish()
    assert (len(request.tokens), request.finish_reason) == (CONTEXT, "length")
    assert driven.scheduler.pool.free == config.pages
    if accepted == "real":
        plain = tiny(max_model_len=CONTEXT)
        assert request.tokens[3:] == outputs(plain, [prompt(0, 3)], params)[0]
    with pytest.raises(ValueError, match="does not fit"):
        driven.add(prompt(0, 4), params)


@pytest.mark.parametrize("drafts", DRAFTS)
def test_a_stop_string_inside_an_accepted_run_cuts_it_and_leaves_a_whole_cache(drafts):
    k = DRAFTS[drafts]["k"]
    config = tiny(**(DRAFTS[drafts] | {"acceptance": Acceptance("synthetic", k + 1.0, k=k)}))
    driven = Driven(config)
    long = driven.add(prompt(0, 9), SamplingParams(max_tokens=60, ignore_eos=True))
    driven.finish()
    text = driven.shown[long]
    at = next(n for n in range(20, 40) if text.find(text[n : n + 3]) == n)
    params = SamplingParams(max_tokens=60, ignore_eos=True, stop=(text[at : at + 3],))
    cut = Driven(config)
    request = cut.add(prompt(0, 9), params)
    cut.finish()
    assert (cut.shown[request], request.finish_reason) == (text[:at], "stop")
    assert request.tokens == long.tokens[: 9 + at + 3]
    # What it leaves in the cache serves the next one as well as pages of its own.
    params = SamplingParams(max_tokens=12, ignore_eos=True)
    known = tuple(request.tokens)
    again = cut.add(known, params)
    cut.finish()
    assert again.cached_tokens >= len(known) - 2 * BLOCK
    fresh = Driven(config)
    same = fresh.add(known, params)
    fresh.finish()
    assert again.tokens == same.tokens


def test_an_end_that_a_law_accepts_too_early_does_not_end_the_request():
    eos = min(TOKENIZER.eos)
    request = Request(
        number=0,
        tokens=[40],
        params=SamplingParams(max_tokens=9, min_tokens=4),
        text=TextStream(TOKENIZER.token_bytes),
        eos=TOKENIZER.eos,
        deliver=lambda emission: None,
    )
    early = request.accept([eos, 65, 66])
    assert (early.text, early.tokens, early.finish_reason) == ("AB", 3, None)
    late = request.accept([67, eos, 68])
    assert (late.text, late.ids, late.finish_reason) == ("C", (67, eos), "stop")


@pytest.mark.parametrize("params", [SAMPLED, replace(SAMPLED, max_tokens=0, prompt_logprobs=1)])
def test_numbers_that_overflow_are_an_error_and_no_text(params):
    driven = Driven(tiny(max_num_batched_tokens=16))
    driven.runner._target._model._norm.fill_(3e38)
    driven.add(prompt(0, 30), params)
    with pytest.raises(EngineError, match="hold NaN or infinity") as failed:
        driven.finish()
    assert failed.value.code == "not-finite"
    assert failed.value.code in CODES


@pytest.mark.parametrize("axis", ["kv_cache_dtype", "index_cache_dtype"])
def test_mxfp4_caches_need_whole_groups_in_a_head(axis, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(public_config(mini(head_dim=24))))
    with pytest.raises(UsageError, match="groups of 32 and auto has heads of 24") as refused:
        EngineConfig(model="auto", weights=str(tmp_path), **{axis: "mxfp4"})
    assert refused.value.code == "unsupported-dtype"
