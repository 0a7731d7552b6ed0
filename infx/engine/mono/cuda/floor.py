"""The bytes that a layer must read and the time that they take: what a bench's floor is made of.

Pure: no torch. ``union`` counts the experts that some row of the step chose, the shared one not
among them; ``blocks`` the distinct (request, block) that rows chose.
"""

from __future__ import annotations

from infx.engine.mono.cuda.setting import SHAPE, Setting
from infx.engine.mono.shape import MOST_ROWS, Caches, Formats

__all__ = [
    "EXPERT_BYTES",
    "FLOOR",
    "FLOORS_US",
    "O_BYTES",
    "QKV_BYTES",
    "TARGETS_US",
    "chosen_blocks",
    "expected_union",
    "held_bytes",
    "layer_bytes",
    "targets_us",
]

FLOOR = (
    "floor = (fp8 projections + bf16 router + (experts of the union + the shared one) in MXFP4 at"
    " 4.25 bits + all index keys of each request + chosen blocks of keys and values with their"
    " scales, a block once for all rows of a request) / copy bandwidth of the same run"
)
# Of issue 9, at 8K tokens, fp8 caches, a row a request, uniform routing: µs a layer by rows.
FLOORS_US = {1: 16, 2: 23, 4: 37, 8: 62, 16: 104}
TARGETS_US = {
    1: (45, 30),
    2: (52, 37),
    4: (65, 50),
    8: (89, 78),
    16: (129, 120),
}  # unfused and mono

EXPERT_BYTES = Formats.weight_bytes("mxfp4", 3 * SHAPE.expert_size, SHAPE.hidden)
QKV_BYTES = Formats.weight_bytes("fp8", (SHAPE.heads + 4) * SHAPE.head_dim, SHAPE.hidden)
O_BYTES = Formats.weight_bytes("fp8", SHAPE.hidden, SHAPE.heads * SHAPE.head_dim)
_ROUTER_BYTES = Formats.weight_bytes("bf16", SHAPE.experts, SHAPE.hidden)


def targets_us(setting: Setting, width: int) -> tuple[int, int] | None:
    """Return the bars (unfused, mono) where ``setting`` is the issue's, else None."""
    return TARGETS_US.get(width) if setting == Setting() else None


def expected_union(rows: int) -> float:
    """Return the mean union of ``rows`` rows whose experts are drawn uniformly."""
    kept = 1 - SHAPE.experts_per_token / SHAPE.experts
    return SHAPE.experts * (1 - kept**rows)


def chosen_blocks(setting: Setting, width: int) -> int:
    """Return how many blocks a step's rows choose where no two rows choose the same one."""
    visible = -(-setting.context // SHAPE.block)
    return (width - setting.pads) * min(SHAPE.topk_blocks, visible)


def layer_bytes(setting: Setting, width: int, union: float, blocks: int) -> float:
    """Return the bytes that a sparse layer must read (`FLOOR` says which)."""
    kv, index = Caches(setting.kv, setting.index).token_bytes(SHAPE.head_dim)
    requests = len(setting.requests(width))
    # A request's own block, which its rows choose always, ends with its last token.
    tokens = blocks * SHAPE.block - requests * (-setting.context % SHAPE.block)
    weights = QKV_BYTES + O_BYTES + _ROUTER_BYTES + (union + 1) * EXPERT_BYTES
    return weights + tokens * 2 * kv + requests * setting.context * index


def held_bytes(setting: Setting, layers: int) -> int:
    """Return the bytes of memory that a bench of ``layers`` layers takes, copies for checks too."""
    kv, index = Caches(setting.kv, setting.index).token_bytes(SHAPE.head_dim)
    caches = setting.pages() * SHAPE.block * (2 * kv + index)
    weights = QKV_BYTES + O_BYTES + _ROUTER_BYTES + (SHAPE.experts + 1) * EXPERT_BYTES
    return layers * (weights + caches) + 3 * caches + MOST_ROWS * (8 << 20) + _WORK_BYTES


# Two gigabytes that are copied to measure bandwidth, float32 of weights that are judged, contexts.
_WORK_BYTES = 6 << 30
