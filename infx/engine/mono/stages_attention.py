"""What tasks compute from the residual stream to the stream after attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

from infx.engine.mono.arithmetic import (
    Vector,
    add_up,
    dot,
    exponential,
    f32,
    minus,
    plus,
    scaled,
    times,
    vector,
)
from infx.engine.mono.formats import e4m3
from infx.engine.mono.routing import factor, request_of, seen_keys
from infx.engine.mono.rows import (
    add_residual,
    blank,
    joined,
    part_features,
    product,
    row_of,
    weighed,
)
from infx.engine.mono.task import Task

__all__ = ["head", "merge", "output", "qkv", "score", "select", "split"]


def qkv(task: Task) -> None:
    """Write one part of K of some projected features, without the norm's factor, and of Σ x²."""
    tile, part = task.at["tile"], task.at["part"]
    rows = part_features(task, "stream_in", "attention_norm")
    norm, weight = task.weight("attention_norm", part)[0], task.weight("qkv_weight", tile, part)
    if tile == 0:
        squares = [dot(task.sum("qkv_square"), x, x) for x in rows]
        task.write("qkv_squares", squares, part)
    sums = [product(task.sum("qkv"), weighed(x, norm), weight) for x in rows]
    task.write("qkv_sums", joined(sums), part, tile)


def head(task: Task) -> None:
    """Write a head of all rows: normed and turned, to where its kind belongs."""
    head, shape = task.at["head"], task.shape
    kinds = shape.head_kinds(task.table.kind != "dense")
    kind = next(name for name, span in kinds.items() if head in span)
    number = head - kinds[kind].start
    vectors = blank(task, shape.head_dim)
    for row in task.rows:
        x = _head_features(task, head, row)
        vectors[row] = x if kind == "v" else _turned(task, _head_normed(task, head, x), row)
    if kind in ("q", "iq"):
        task.write({"q": "queries", "iq": "index_queries"}[kind], joined(vectors), number)
        return
    for row in task.rows:
        region = {"k": "keys", "v": "values", "ik": "index_keys"}[kind]
        task.append(region, row, number, vectors[row])


def _head_features(task: Task, head: int, row: int) -> Vector[float]:
    """Return a row's head of the projection: parts of K added, then the norm's factor."""
    parts = task.table.region("qkv_sums").tiles[0]
    size = task.table.region("qkv_sums").tile_bytes // 4 // task.table.width
    a_head = task.shape.head_dim // size
    x = vector([])
    for tile in range(head * a_head, (head + 1) * a_head):
        x += add_up(
            task.sum("qkv_parts"),
            lambda part, tile=tile: task.read("qkv_sums", part, tile)[  # type: ignore[misc]
                row * size : (row + 1) * size
            ],
            size,
            extent=parts,
        )
    return scaled(factor(task, "qkv_squares", row, "qkv_parts"), x)


def _head_normed(task: Task, head: int, x: Vector[float]) -> Vector[float]:
    squares = dot(task.sum("head_square"), x, x)
    mean = f32(f32(squares / len(x)) + f32(task.shape.norm_eps))
    return weighed(scaled(f32(1.0 / f32(mean**0.5)), x), task.weight("head_norm", head)[0])


def _turned(task: Task, x: Vector[float], row: int) -> Vector[float]:
    """Return ``x`` with its first rotary dimensions turned by the row's position."""
    shape, half = task.shape, task.shape.rotary_dim // 2
    position = task.step.positions[row]
    angles = [position * shape.rope_theta ** -(2 * i / shape.rotary_dim) for i in range(half)]
    cos, sin = vector(map(math.cos, angles)), vector(map(math.sin, angles))
    a, b, rest = x[:half], x[half : 2 * half], x[2 * half :]
    return minus(times(a, cos), times(b, sin)) + plus(times(b, cos), times(a, sin)) + rest


def score(task: Task) -> None:
    """Write the best score of each of some pages, for all rows of a request."""
    pages = task.table.grain.score_tile
    first = task.at["chunk"] * pages
    for row in request_of(task, task.at["row"]):
        scores = [
            _best(task, row, head, page)
            for head in range(task.shape.kv_heads)
            for page in range(first, first + pages)
        ]
        task.write("scores", scores, row, task.at["chunk"])


def _best(task: Task, row: int, head: int, page: int) -> float:
    """Return the largest q k of the page's tokens that the row sees; -inf: none."""
    block, position = task.shape.block, task.step.positions[row]
    query = row_of(task.read("index_queries", head), row, task.shape.head_dim)
    keys = (
        task.token("index_keys", row, 0, at)
        for at in range(page * block, min((page + 1) * block, position + 1))
    )
    return max((dot(task.sum("index_dot"), query, key) for key in keys), default=-math.inf)


