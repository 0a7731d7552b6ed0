"""What a task of each stage computes, in plain Python: the twin of every back end's functions.

A function gets its `Task` and nothing else. Rows that are pads are left 0.
"""

from __future__ import annotations

from collections.abc import Callable

from infx.engine.mono import stages_attention as attention
from infx.engine.mono import stages_mlp as mlp
from infx.engine.mono.task import Task

__all__ = ["STAGES"]

STAGES: dict[str, Callable[[Task], None]] = {
    "qkv": attention.qkv,
    "head": attention.head,
    "score": attention.score,
    "select": attention.select,
    "split": attention.split,
    "merge": attention.merge,
    "o": attention.output,
    "router": mlp.router,
    "up": mlp.up,
    "down": mlp.down,
    "dense_up": mlp.dense_up,
    "dense_down": mlp.dense_down,
}
