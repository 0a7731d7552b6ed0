"""Tiny layers with random weights, and steps of every sort, for the tests of mono."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infx.engine.mono.arithmetic import vector
from infx.engine.mono.interpret import Result, run
from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import CPU_GRAIN, MOST_ROWS, Caches, Grain, Kind, LayerShape, Machine
from infx.engine.mono.table import Table
from infx.engine.mono.task import Hooks, PagedCache, Step
from infx.engine.mono.weights import Weights

# Two kv heads of two heads, pages of 4 tokens, partitions of 5 keys (so that they cross pages).
TINY = LayerShape(
    hidden=24,
    heads=4,
    kv_heads=2,
    head_dim=8,
    rotary_dim=4,
    block=4,
    topk_blocks=3,
    experts=6,
    experts_per_token=2,
    expert_size=8,
    dense_size=16,
    reach=48,
    partition=5,
)
# Every sum has several lanes and every K several parts.
FINE = replace(
    CPU_GRAIN,
    qkv_tile=4,
    qkv_parts=2,
    score_tile=2,
    out_tile=6,
    router_tile=3,
    router_parts=4,
    up_tile=4,
    dense_tile=8,
    chunk=2,
    lanes=3,
    down_lanes=2,
    dot_lanes=4,
    square_lanes=4,
    narrow_rows=4,
    folded_rows=1,
    merge_group=2,
)
MACHINE = Machine(blocks=3, threads=1, resident=4, shared_bytes=1 << 16)


def table(kind: Kind = "sparse", width: int = 4, **changes: Any) -> Table:
    """Return the tiny table, with any argument of `make_table` changed."""
    given: dict[str, Any] = {"shape": TINY, "machine": MACHINE, "grain": FINE} | changes
    return make_table(kind=kind, width=width, **given)


def matrix(draw: random.Random, inputs: int, outputs: int) -> list[list[float]]:
    scale = inputs**-0.5
    return [list(vector([scale * draw.gauss(0, 1) for _ in range(outputs)])) for _ in range(inputs)]


def layer(kind: Kind, shape: LayerShape = TINY, seed: int = 0) -> dict[str, Any]:
    """Return random weights of a layer by infx's names."""
    draw = random.Random(seed)
    heads = shape.head_kinds(kind != "dense")["v"]
    mlp = shape.expert_size if kind == "sparse" else shape.dense_size

    def norms(count: int, size: int) -> list[list[float]]:
        return [list(vector([0.1 * draw.gauss(0, 1) for _ in range(size)])) for _ in range(count)]

    made: dict[str, Any] = {
        "attention_norm": norms(1, shape.hidden)[0],
        "mlp_norm": norms(1, shape.hidden)[0],
        "head_norm": norms(heads.start, shape.head_dim),
        "qkv": matrix(draw, shape.hidden, heads.stop * shape.head_dim),
        "o": matrix(draw, shape.heads * shape.head_dim, shape.hidden),
        "up": matrix(draw, shape.hidden, 2 * mlp),
        "down": matrix(draw, mlp, shape.hidden),
    }
    if kind == "sparse":
        made["router"] = matrix(draw, shape.hidden, shape.experts)
        made["router_bias"] = norms(1, shape.experts)[0]
        each = range(shape.experts)
        made["experts_up"] = [matrix(draw, shape.hidden, 2 * mlp) for _ in each]
        made["experts_down"] = [matrix(draw, mlp, shape.hidden) for _ in each]
    return made


