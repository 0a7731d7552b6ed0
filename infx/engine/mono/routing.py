"""What data decide in a step: who chose which expert, and which tasks of a stage are live."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from infx.engine.mono.arithmetic import add_up, f32, sigmoid, vector
from infx.engine.mono.table import Stage
from infx.engine.mono.task import Task

__all__ = ["Deal", "factor", "live_tasks", "request_of", "seen_keys"]


@dataclass(frozen=True, slots=True)
class Deal:
    """For each row that routes: its experts in order of choice, the shared one last; weights."""

    experts: dict[int, tuple[int, ...]]
    weights: dict[int, tuple[float, ...]]

    @classmethod
    def of(cls, task: Task, rows: Sequence[int] | None = None) -> Deal:
        """Return the routing of ``rows`` (all that are no pads), from what ``task`` reads."""
        wanted = task.rows if rows is None else rows
        routed = {row: task.once(row, functools.partial(_route, task, row)) for row in wanted}
        return cls(
            {row: ids for row, (ids, _) in routed.items()},
            {row: weights for row, (_, weights) in routed.items()},
        )

    @property
    def union(self) -> list[int]:
        """Experts that some row reads, ascending."""
        return sorted({expert for ids in self.experts.values() for expert in ids})

    def pairs(self, expert: int) -> list[tuple[int, int]]:
        """Return the (row, slot) pairs that ``expert`` works for."""
        return [
            (row, slot)
            for row, ids in self.experts.items()
            for slot, chosen in enumerate(ids)
            if chosen == expert
        ]


def factor(task: Task, region: str, row: int, total: str) -> float:
    """Return 1 / sqrt(mean x² + eps) of a row, whose squares ``region`` holds in parts of K."""
    parts = task.table.region(region).tiles[0]
    squares = add_up(
        task.sum(total), lambda part: task.read(region, part)[row : row + 1], 1, extent=parts
    )
    return inverse_root(task, squares[0])


def inverse_root(task: Task, squares: float) -> float:
    """Return the norm's factor of a row whose squares add up to ``squares``."""
    mean = f32(f32(squares / task.shape.hidden) + f32(task.shape.norm_eps))
    return f32(1.0 / f32(mean**0.5))


def _route(task: Task, row: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the row's experts and weights: the best of sigmoid + bias, ties to the lower."""
    shape = task.shape
    logits = _logits(task, row)
    chance = [sigmoid(logit) for logit in logits]
    bias = task.weight("router_bias", 0)[0]
    score = vector([p + b for p, b in zip(chance, bias, strict=True)])
    ranked = sorted(range(shape.experts), key=lambda expert: (-score[expert], expert))
    chosen = ranked[: shape.experts_per_token]
    total = 0.0
    for expert in chosen:
        total = f32(total + chance[expert])
    weights = (f32(f32(shape.routed_scale * chance[expert]) / total) for expert in chosen)
    return (*chosen, shape.experts), (*weights, 1.0)


def _logits(task: Task, row: int) -> list[float]:
    tiles, parts = task.table.region("logit_sums").tiles
    scale = factor(task, "mid_squares", row, "router_parts")
    size, logits = task.shape.experts // tiles, []
    for tile in range(tiles):
        sums = add_up(
            task.sum("router_parts"),
            lambda part, tile=tile: task.read("logit_sums", tile, part)[  # type: ignore[misc]
                row * size : (row + 1) * size
            ],
            size,
            extent=parts,
        )
        logits += [f32(scale * number) for number in sums]
    return logits


def request_of(task: Task, row: int) -> list[int]:
    """Return the rows of the request of ``row``, ascending."""
    ids = task.step.batch_ids
    return [other for other in task.rows if ids[other] == ids[row]]


def seen_keys(task: Task, row: int) -> int:
    """Return the keys that split attention of a row goes over; only its own block is not full."""
    shape, position = task.shape, task.step.positions[row]
    if task.table.kind == "dense":
        return position + 1
    blocks = min(shape.topk_blocks, position // shape.block + 1)
    return (blocks - 1) * shape.block + position % shape.block + 1


def live_tasks(stage: Stage, task: Task) -> list[dict[str, int]]:
    """Return the stage's tasks that exist in this step, ascending."""
    union = _union(stage, task)
    live = []
    for at in stage.indices():
        if "expert" in at and at["expert"] not in union:
            continue
        if "row" in at and stage.live and not _row_live(stage, task, at):
            continue
        live.append(at)
    return live


def _union(stage: Stage, task: Task) -> set[int]:
    if "chosen" in stage.live:
        return set(Deal.of(task).union)
    if "routed" in stage.live:  # Not in LIVE: what a table that keeps pads would say.
        return set(Deal.of(task, range(task.table.width)).union)
    return set()


def _row_live(stage: Stage, task: Task, at: dict[str, int]) -> bool:
    row = at["row"]
    if row not in task.rows:
        return False
    request = request_of(task, row)
    if "leader" in stage.live and row != request[0]:
        return False
    if "seen" not in stage.live:
        return True
    if "chunk" in at:
        last = max(task.step.positions[other] for other in request)
        return at["chunk"] * task.table.grain.score_tile * task.shape.block <= last
    return at["partition"] * task.shape.partition < seen_keys(task, row)
