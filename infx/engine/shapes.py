"""The shapes of the MiniMax-M3 family, by configuration.

M3's first layers have full attention and a dense MLP, the others block-sparse attention and
experts; M3.1's first layers keep the dense MLP and attend sparsely like the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from infx.engine.refusal import refuse_faults

__all__ = [
    "DSPARK_LAYERS",
    "DSPARK_RANK",
    "MODELS",
    "MOST_DRAFTS",
    "MXFP4_GROUP",
    "NULL",
    "ROUTER_DTYPES",
    "ModelConfig",
    "m3",
    "m3_1",
    "m3_tp4_rank",
    "mini",
    "mini_3_1",
]

MOST_DRAFTS = 16
# Numbers along an axis that share one scale (OCP Microscaling 1.0).
MXFP4_GROUP = 32
# `--model` of the runner without a model (`infx.engine.null`).
NULL = "null"
# The DSpark draft's layers, and the rank of its Markov head.
DSPARK_LAYERS = 2
DSPARK_RANK = 32
ROUTER_DTYPES = ("fp32", "bf16")

# Tokens are hashed, and rows told apart, as 32-bit numbers.
MOST_SIZE = 2**31 - 1
SIZES = (
    "hidden_size", "num_layers", "heads", "kv_heads", "head_dim", "rotary_dim", "block_size",
    "topk_blocks", "experts", "experts_per_token", "expert_size", "shared_size", "dense_size",
    "vocab_size", "max_positions", "simulated_ranks",
)  # fmt: skip
CONSTANTS = (
    "rope_theta",
    "rms_norm_eps",
    "routed_scaling_factor",
    "swiglu_alpha",
    "swiglu_limit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Shapes and constants of a MiniMax-M3 model.

    The first ``full_layers`` layers have full attention, the others block-sparse attention; the
    first ``dense_layers`` have a dense MLP, the others experts beside a shared one. There is one
    index head for each kv head, of ``head_dim`` dimensions. ``block_size`` is the unit of block
    selection and of the cache's pages (tokens). ``aux_layers`` are the layers whose output the
    EAGLE3 draft sees, ``block_layers`` those that DSpark sees. ``router_dtype`` is the type that
    router weights are rounded to; logits and bias are float32 in any case. ``simulated_ranks``
    is above 1 where the shape is one tensor-parallel rank's slice and the sum over ranks is that
    of equal parts. Raises RefusalError (``unserved-config``) that names every misfit.
    """

    name: str
    hidden_size: int
    num_layers: int
    full_layers: int
    dense_layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    block_size: int
    topk_blocks: int
    experts: int
    experts_per_token: int
    expert_size: int
    shared_size: int
    dense_size: int
    vocab_size: int
    max_positions: int
    aux_layers: tuple[int, ...]
    block_layers: tuple[int, ...]
    rope_theta: float = 5e6
    rms_norm_eps: float = 1e-6
    routed_scaling_factor: float = 2.0
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0
    router_dtype: str = "fp32"
    simulated_ranks: int = 1

    def __post_init__(self) -> None:
        refuse_faults("unserved-config", f"the shape of {self.name}", _misfits(self))

    @property
    def farthest(self) -> int:
        """Positions that rotary tables cover: drafts of a last step write past the context."""
        return self.max_positions + 2 * MOST_DRAFTS + 1

    def attends_sparsely(self, layer: int) -> bool:
        """Return whether ``layer`` has an indexer and attends to chosen blocks only."""
        return layer >= self.full_layers

    def has_experts(self, layer: int) -> bool:
        """Return whether ``layer`` has experts and a shared one instead of a dense MLP."""
        return layer >= self.dense_layers


def _misfits(shape: ModelConfig) -> list[str]:
    """Return a sentence for each size that is impossible, or else each pair that does not fit."""
    wrong = [
        f"{name} {value}: expected 1 to {MOST_SIZE}"
        for name in SIZES
        if not 1 <= (value := getattr(shape, name)) <= MOST_SIZE
    ]
    wrong += [
        f"{name} {value}: expected a finite number above 0"
        for name in CONSTANTS
        if not (math.isfinite(value := getattr(shape, name)) and value > 0)
    ]
    return wrong or [*_unfit_sizes(shape), *_unfit_layers(shape)]