def select(task: Task) -> None:
    """Write the row's chosen blocks: the best ones and its own, ties to the lower, ascending."""
    row, group, shape = task.at["row"], task.at["group"], task.shape
    own, tile = task.step.positions[row] // shape.block, task.table.grain.score_tile
    scores = [
        task.read("scores", row, page // tile)[group * tile + page % tile]
        for page in range(own + 1)
    ]
    scores[own] = math.inf
    ranked = sorted(range(own + 1), key=lambda page: (-_ordered(scores[page]), page))
    chosen = sorted(ranked[: shape.topk_blocks])
    task.write("chosen", chosen + [-1] * (shape.topk_blocks - len(chosen)), row, group)


def _ordered(score: float) -> float:
    return -math.inf if math.isnan(score) else score


def split(task: Task) -> None:
    """Write the partial softmaxes of a group's heads over one partition of the row's keys."""
    row, group, shape = task.at["row"], task.at["group"], task.shape
    first = task.at["partition"] * shape.partition
    places = range(first, min(first + shape.partition, seen_keys(task, row)))
    at = [_position(task, row, group, place) for place in places]
    keys = [task.token("keys", row, group, position) for position in at]
    values = [task.token("values", row, group, position) for position in at]
    heads = range(
        group * shape.heads // shape.kv_heads, (group + 1) * shape.heads // shape.kv_heads
    )
    partials = [_partial(task, row, head, keys, values) for head in heads]
    task.write("partials", joined(partials), row, group, task.at["partition"])


def _position(task: Task, row: int, group: int, place: int) -> int:
    """Return the position of the row's ``place``-th key: of all, or of its chosen blocks."""
    if task.table.kind == "dense":
        return place
    block = task.shape.block
    return int(task.read("chosen", row, group)[place // block]) * block + place % block


def _partial(
    task: Task,
    row: int,
    head: int,
    keys: Sequence[Sequence[float]],
    values: Sequence[Sequence[float]],
) -> Vector[float]:
    """Return Σ p v, the largest score and Σ p, with p = e^(score - largest)."""
    dim = task.shape.head_dim
    query: Sequence[float] = row_of(task.read("queries", head), row, dim)
    if task.table.caches.kv == "mxfp4":
        query = e4m3(query)
    query = scaled(f32(1 / math.sqrt(dim)), query)
    scores = [dot(task.sum("attention_dot"), query, key) for key in keys]
    largest = max(scores)
    p = [exponential(f32(score - largest)) for score in scores]
    total = task.sum("attention_keys")
    mixed = add_up(total, lambda j: scaled(p[j], values[j]), dim, extent=len(keys))
    weight = add_up(total, lambda j: vector([p[j]]), 1, extent=len(keys))
    return mixed + vector([largest]) + weight


def merge(task: Task) -> None:
    """Write attention's output of a head."""
    vectors = blank(task, task.shape.head_dim)
    for row in task.rows:
        vectors[row] = _merged(task, row, task.at["head"])
    task.write("merged", joined(vectors), task.at["head"])


def _merged(task: Task, row: int, head: int) -> Vector[float]:
    """Return attention's output of a head: its partitions merged in their order."""
    shape, width = task.shape, task.shape.head_dim + 2
    group, place = divmod(head, shape.heads // shape.kv_heads)
    count = -(-seen_keys(task, row) // shape.partition)
    parts = [row_of(task.read("partials", row, group, i), place, width) for i in range(count)]
    largest = max(part[-2] for part in parts)
    factors = [exponential(f32(part[-2] - largest)) for part in parts]
    total = add_up(
        task.sum("merge"),
        lambda i: scaled(factors[i], parts[i][:-2] + parts[i][-1:]),
        width - 1,
        extent=count,
    )
    return vector([number / total[-1] for number in total[:-1]])


def output(task: Task) -> None:
    """Write a tile of the stream after attention."""
    tile, shape = task.at["tile"], task.shape
    weight, folded = task.weight("o_weight", tile), not task.table.has("merge")
    parts = blank(task, len(weight[0]))
    for row in task.rows:
        x = vector([])
        for head in range(shape.heads):
            merged = _merged(task, row, head) if folded else task.read("merged", head)
            x += merged if folded else row_of(merged, row, shape.head_dim)
        parts[row] = product(task.sum("o"), x, weight)
    add_residual(task, "o_ranks", joined(parts), "stream_in", ("mid",))
