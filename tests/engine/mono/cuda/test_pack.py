"""A layer from infx's names in the fields that kernels get, and what those stand for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from infx.engine.mono.cuda.arguments import FIELDS
from infx.engine.mono.cuda.pack import field_sizes, packed_layer, unpacked_layer
from infx.engine.mono.shape import SHAPES
from infx.engine.quant import fp8_quantise, mxfp4_round

# The true sizes but for experts: 16 are routed to, one of them is there, and the shared one.
SHAPE = replace(SHAPES["m3_tp4_rank"], experts=16, expert_size=384)
THERE = 1


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(3)
    hidden, dim, size = SHAPE.hidden, SHAPE.head_dim, SHAPE.expert_size
    sizes = {
        "attention_norm": (hidden,),
        "mlp_norm": (hidden,),
        "head_norm": (19, dim),
        "qkv": (hidden, 20 * dim),
        "o": (16 * dim, hidden),
        "router": (hidden, SHAPE.experts),
        "router_bias": (SHAPE.experts,),
        "experts_up": (THERE, hidden, 2 * size),
        "experts_down": (THERE, size, hidden),
        "up": (hidden, 2 * size),
        "down": (size, hidden),
    }
    return {name: 0.1 * torch.randn(*size, generator=draw) for name, size in sizes.items()}


@pytest.fixture(scope="module")
def packed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return packed_layer(weights, "cpu")


def test_fields_are_those_of_the_kernels_in_size_and_type(packed: dict[str, Tensor]) -> None:
    wanted = field_sizes(SHAPE)
    for name in ("up", "down"):
        (_, *size), dtype = wanted[name]
        wanted[name] = ((THERE + 1, *size), dtype)
    assert packed.keys() == wanted.keys() <= set(FIELDS)
    assert {name: (tuple(t.shape), t.dtype) for name, t in packed.items()} == wanted
    assert all(t.is_contiguous() for t in packed.values())


def test_true_sizes_are_those_of_the_header() -> None:
    sizes = {name: size for name, (size, _) in field_sizes(SHAPES["m3_tp4_rank"]).items()}
    assert sizes["qkv"] == (4, 16, 160, 1536)
    assert sizes["o"] == (1, 16, 384, 2048)
    assert sizes["router"] == (8, 8, 16, 768)
    assert sizes["up"] == (129, 16, 96, 3200)
    assert sizes["down"] == (129, 2, 384, 3200)


def test_what_comes_back_is_each_weight_in_its_format(
    weights: dict[str, Tensor], packed: dict[str, Tensor]
) -> None:
    found = unpacked_layer(packed)
    assert found.keys() == weights.keys()
    for name in ("qkv", "o"):
        numbers, scale = fp8_quantise(weights[name], 0)
        assert torch.equal(found[name], numbers.float() * scale), name
    assert torch.equal(found["router"], weights["router"].bfloat16().float())
    for name in ("up", "down"):
        assert torch.equal(found[name], mxfp4_round(weights[name].T).T), name
        (expert,), (own,) = found[f"experts_{name}"], weights[f"experts_{name}"]
        assert torch.equal(expert, mxfp4_round(own.T).T), name
    for name in ("attention_norm", "mlp_norm", "head_norm", "router_bias"):
        torch.testing.assert_close(found[name], weights[name], rtol=0, atol=1e-6)


def test_a_weight_that_its_format_cannot_hold_is_refused(weights: dict[str, Tensor]) -> None:
    worse = {**weights, "qkv": weights["qkv"].clone()}
    worse["qkv"][5, 7] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        packed_layer(worse, "cpu")
