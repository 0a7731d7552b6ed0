"""The text of 200 prompts: mono against the reference over the same kind of cache."""

from __future__ import annotations

import pytest
import torch

from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import SamplingParams
from infx.engine.weights import target_weights
from infx.golden.prompts import gsm_mini
from tests.engine.driving_engine import TOKENIZER, Driven, small

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

PROMPTS, TOKENS, NEAR = 200, 64, 1e-3
PIECE = 256


# mini_3_1 has random weights. Over rounded caches some of its texts leave the reference where the
# top two are further apart than that: of 60, 2 over bf16, 3 over fp8, 11 over MXFP4. The
# reference's own change too when its weights are moved a little: over MXFP4 1, 2, 10 and 20 of 60
# by 6e-8, 2e-7, 5e-7 and 1e-6. That is a likely cause and no proof, so nothing is asserted there.
@pytest.mark.parametrize(
    ("model", "kind"),
    [("mini", "fp32"), ("mini", "bf16"), ("mini", "fp8"), ("mini", "mxfp4"), ("mini_3_1", "fp32")],
)
def test_greedy_text_is_the_references(model: str, kind: str, capsys) -> None:
    flags = {
        "model": model,
        "weights": "shipped" if model == "mini" else "random:1",
        "max_model_len": 1024,
        "max_num_seqs": 12,
        "kv_cache_dtype": kind,
        "index_cache_dtype": kind,
    }
    config = small(**flags, mono="on", layers="compiled")
    driven = Driven(config)
    greedy = SamplingParams(max_tokens=TOKENS, ignore_eos=True)
    chats = [TOKENIZER.render(c, add_generation_prompt=True) for c in gsm_mini(PROMPTS, 0, 0).chats]
    requests = [driven.add(TOKENIZER.encode(chat), greedy) for chat in chats]
    driven.finish()
    seen = driven.runner.coverage.snapshot()
    assert seen.mono == seen.eligible > 0

    reference = ReferenceModel(config.shape, target_weights(config.shape, config.weights))
    equal, near = 0, []
    for number, request in enumerate(requests):
        logits = _logits(reference, config, request.tokens)[request.prompt_tokens - 1 : -1]
        told = torch.tensor(request.tokens[request.prompt_tokens :])
        differs = (logits.argmax(-1) != told).nonzero()[:, 0].tolist()
        if not differs:
            equal += 1
            continue
        best, second = logits[differs[0]].topk(2).values.tolist()
        near.append((number, differs[0], best - second))
        assert best - second < NEAR, f"prompt {number} at token {differs[0]}: {near[-1]}"
    with capsys.disabled():
        print(f"\n{model} {kind}: {equal} of {PROMPTS} equal; (prompt, token, gap):", *near)
    assert equal + len(near) == PROMPTS


@torch.inference_mode()
def _logits(model: ReferenceModel, config, tokens: list[int]) -> torch.Tensor:
    """Logits [tokens, ids with a meaning] of one text over a cache of the configuration's kinds."""
    block = config.block_size
    pages = list(range(-(-len(tokens) // block)))
    cache = KvCache.empty(config.shape, len(pages), kinds=config.cache_kinds)
    streams = []
    for start in range(0, len(tokens), PIECE):
        batch = make_batch([Span(tokens[start : start + PIECE], start, pages)], block)
        streams.append(model.forward(batch, cache)[0])
    return model.head(torch.cat(streams))[:, : TOKENIZER.size]
