"""The reference model against the public one: MiniMax-M3 of `transformers`."""

from __future__ import annotations

import random
from itertools import chain

import pytest
import torch

import infx.engine
from infx.domain.errors import UsageError
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model import reference
from infx.engine.refusal import RefusalError
from tests.engine.public_models import (
    SHAPES,
    public_text_model,
    public_whole_model,
    shape_named,
)

pytestmark = pytest.mark.slow


def tokens_for(shape, name: str) -> list[int]:
    """Tokens over five more blocks than a row attends to, the last block half full."""
    context = shape.block_size * (shape.topk_blocks + 5) + shape.block_size // 2
    rng = random.Random(name)
    return [rng.randrange(shape.vocab_size - 2) for _ in range(context)]


@torch.inference_mode()
def what_they_compute(public, tokens: list[int]):
    """Logits, and for each sparse layer the sets of blocks [row][head] and of experts [row]."""
    blocks, experts, hooks = [], [], []
    for layer in public.model.layers:
        if layer.self_attn.indexer is not None:
            hook = layer.self_attn.indexer.register_forward_hook(lambda *at: blocks.append(at[2]))
            hooks.append(hook)
        if hasattr(layer.mlp, "gate"):
            hook = layer.mlp.gate.register_forward_hook(lambda *at: experts.append(at[2][2]))
            hooks.append(hook)
    logits = public(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()
    return (
        logits,
        [[[{b for b in head if b >= 0} for head in row] for row in one[0].transpose(0, 1).tolist()]
         for one in blocks],
        [[set(row) for row in layer.tolist()] for layer in experts],
    )  # fmt: skip


@torch.inference_mode()
def what_we_compute(monkeypatch, model, tokens: list[int], chunks: list[int]):
    """The same, of our model fed with ``tokens`` in ``chunks`` over shuffled pages."""
    blocks, experts = [], []

    def spy_blocks(scores, positions, block, topk):
        chosen = choose_blocks(scores, positions, block, topk)
        visible = scores.gather(-1, chosen) > -torch.inf
        rows = chosen.masked_fill(~visible, -1)[0].transpose(0, 1).tolist()
        blocks.append([[{b for b in head if b >= 0} for head in row] for row in rows])
        return chosen

    def spy_experts(*arguments):
        chosen, weight = route(*arguments)
        experts.append([set(row) for row in chosen.tolist()])
        return chosen, weight

    choose_blocks, route = reference.choose_blocks, reference.route
    with monkeypatch.context() as spied:
        spied.setattr(reference, "choose_blocks", spy_blocks)
        spied.setattr(reference, "route", spy_experts)
        shape = model.shape
        pages = list(range(len(tokens) // shape.block_size + 1))
        random.Random(0).shuffle(pages)
        cache, streams, start = KvCache.empty(shape, len(pages)), [], 0
        for size in chunks:
            batch = make_batch([Span(tokens[start : start + size], start, pages)], shape.block_size)
            streams.append(model.forward(batch, cache)[0])
            start += size
    assert start == len(tokens)
    sparse = shape.num_layers - shape.full_layers
    routed = shape.num_layers - shape.dense_layers
    return (
        model.head(torch.cat(streams)),
        [list(chain(*blocks[layer::sparse])) for layer in range(sparse)],
        [list(chain(*experts[layer::routed])) for layer in range(routed)],
    )


@pytest.mark.parametrize("name", SHAPES)
def test_logits_blocks_and_experts_are_those_of_the_public_model(monkeypatch, name):
    shape = shape_named(name)
    tokens = tokens_for(shape, name)
    public = public_text_model(shape, seed=len(name))
    logits, blocks, experts = what_they_compute(public, tokens)
    model = infx.engine.from_transformers(public)
    context, block = len(tokens), shape.block_size
    for chunks in ([context], [3, block, 1, context - block - 4]):
        ours = what_we_compute(monkeypatch, model, tokens, chunks)
        assert (ours[0] - logits).abs().max() < 1e-4 * logits.abs().max()
        assert ours[1] == blocks
        assert ours[2] == experts
    assert len(blocks) == shape.num_layers - shape.full_layers
    last = blocks[-1][-1]
    assert all(len(head) == shape.topk_blocks for head in last)
    assert context // block > shape.topk_blocks


@pytest.mark.parametrize("name", ["tiny", "m3.1"])
def test_the_text_part_of_the_model_with_vision_is_taken(name):
    shape = shape_named(name)
    tokens = tokens_for(shape, name)
    public = public_whole_model(shape, seed=3)
    with torch.inference_mode():
        logits = public(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    ours = infx.engine.from_transformers(public).logits(tokens)
    assert (ours - logits).abs().max() < 1e-4 * logits.abs().max()


def test_logits_take_lists_and_tensors_of_any_length():
    public = public_text_model(shape_named("tiny"), seed=1)
    model = infx.engine.from_transformers(public)
    tokens = [7] * 1100  # three passes of 512 rows
    with torch.inference_mode():
        logits = public(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    ours = model.logits(torch.tensor(tokens))
    assert ours.dtype == torch.float32
    assert ours.shape == (1100, 97)
    assert (ours - logits).abs().max() < 1e-4 * logits.abs().max()
    assert model.logits([]).shape == (0, 97)


def test_what_is_no_model_of_transformers_is_refused():
    with pytest.raises(RefusalError, match="Linear has no config: expected a model of transfor"):
        infx.engine.from_transformers(torch.nn.Linear(2, 2))


def test_our_copy_does_not_follow_the_public_model():
    public = public_text_model(shape_named("tiny"), seed=1)
    model = infx.engine.from_transformers(public)
    before = model.logits([1, 2, 3])
    with torch.no_grad():
        for tensor in public.state_dict().values():
            tensor.zero_()
    assert torch.equal(model.logits([1, 2, 3]), before)


def test_a_half_precision_model_is_computed_in_float32():
    public = public_text_model(shape_named("tiny"), seed=1).bfloat16()
    with torch.inference_mode():
        logits = public.float()(input_ids=torch.tensor([[1, 2, 3]])).logits[0]
    ours = infx.engine.from_transformers(public.bfloat16()).logits([1, 2, 3])
    assert (ours - logits).abs().max() < 1e-4 * logits.abs().max()


def test_rotary_dimensions_are_those_that_transformers_turns():
    """It reads the partial factor alone, and turns everything without one."""
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as public

    shape = shape_named("tiny")
    config = public_text_model(shape, seed=1).config
    config.rope_parameters = {"rope_type": "default", "rope_theta": 1e4}
    model = public.MiniMaxM3VLForCausalLM(config).eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[5, 6, 7]])).logits[0]
    ours = infx.engine.from_transformers(model)
    assert ours.shape.rotary_dim == shape.head_dim
    assert (ours.logits([5, 6, 7]) - logits).abs().max() < 1e-4 * logits.abs().max()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"index_head_dim": 8}, "index_head_dim 8: expected 16"),
        ({"index_n_heads": 4}, "index_n_heads 4: expected 2"),
        ({"index_local_blocks": 2}, "index_local_blocks 2: expected 1"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings true: expected False"),
        ({"layer_types": ["minimax_m3_sparse", "full_attention"] * 2}, "first layers only"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, 'rope_type "yarn"'),
    ],
)
def test_layers_that_we_do_not_compute_are_refused(change, word):
    public = public_text_model(shape_named("tiny"), seed=1)
    for name, value in change.items():
        setattr(public.config, name, value)
    with pytest.raises(UsageError, match=word) as refused:
        infx.engine.from_transformers(public)
    assert refused.value.code == "unserved-config"


def test_a_model_without_its_head_is_refused_by_name():
    with pytest.raises(UsageError, match=r"lm_head.weight is missing: expected \[97, 48\]"):
        infx.engine.from_transformers(_Headless(public_text_model(shape_named("tiny"), seed=1)))


class _Headless:
    def __init__(self, model) -> None:
        self.config, self._model = model.config, model

    def state_dict(self):
        return {k: v for k, v in self._model.state_dict().items() if k != "lm_head.weight"}


@pytest.mark.parametrize(
    ("tokens", "code", "word"),
    [
        ([1, 97], "bad-request", r"token_ids\[1\] is 97: expected 0 to 96"),
        ([-1], "bad-request", r"token_ids\[0\] is -1"),
        (torch.ones(1, 3), "bad-request", r"shape \[1, 3\]"),
        ([1] * 8193, "context-length-exceeded", "8193"),
    ],
)
def test_logits_of_an_impossible_text_are_refused(tokens, code, word):
    model = infx.engine.from_transformers(public_text_model(shape_named("tiny"), seed=1))
    with pytest.raises(UsageError, match=word) as refused:
        model.logits(tokens)
    assert refused.value.code == code
