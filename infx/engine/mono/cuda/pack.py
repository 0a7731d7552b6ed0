"""A sparse layer's weights as kernels read them, from infx's names; and back, for a reference.

Projections become e4m3 with a scale an output, experts MXFP4 in groups along their inputs, the
router bf16; norms are kept as 1 + w. One expert is in hand at a time, so what packing takes beside
the result is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.packing import (
    PIECE,
    SLOT_BYTES,
    WARPS,
    bf16_tiles,
    bf16_untiled,
    fp8_tiles,
    fp8_untiled,
    gates_beside_ups,
    mxfp4_tiles,
    mxfp4_untiled,
    ups_behind_gates,
)
from infx.engine.mono.shape import GPU_GRAIN, LayerShape

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["field_sizes", "packed_layer", "unpacked_layer"]

PARTS = {"qkv": GPU_GRAIN.qkv_parts, "o": 1}
NORMS = ("attention_norm", "mlp_norm", "head_norm")


def field_sizes(shape: LayerShape) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Return size and type of each weight of a sparse layer, by field of `LayerArgs`."""
    import torch

    heads = sum(map(len, shape.head_kinds(sparse=True).values()))
    hidden, dim, experts = shape.hidden, shape.head_dim, shape.experts
    projected, mixed = heads * dim, shape.heads * dim
    parts, router_parts = PARTS["qkv"], GPU_GRAIN.router_parts
    tile = 16  # outputs
    router = (router_parts, experts // tile, WARPS, tile * hidden // router_parts // WARPS)
    return {
        "attention_norm": ((hidden,), torch.float32),
        "mlp_norm": ((hidden,), torch.float32),
        "head_norm": ((heads - shape.kv_heads, dim), torch.float32),
        "qkv": ((parts, WARPS, projected // tile, tile * hidden // parts // WARPS), torch.uint8),
        "qkv_scale": ((projected,), torch.float32),
        "o": ((1, WARPS, hidden // tile, tile * mixed // WARPS), torch.uint8),
        "o_scale": ((hidden,), torch.float32),
        "router": (router, torch.int16),
        "router_bias": ((experts,), torch.float32),
        "up": (_pieces(experts, hidden, 2 * shape.expert_size), torch.uint8),
        "down": (_pieces(experts, shape.expert_size, hidden), torch.uint8),
    }


def _pieces(experts: int, inputs: int, outputs: int) -> tuple[int, ...]:
    return (experts + 1, inputs // PIECE, outputs // 16, SLOT_BYTES)


def packed_layer(weights: Mapping[str, Tensor], device: str) -> dict[str, Tensor]:
    """Return a sparse layer's fields of `LayerArgs` on ``device`` from infx's names.

    ``weights`` are float32 matrices [in, out] anywhere (``qkv``, ``experts_up`` [experts, in, out],
    …), as `infx.engine.weights` names them without their layer. Raises ValueError for numbers that
    the formats cannot hold: NaN, or MXFP4 scales too far apart (`mxfp4_tiles`).
    """
    import torch

    from infx.engine.quant import fp8_quantise

    own = {name: weights[name].to(device) for name in (*NORMS, "router_bias")}
    packed = {name: 1 + own[name].float() for name in NORMS}
    packed["router_bias"] = own["router_bias"].float().contiguous()
    for name, parts in PARTS.items():
        numbers, scale = fp8_quantise(_transposed(weights[name], device), -1)
        packed[name] = fp8_tiles(numbers.view(torch.uint8), parts)
        packed[f"{name}_scale"] = scale[:, 0].contiguous()
    router = _transposed(weights["router"], device).bfloat16().view(torch.int16)
    packed["router"] = bf16_tiles(router, GPU_GRAIN.router_parts).contiguous()
    for name in ("up", "down"):
        packed[name] = _experts(weights, name, device)
    return packed


def _transposed(matrix: Tensor, device: str) -> Tensor:
    """Return a matrix [in, out] as [out, in], contiguous."""
    return matrix.to(device).float().T.contiguous()


def _matrices(weights: Mapping[str, Tensor], name: str) -> Iterator[Tensor]:
    """Yield every expert's matrix [in, out], the shared one's last."""
    yield from weights[f"experts_{name}"]
    yield weights[name]


def _experts(weights: Mapping[str, Tensor], name: str, device: str) -> Tensor:
    import torch

    from infx.engine.quant import mxfp4_pack

    inputs, outputs = weights[name].shape
    size = _pieces(len(weights[f"experts_{name}"]), inputs, outputs)
    packed = torch.empty(size, dtype=torch.uint8, device=device)
    for expert, matrix in zip(packed, _matrices(weights, name), strict=True):
        rows = _transposed(matrix, device)
        rows = gates_beside_ups(rows) if name == "up" else rows
        expert.copy_(mxfp4_tiles(*mxfp4_pack(rows)))
    return packed


def unpacked_layer(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the float32 weights that ``packed`` stands for, by infx's names, on its device.

    For a layer of m3_tp4_rank these are 7.3 GB.
    """
    import torch

    weights = {name: packed[name] - 1 for name in NORMS}
    weights["router_bias"] = packed["router_bias"]
    for name in PARTS:
        numbers = fp8_untiled(packed[name]).view(torch.float8_e4m3fn).float()
        weights[name] = (numbers * packed[f"{name}_scale"][:, None]).T.contiguous()
    router = bf16_untiled(packed["router"]).view(torch.bfloat16)
    weights["router"] = router.float().T.contiguous()
    for name in ("up", "down"):
        matrices = torch.stack([_matrix(expert, name) for expert in packed[name]])
        weights[f"experts_{name}"], weights[name] = matrices[:-1], matrices[-1]
    return weights


def _matrix(expert: Tensor, name: str) -> Tensor:
    from infx.engine.quant import mxfp4_unpack

    rows = mxfp4_unpack(*mxfp4_untiled(expert))
    return (ups_behind_gates(rows) if name == "up" else rows).T
