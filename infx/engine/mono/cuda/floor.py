"""The bytes that a layer must read and the time that they take: what a bench's floor is made of.

Pure: no torch. ``union`` counts the experts that some row of the step chose, the shared one not
among them; ``blocks`` the distinct (request, block) that rows chose.
"""

from __future__ import annotations

from infx.engine.mono.cuda.setting import SHAPE, Setting
from infx.engine.mono.shape import MOST_ROWS, Caches, Formats

__all__ = [
    "FLOOR",
    "expected_union",
    "held_bytes",
    "layer_bytes",
    "streamed_bytes",
    "targets_us",
]

FLOOR = (
    "floor = (fp8 projections + bf16 router + (experts of the union + the shared one) in MXFP4 at"
    " 4.25 bits + all index keys of each request + chosen blocks of keys and values with their"
    " scales, a block once for all rows of a request) / copy bandwidth of the same run; a dense MLP"
    " in fp8 stands in the place of router and experts, all keys and values of a request in that of"
    " index keys and chosen blocks"
)
# What is aimed at, at 8K tokens, fp8 caches, a row a request, uniform routing: µs a layer by rows.
TARGETS_US = {
    1: (45, 30),
    2: (52, 37),
    4: (65, 50),
    8: (89, 78),
    16: (129, 120),
}  # unfused and mono

EXPERT_BYTES = Formats.weight_bytes("mxfp4", 3 * SHAPE.expert_size, SHAPE.hidden)
DENSE_BYTES = Formats.weight_bytes("fp8", 3 * SHAPE.dense_size, SHAPE.hidden)
O_BYTES = Formats.weight_bytes("fp8", SHAPE.hidden, SHAPE.heads * SHAPE.head_dim)
_ROUTER_BYTES = Formats.weight_bytes("bf16", SHAPE.experts, SHAPE.hidden)


def targets_us(setting: Setting, width: int) -> tuple[int, int] | None:
    """Return the bars (unfused, mono) where ``setting`` is the issue's, else None."""
    return TARGETS_US.get(width) if setting == Setting() else None


def expected_union(rows: int) -> float:
    """Return the mean union of ``rows`` rows whose experts are drawn uniformly."""
    kept = 1 - SHAPE.experts_per_token / SHAPE.experts
    return SHAPE.experts * (1 - kept**rows)


def qkv_bytes(setting: Setting) -> int:
    """Return the bytes of the fused projection."""
    heads = SHAPE.head_kinds(setting.kind != "dense")["v"].stop
    return Formats.weight_bytes("fp8", heads * SHAPE.head_dim, SHAPE.hidden)


def streamed_bytes(setting: Setting, union: float) -> dict[str, float]:
    """Return the bytes of weights of each stage that streams them, by its name."""
    size, names = (union + 1) * EXPERT_BYTES, ("up", "down")
    if setting.kind != "sparse":
        size, names = DENSE_BYTES, ("dense_up", "dense_down")
    mlp = dict(zip(names, (size * 2 / 3, size / 3), strict=True))
    return {"qkv": qkv_bytes(setting), "o": O_BYTES, **mlp}


def layer_bytes(setting: Setting, width: int, union: float, blocks: float) -> float:
    """Return the bytes that a layer must read (`FLOOR` says which)."""
    kv, index = Caches(setting.kv, setting.index).token_bytes(SHAPE.head_dim)
    requests = len(setting.requests(width))
    # A request's own block, which its rows choose always, ends with its last token.
    tokens = blocks * SHAPE.block - requests * (-setting.context % SHAPE.block)
    if setting.kind == "dense":
        tokens, index = requests * setting.context, 0
    return _weights(setting, union) + tokens * 2 * kv + requests * setting.context * index


def _weights(setting: Setting, union: float) -> float:
    router = _ROUTER_BYTES if setting.kind == "sparse" else 0
    return sum(streamed_bytes(setting, union).values()) + router


def held_bytes(setting: Setting, layers: int) -> int:
    """Return the bytes of memory that a bench of ``layers`` layers takes, copies for checks too."""
    kv, index = Caches(setting.kv, setting.index).token_bytes(SHAPE.head_dim)
    caches = setting.pages() * SHAPE.block * (2 * kv + index)
    weights = int(_weights(setting, SHAPE.experts))
    return layers * (weights + caches) + 3 * caches + MOST_ROWS * (8 << 20) + _WORK_BYTES


# Two gigabytes that are copied to measure bandwidth, float32 of weights that are judged, contexts.
_WORK_BYTES = 6 << 30
