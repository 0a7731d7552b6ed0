"""The interpreter as a subject of the probe, with a table that a test may change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from infx.engine.mono.arithmetic import vector
from infx.engine.mono.formats import encode
from infx.engine.mono.interpret import Result, run
from infx.engine.mono.probe.rows import ZERO, Filling, Left, Ran, Row
from infx.engine.mono.shape import Kind, LayerShape
from infx.engine.mono.table import Table
from infx.engine.mono.task import Hooks, PagedCache, Step
from infx.engine.mono.weights import Weights
from tests.engine.mono.tiny_layers import TINY, layer, table


@dataclass
class Oracle:
    """One sparse layer of the tiny shape; ``change`` makes the table that is run."""

    change: Callable[[Table], Table] = lambda made: made
    shape: LayerShape = TINY
    kinds: Sequence[Kind] = ("sparse",)
    runs: int = 0
    tables: dict[int, Table] = field(default_factory=dict)

    def fill(self, filling: Filling, nothing: int) -> None:
        self.poison = 0.0 if nothing == ZERO else float("nan")
        slots, vectors = filling.history()
        kept = PagedCache(table().caches)
        for i, slot in enumerate(slots.tolist()):
            for head in range(self.shape.kv_heads):
                kept.keys[slot, head] = encode("fp32", vectors["keys"][i, head].tolist())
                kept.values[slot, head] = encode("fp32", vectors["values"][i, head].tolist())
            kept.index_keys[slot, 0] = encode("fp32", vectors["index_keys"][i].tolist())
        self.kept = kept

    def run(self, layer: int, *steps: Sequence[Row], spoiled: Collection[int] = ()) -> list[Ran]:
        kept = self.kept
        cache = PagedCache(kept.caches, dict(kept.keys), dict(kept.values), dict(kept.index_keys))
        return [self._step(rows, cache, set(spoiled)) for rows in steps]

    def _step(self, rows: Sequence[Row], cache: PagedCache, spoiled: set[int]) -> Ran:
        heard: set[int] = set()

        def hear(region: str, tile: tuple[int, ...]) -> None:
            if region in ("up_weight", "down_weight"):
                heard.add(tile[0])

        self.runs += 1
        made = self._table(len(rows))
        step = Step(
            batch_ids=tuple(row.request for row in rows),
            positions=tuple(row.position for row in rows),
            slots=tuple(row.slot(self.shape.block) for row in rows),
            pages=tuple(row.pages for row in rows),
        )
        hooks = Hooks(self.poison, hear)
        streams = [vector(row.stream.tolist()) for row in rows]
        weights = Weights(made, layer("sparse", self.shape))
        result = run(made, weights, cache, step, streams, seed=self.runs, hooks=hooks)
        left = tuple(self._left(n, row, result, cache) for n, row in enumerate(rows))
        return Ran(left, read=bool(heard & spoiled))

    def _table(self, width: int) -> Table:
        if width not in self.tables:
            self.tables[width] = self.change(table(width=width))
        return self.tables[width]

    def _left(self, number: int, row: Row, result: Result, cache: PagedCache) -> Left:
        slot, kept, index = row.slot(self.shape.block), b"", b""
        if row.live:
            heads = [(slot, head) for head in range(self.shape.kv_heads)]
            kept = b"".join(part[at] for part in (cache.keys, cache.values) for at in heads)
            index = cache.index_keys[slot, 0]
        return Left(result.stream[number].tobytes(), kept, index, result.routing[number])