def _unfit_sizes(s: ModelConfig) -> Iterator[str]:
    if s.heads % s.kv_heads:
        yield f"heads {s.heads}: expected a multiple of kv_heads {s.kv_heads}"
    if s.rotary_dim % 2:
        yield f"rotary_dim {s.rotary_dim}: expected an even number"
    if s.rotary_dim > s.head_dim:
        yield f"rotary_dim {s.rotary_dim}: expected at most head_dim {s.head_dim}"
    if s.experts_per_token > s.experts:
        yield f"experts_per_token {s.experts_per_token}: expected at most experts {s.experts}"
    if s.router_dtype not in ROUTER_DTYPES:
        yield f"router_dtype {s.router_dtype}: expected {' or '.join(ROUTER_DTYPES)}"


def _unfit_layers(s: ModelConfig) -> Iterator[str]:
    for name in ("full_layers", "dense_layers"):
        if not 0 <= getattr(s, name) <= s.num_layers:
            yield f"{name} {getattr(s, name)}: expected 0 to {s.num_layers}"
    if len(s.aux_layers) != 3:
        yield f"aux_layers {s.aux_layers}: expected 3 layers"
    if not s.block_layers:
        yield "block_layers (): expected at least one layer"
    for name in ("aux_layers", "block_layers"):
        taps = getattr(s, name)
        if list(taps) != sorted(taps) or not all(0 <= tap < s.num_layers for tap in taps):
            yield f"{name} {taps}: expected ascending layers from 0 to {s.num_layers - 1}"


def mini(**changes: object) -> ModelConfig:
    """Return the small shape for CPUs (4.8 M parameters, 2 M a token), with any field changed."""
    shape: dict[str, object] = {
        "name": "mini",
        "hidden_size": 192,
        "num_layers": 5,
        "full_layers": 1,
        "dense_layers": 1,
        "heads": 8,
        "kv_heads": 2,
        "head_dim": 32,
        "rotary_dim": 16,
        "block_size": 16,
        "topk_blocks": 4,
        "experts": 16,
        "experts_per_token": 4,
        "expert_size": 96,
        "shared_size": 96,
        "dense_size": 384,
        "vocab_size": 320,
        "max_positions": 8192,
        "aux_layers": (0, 2, 4),
        "block_layers": (0, 2, 4),
    }
    return ModelConfig(**(shape | changes))  # type: ignore[arg-type]


def mini_3_1() -> ModelConfig:
    """Return `mini` with M3.1's first layer: sparse attention with a dense MLP."""
    return mini(name="mini_3_1", full_layers=0)


def m3() -> ModelConfig:
    """Return MiniMax-M3's true shape (public text configuration)."""
    return ModelConfig(
        name="m3",
        hidden_size=6144,
        num_layers=60,
        full_layers=3,
        dense_layers=3,
        heads=64,
        kv_heads=4,
        head_dim=128,
        rotary_dim=64,
        block_size=128,
        topk_blocks=16,
        experts=128,
        experts_per_token=4,
        expert_size=3072,
        shared_size=3072,
        dense_size=12288,
        vocab_size=200064,
        max_positions=524288,
        aux_layers=(2, 30, 57),
        block_layers=(1, 12, 23, 35, 46, 57),
    )


def m3_1() -> ModelConfig:
    """Return MiniMax-M3.1's true shape: the first three layers attend sparsely too."""
    return replace(m3(), name="m3_1", full_layers=0)


def m3_tp4_rank() -> ModelConfig:
    """Return what one of four tensor-parallel ranks holds of `m3`, vocabulary included.

    Its sum over ranks is that of four equal parts: the speed of a rank, not the text of M3.
    """
    whole, ranks = m3(), 4
    sliced = ("heads", "kv_heads", "expert_size", "shared_size", "dense_size", "vocab_size")
    parts = {name: getattr(whole, name) // ranks for name in sliced}
    return replace(whole, name="m3_tp4_rank", simulated_ranks=ranks, **parts)


MODELS: dict[str, Callable[[], ModelConfig]] = {
    "mini": mini,
    "mini_3_1": mini_3_1,
    "m3": m3,
    "m3_1": m3_1,
    "m3_tp4_rank": m3_tp4_rank,
}
