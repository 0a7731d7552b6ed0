"""What a mono build is made for: the shape of a layer, its number formats, the machine, the grain.

All are frozen values, so that they can stand in a build's key (`infx.engine.mono.build`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "CACHE_KINDS",
    "CPU_GRAIN",
    "GPU_GRAIN",
    "H200",
    "KINDS",
    "MOST_ROWS",
    "SHAPES",
    "Caches",
    "Formats",
    "Grain",
    "Kind",
    "LayerShape",
    "Machine",
    "cpu",
]

MOST_ROWS = 16

# dense: full attention and a dense MLP (M3's first layers); sparse: chosen blocks and experts;
# sparse_dense: chosen blocks and a dense MLP (M3.1's first layers).
Kind = Literal["dense", "sparse", "sparse_dense"]
KINDS: tuple[Kind, ...] = ("dense", "sparse", "sparse_dense")

CACHE_KINDS = ("fp32", "bf16", "fp8", "mxfp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """Numbers of a layer as one rank holds it, by the names of the model's configuration.

    ``block`` is tokens a page and the unit of block selection; ``reach`` the longest context that
    a build serves (tokens); ``partition`` the keys whose softmax is one partial result. Experts and
    the shared expert are of one size. ``ranks`` add their parts of `o` and of the MLP.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    block: int
    topk_blocks: int
    experts: int
    experts_per_token: int
    expert_size: int
    dense_size: int
    reach: int
    partition: int = 256
    ranks: int = 1
    rope_theta: float = 5e6
    norm_eps: float = 1e-6
    routed_scale: float = 2.0
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0

    @property
    def slots(self) -> int:
        """Experts that a row reads: its chosen ones in order of choice, then the shared one."""
        return self.experts_per_token + 1

    @property
    def pages(self) -> int:
        """Pages of the longest context."""
        return -(-self.reach // self.block)

    def head_kinds(self, sparse: bool) -> dict[str, range]:
        """Return the heads of the fused projection: q, k, the indexer's q and k, v."""
        sizes = {"q": self.heads, "k": self.kv_heads, "v": self.kv_heads}
        if sparse:
            sizes = {**sizes, "iq": self.kv_heads, "ik": 1}
        kinds, first = {}, 0
        for name in ("q", "k", "iq", "ik", "v"):
            kinds[name] = range(first, first + sizes.get(name, 0))
            first += sizes.get(name, 0)
        return kinds


@dataclass(frozen=True, slots=True)
class Caches:
    """What keys and values (``kv``) and the indexer's keys are kept as, each of `CACHE_KINDS`.

    fp8 has one float32 scale a token and head in ``kv`` and none in ``index``.
    """

    kv: str = "fp32"
    index: str = "fp32"

    def token_bytes(self, dim: int) -> tuple[int, int]:
        """Return the bytes of a key (or value) of one head, and of an index key, of ``dim``."""
        sizes = {"fp32": 4 * dim, "bf16": 2 * dim, "fp8": dim, "mxfp4": dim // 2 + dim // 32}
        return sizes[self.kv] + (4 if self.kv == "fp8" else 0), sizes[self.index]


@dataclass(frozen=True, slots=True)
class Formats:
    """What weights are held as: projections and dense MLP, router, experts with the shared one."""

    projections: Literal["fp32", "bf16", "fp8"] = "fp32"
    router: Literal["fp32", "bf16"] = "fp32"
    experts: Literal["fp32", "mxfp4"] = "fp32"

    @staticmethod
    def weight_bytes(form: str, outputs: int, inputs: int) -> int:
        """Return the bytes of ``outputs`` x ``inputs`` weights, without fp8's scales of outputs."""
        a_row = {"fp32": 4 * inputs, "bf16": 2 * inputs, "fp8": inputs}
        return outputs * (inputs // 2 + inputs // 32 if form == "mxfp4" else a_row[form])


@dataclass(frozen=True, slots=True)
class Machine:
    """``blocks`` of ``threads`` that run one table together; all must be resident at once.

    ``resident`` is how many can be (SMs of a GPU, cores given to a process), ``shared_bytes`` the
    memory that one block's threads share.
    """

    blocks: int
    threads: int
    resident: int
    shared_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grain:
    """How big a task is, and in which order it sums: the same numbers at every width.

    ``*_tile`` are output features of a task (score_tile: pages), rounded down to a divisor of what
    is there; ``*_parts`` cut K between tasks. ``lanes`` accumulators take chunks of ``chunk`` terms
    in turn (`infx.engine.mono.sums`), ``down_lanes`` those of one expert's second matrix,
    ``dot_lanes`` and ``square_lanes`` single terms of a head's dot product and of a norm.
    ``narrow_rows``: up to so many rows experts are dealt by (row, slot) instead of by expert;
    ``folded_rows``: up to so many rows the output projection merges partitions itself. Of more than
    ``merge_group`` partitions each so many are merged among themselves first.
    """

    qkv_tile: int
    qkv_parts: int
    score_tile: int
    out_tile: int
    router_tile: int
    router_parts: int
    up_tile: int
    dense_tile: int
    chunk: int
    lanes: int
    down_lanes: int
    dot_lanes: int
    square_lanes: int
    narrow_rows: int
    folded_rows: int
    merge_group: int


H200 = Machine(blocks=132, threads=512, resident=132, shared_bytes=227 * 1024)

# Why these, for m3_tp4_rank on 132 blocks of 16 warps (measured: mono_on_h200, 2.1-2.4; the rest
# is arithmetic): qkv 160 tiles of 16 would be 1.2 rounds, in 4 parts of K 640 tasks fill 97 % of 5;
# o and down 384 tiles of 16 fill 97 % of 3; 16 x 8 router tasks are one round; experts' 24 tiles of
# 32 pairs x 5 experts are 120 tasks, one round at one row; dense 128 tiles of 24 pairs. A chunk is
# an MXFP4 tile of 64, a lane a warp; down has only 12 chunks an expert, so 4 warps share it and
# others take other experts. Merging for itself costs an o task 66 KB of L2 a row: one row only.
# narrow 1: verify rows of one request share experts, so two rows already gain from the union. Who
# ends a group of 32 partitions (8,192 keys) reads 0.3 MB to merge it; all of 131,072 keys are 4.3.
GPU_GRAIN = Grain(
    qkv_tile=16,
    qkv_parts=4,
    score_tile=2,
    out_tile=16,
    router_tile=8,
    router_parts=8,
    up_tile=32,
    dense_tile=24,
    chunk=64,
    lanes=16,
    down_lanes=4,
    dot_lanes=8,
    square_lanes=32,
    narrow_rows=1,
    folded_rows=1,
    merge_group=32,
)

# One or two threads: few large tasks. Vector units hold outputs, not terms of a sum, so a sum is
# one lane in ascending order; only dots of a head and squares of a norm run along the vector.
CPU_GRAIN = Grain(
    qkv_tile=32,
    qkv_parts=1,
    score_tile=8,
    out_tile=96,
    router_tile=8,
    router_parts=1,
    up_tile=48,
    dense_tile=192,
    chunk=64,
    lanes=1,
    down_lanes=1,
    dot_lanes=8,
    square_lanes=8,
    narrow_rows=1,
    folded_rows=0,
    merge_group=512,
)


def cpu(threads: int) -> Machine:
    """Return a process of ``threads`` threads, each a block of its own; 1 MiB is an L2 share."""
    return Machine(blocks=threads, threads=1, resident=threads, shared_bytes=1 << 20)


_MINI = LayerShape(
    hidden=192,
    heads=8,
    kv_heads=2,
    head_dim=32,
    rotary_dim=16,
    block=16,
    topk_blocks=4,
    experts=16,
    experts_per_token=4,
    expert_size=96,
    dense_size=384,
    reach=8192,
)
_M3 = LayerShape(
    hidden=6144,
    heads=64,
    kv_heads=4,
    head_dim=128,
    rotary_dim=64,
    block=128,
    topk_blocks=16,
    experts=128,
    experts_per_token=4,
    expert_size=3072,
    dense_size=12288,
    reach=131072,
)


def _rank(ranks: int) -> LayerShape:
    """Return what one of ``ranks`` ranks holds of M3."""
    parts = ("heads", "kv_heads", "expert_size", "dense_size")
    return replace(_M3, ranks=ranks, **{name: getattr(_M3, name) // ranks for name in parts})


# M3.1's layers have the same shapes; only their kinds differ. The whole of M3 fits no single GPU.
SHAPES = {"mini": _MINI, "m3_tp2_rank": _rank(2), "m3_tp4_rank": _rank(4)}
