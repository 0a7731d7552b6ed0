"""A shape of a few thousand parameters, for tests that take thousands of steps."""

from __future__ import annotations

import pytest

from infx.engine.shapes import MODELS, mini

BLOCK = 4
TINY = mini(
    name="tiny", hidden_size=32, num_layers=3, heads=4, head_dim=8, rotary_dim=4, block_size=BLOCK,
    topk_blocks=3, experts=6, experts_per_token=2, expert_size=12, shared_size=8, dense_size=20,
    max_positions=2048, aux_layers=(0, 1, 2), block_layers=(0, 1, 2),
)  # fmt: skip


def serve_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``model="tiny"`` be served."""
    monkeypatch.setitem(MODELS, "tiny", lambda: TINY)
