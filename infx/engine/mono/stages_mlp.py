"""What tasks compute from the stream after attention to the layer's output."""

from __future__ import annotations

from infx.engine.mono.arithmetic import (
    Vector,
    add_up,
    dot,
    f32,
    plus,
    scaled,
    sigmoid,
    times,
    vector,
)
from infx.engine.mono.routing import Deal, factor, inverse_root
from infx.engine.mono.rows import (
    add_residual,
    blank,
    features,
    joined,
    out_features,
    part_features,
    product,
    weighed,
)
from infx.engine.mono.task import Task

__all__ = ["dense_down", "dense_up", "down", "router", "up"]


def router(task: Task) -> None:
    """Write one part of K of some experts' logits, without the norm's factor, and of Σ x²."""
    tile, part = task.at["tile"], task.at["part"]
    rows = part_features(task, "mid", "mlp_norm")
    norm, weight = task.weight("mlp_norm", part)[0], task.weight("router_weight", tile, part)
    if tile == 0:
        task.write("mid_squares", [dot(task.sum("mlp_square"), x, x) for x in rows], part)
    sums = [product(task.sum("router"), weighed(x, norm), weight) for x in rows]
    task.write("logit_sums", joined(sums), tile, part)


def up(task: Task) -> None:
    """Write some features between an expert's matrices, for each (row, slot) that is its."""
    deal, tile = _deal(task), task.at["tile"]
    expert, pairs = _work(task, deal)
    weight = task.weight("up_weight", expert, tile)
    norm = vector([])
    for part in range(task.table.region("mlp_norm").tiles[0]):
        norm += task.weight("mlp_norm", part)[0]
    where = {"expert": expert, "union_rank": deal.union.index(expert)}
    for row, slot in pairs:
        scale = factor(task, "mid_squares", row, "router_parts")
        x = weighed(features(task, "mid", None, row), norm)
        both = scaled(scale, product(task.sum("up"), x, weight, where))
        task.write("mids", _swiglu(task, both), row, slot, tile)


def _work(task: Task, deal: Deal) -> tuple[int, list[tuple[int, int]]]:
    """Return the task's expert and the (row, slot) pairs that it works for."""
    if "expert" in task.at:
        return task.at["expert"], deal.pairs(task.at["expert"])
    row, slot = task.at["row"], task.at["slot"]
    return deal.experts[row][slot], [(row, slot)]


def _deal(task: Task) -> Deal:
    """Return the routing; a table that keeps pads (none that passes the check) routes those too."""
    kept = any("routed" in stage.live for stage in task.table.stages)
    return Deal.of(task, range(task.table.width) if kept else None)


def down(task: Task) -> None:
    """Write a tile of the layer's output; the first task writes the routing too."""
    deal, parts = _deal(task), blank(task, out_features(task))
    for row in task.rows:
        parts[row] = _mixed(task, deal, row)
    add_residual(task, "down_ranks", joined(parts), "mid", _outputs(task))
    if task.at["tile"] == 0:
        topk = task.shape.experts_per_token
        lines = [_line(task, deal, row, topk) for row in range(task.table.width)]
        task.write("routing", [number for line in lines for number in line], 0)


def _mixed(task: Task, deal: Deal, row: int) -> Vector[float]:
    """Return Σ weight · expert(x) of a row, each expert by itself first, in the order of slots."""
    slots, last = range(task.shape.slots), task.table.region("mids").tiles[2] - 1
    done = [_one(task, deal, row, slot) for slot in slots]
    weights = deal.weights[row]
    return add_up(
        task.sum("combine"),
        lambda slot: scaled(weights[slot], done[slot]),
        out_features(task),
        arrivals=[task.time("mids", row, slot, last) for slot in slots],
    )


def _one(task: Task, deal: Deal, row: int, slot: int) -> Vector[float]:
    expert, x = deal.experts[row][slot], vector([])
    for tile in range(task.table.region("mids").tiles[2]):
        x += task.read("mids", row, slot, tile)
    where = {"expert": expert, "union_rank": deal.union.index(expert)}
    return product(task.sum("down"), x, task.weight("down_weight", expert, task.at["tile"]), where)


def _line(task: Task, deal: Deal, row: int, topk: int) -> list[float]:
    if row not in task.rows:
        return [-1.0] * topk + [0.0] * topk
    return [*deal.experts[row][:topk], *deal.weights[row][:topk]]


def dense_up(task: Task) -> None:
    """Write some features between the dense MLP's matrices."""
    tile = task.at["tile"]
    weight, norm = task.weight("dense_up_weight", tile), task.weight("mlp_norm", 0)[0]
    rows = blank(task, len(weight[0]) // 2)
    for row in task.rows:
        x = features(task, "mid", None, row)
        scale = inverse_root(task, dot(task.sum("mlp_square"), x, x))
        both = scaled(scale, product(task.sum("dense_up"), weighed(x, norm), weight))
        rows[row] = _swiglu(task, both)
    task.write("dense_mids", joined(rows), tile)


def dense_down(task: Task) -> None:
    """Write a tile of the layer's output."""
    weight = task.weight("dense_down_weight", task.at["tile"])
    parts = blank(task, out_features(task))
    for row in task.rows:
        x = features(task, "dense_mids", None, row)
        parts[row] = product(task.sum("dense_down"), x, weight)
    add_residual(task, "dense_down_ranks", joined(parts), "mid", _outputs(task))


def _outputs(task: Task) -> tuple[str, ...]:
    return ("stream_out", "aux") if task.table.tapped else ("stream_out",)


def _swiglu(task: Task, both: Vector[float]) -> Vector[float]:
    """Return (u + 1) g σ(alpha g) of [gates | ups], g and ±u cut at the limit."""
    alpha, limit, half = task.shape.swiglu_alpha, task.shape.swiglu_limit, len(both) // 2
    gates = [min(gate, limit) for gate in both[:half]]
    lit = [f32(gate * sigmoid(f32(alpha * gate))) for gate in gates]
    # In this order a NaN stays one.
    ups = [min(max(up, -limit), limit) for up in both[half:]]
    return plus(vector(lit), times(lit, ups))