@dataclass
class Row:
    """A row of a step: its input, request, position and pages; a pad has request -1."""

    request: int
    position: int
    pages: tuple[int, ...]
    stream: Sequence[float]

    @property
    def slot(self) -> int:
        page = self.pages[self.position // TINY.block] if self.pages else 0
        return page * TINY.block + self.position % TINY.block


PAD_PAGES = ()


def pad(poison: float = float("nan")) -> Row:
    """Return a pad whose input is poison."""
    return Row(-1, 0, PAD_PAGES, vector([poison] * TINY.hidden))


@dataclass
class World:
    """A layer with a filled cache, whose rows can be run in any company."""

    kind: Kind = "sparse"
    caches: Caches = field(default_factory=Caches)
    shape: LayerShape = TINY
    grain: Grain = FINE
    machine: Machine = MACHINE
    seed: int = 0
    requests: int = MOST_ROWS

    def __post_init__(self) -> None:
        self._weights: dict[int, Weights] = {}
        self.layer = layer(self.kind, self.shape, self.seed)
        draw = random.Random(self.seed + 1)
        self.contexts = [draw.randrange(0, self.shape.reach - 4) for _ in range(self.requests)]
        pages = list(range(self.requests * self.shape.pages))
        draw.shuffle(pages)
        count = self.shape.pages
        self.pages = [tuple(pages[i * count : (i + 1) * count]) for i in range(self.requests)]
        self._history = [
            (request, position, [draw.gauss(0, 1) for _ in range(3 * self.shape.head_dim)])
            for request, context in enumerate(self.contexts)
            for position in range(context)
        ]
        self.draw = draw

    def row(self, request: int, ahead: int = 0) -> Row:
        """Return a random row of ``request``, ``ahead`` tokens after its context."""
        numbers = vector([self.draw.gauss(0, 1) for _ in range(self.shape.hidden)])
        return Row(request, self.contexts[request] + ahead, self.pages[request], numbers)

    def cache(self) -> PagedCache:
        """Return a cache that holds every request's context."""
        from infx.engine.mono.formats import encode

        made, dim = PagedCache(self.caches), self.shape.head_dim
        for request, position, numbers in self._history:
            slot = Row(request, position, self.pages[request], ()).slot
            for head in range(self.shape.kv_heads):
                turn = numbers[head:] + numbers[:head]
                made.keys[slot, head] = encode(made.kind("keys"), turn[:dim])
                made.values[slot, head] = encode(made.kind("values"), turn[dim : 2 * dim])
            if self.kind != "dense":
                made.index_keys[slot, 0] = encode(made.kind("index_keys"), numbers[2 * dim :])
        return made

    def table(self, width: int, **changes: Any) -> Table:
        """Return the layer's table."""
        given: dict[str, Any] = {
            "shape": self.shape,
            "machine": self.machine,
            "grain": self.grain,
            "caches": self.caches,
        }
        return make_table(kind=self.kind, width=width, **given | changes)

    def run(
        self,
        rows: Sequence[Row],
        *,
        table: Table | None = None,
        cache: PagedCache | None = None,
        seed: int | None = None,
        hooks: Hooks | None = None,
    ) -> Ran:
        """Return what ``rows`` become, and the cache after it."""
        table = table or self.table(len(rows))
        step = Step(
            batch_ids=tuple(row.request for row in rows),
            positions=tuple(row.position for row in rows),
            slots=tuple(row.slot for row in rows),
            pages=tuple(row.pages for row in rows),
        )
        cache = cache or self.cache()
        streams = [row.stream for row in rows]
        weights = self._weights.setdefault(id(table.grain), Weights(table, self.layer))
        result = run(table, weights, cache, step, streams, seed=seed, hooks=hooks)
        return Ran(result, cache, rows)


@dataclass
class Ran:
    """A result with the cache that it left."""

    result: Result
    cache: PagedCache
    rows: Sequence[Row]

    def bits(self, row: int) -> tuple[object, ...]:
        """Return all that ``row`` made: stream, routing, and what it put into the caches."""
        slot, cache = self.rows[row].slot, self.cache
        kept = [
            {at: data for at, data in part.items() if at[0] == slot}
            for part in (cache.keys, cache.values, cache.index_keys)
        ]
        routing = self.result.routing[row] if self.result.routing else ()
        return (self.result.stream[row].tobytes(), routing, *kept)


def with_stage(made: Table, name: str, /, **changes: Any) -> Table:
    """Return ``made`` with fields of one stage changed."""
    stages = (replace(s, **changes) if s.name == name else s for s in made.stages)
    return replace(made, stages=tuple(stages))


def with_region(made: Table, name: str, /, **changes: Any) -> Table:
    """Return ``made`` with fields of one region changed."""
    regions = (replace(r, **changes) if r.name == name else r for r in made.regions)
    return replace(made, regions=tuple(regions))


def with_sum(made: Table, name: str, /, **changes: Any) -> Table:
    """Return ``made`` with fields of one sum changed."""
    sums = (replace(s, **changes) if s.name == name else s for s in made.sums)
    return replace(made, sums=tuple(sums))
