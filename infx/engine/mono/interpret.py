"""The oracle: a table run in plain Python, by as many blocks as it has, in any legal interleaving.

A layer of a tiny shape takes tens of milliseconds. Nothing here knows the order of stages, tasks or
sums: all of it comes from the table, and a stage that touches what it did not declare is refused.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infx.engine.mono.arithmetic import Vector, vector
from infx.engine.mono.routing import live_tasks
from infx.engine.mono.stages import STAGES
from infx.engine.mono.table import Stage, Table, Wait
from infx.engine.mono.task import Hooks, PagedCache, Scene, Step, Task
from infx.engine.mono.weights import Weights

__all__ = ["DeadlockError", "Result", "run"]


class DeadlockError(RuntimeError):
    """Every block waits."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a layer gives: ``stream`` [rows][hidden] and ``routing`` [rows][topk], expert ids.

    ``routing`` is () in a dense layer, ``aux`` (the stream as an auxiliary state) where none is
    tapped.
    """

    stream: tuple[Vector[float], ...]
    routing: tuple[tuple[int, ...], ...]
    aux: tuple[Vector[float], ...]


def run(
    table: Table,
    weights: Weights,
    cache: PagedCache,
    step: Step,
    stream: Sequence[Sequence[float]],
    *,
    seed: int | None = None,
    hooks: Hooks | None = None,
) -> Result:
    """Return what the layer makes of ``stream`` [rows][hidden]; fills ``cache`` with its tokens.

    ``seed`` chooses at random which block goes on next; without it the lowest that can. Raises
    TraceError, DeadlockError.
    """
    rows = tuple(row for row, batch in enumerate(step.batch_ids) if batch >= 0)
    machine = _Run(Scene(table, weights, cache, step, hooks or Hooks(), rows))
    machine.load(stream)
    machine.go(seed)
    return machine.result()


class _Run:
    """Counters and blocks of one layer."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._table = scene, scene.table
        self._arrived: dict[tuple[str, int], int] = {}
        self._live: dict[str, list[dict[str, int]]] = {}

    def load(self, stream: Sequence[Sequence[float]]) -> None:
        """Put the layer's input where the last layer would have."""
        tiles = self._table.region("stream_in").tiles[0]
        size = self._table.shape.hidden // tiles
        for tile in range(tiles):
            rows = (row[tile * size : (tile + 1) * size] for row in stream)
            self._scene.tiles["stream_in", (tile,)] = vector([x for row in rows for x in row])

    def result(self) -> Result:
        """Return what the layer left in its outputs."""
        routing: tuple[tuple[int, ...], ...] = ()
        if self._table.kind == "sparse":
            topk = self._table.shape.experts_per_token
            given = self._scene.tiles["routing", (0,)]
            lines = (given[i : i + topk] for i in range(0, len(given), 2 * topk))
            routing = tuple(tuple(map(int, line)) for line in lines)
        aux = self._rows("aux") if self._table.tapped else ()
        return Result(self._rows("stream_out"), routing, aux)

    def _rows(self, region: str) -> tuple[Vector[float], ...]:
        tiles = self._table.region(region).tiles[0]
        size = self._table.shape.hidden // tiles
        rows: list[Vector[float]] = [array("f") for _ in range(self._table.width)]
        for tile in range(tiles):
            for row, numbers in enumerate(rows):
                numbers += self._scene.tiles[region, (tile,)][row * size : (row + 1) * size]
        return tuple(rows)

    def go(self, seed: int | None) -> None:
        """Run all blocks to their ends."""
        draw = random.Random(seed)
        running = [self._block(block) for block in range(self._table.machine.blocks)]
        blocked: list[Iterator[bool]] = []
        while running:
            block = running[0 if seed is None else draw.randrange(len(running))]
            moved = next(block, None)
            if moved is None:
                running.remove(block)
            elif not moved:
                running.remove(block)
                blocked.append(block)
                continue
            running, blocked = running + blocked, []
        if blocked:
            raise DeadlockError(f"{len(blocked)} blocks wait; arrived: {self._arrived}")

    def _block(self, block: int) -> Iterator[bool]:
        """Walk the stages; yield True after a task or an arrival, False while waiting."""
        for stage in self._table.stages:
            yield from self._until([wait for wait in stage.waits if wait.at is None], {})
            live = self._tasks(stage)
            for number in stage.mine(block, len(live)):
                at = live[number]
                yield from self._until([wait for wait in stage.waits if wait.at], at)
                STAGES[stage.name](Task(self._scene, stage, at))
                if stage.group:
                    axis, size = stage.group
                    self._arrive(stage, at[axis] // size)
                yield True
            if stage.group is None:
                self._arrive(stage, 0)
                yield True

    def _until(self, waits: Sequence[Wait], at: Mapping[str, int]) -> Iterator[bool]:
        while not all(self._reached(wait, at) for wait in waits):
            yield False

    def _reached(self, wait: Wait, at: Mapping[str, int]) -> bool:
        counters = wait.at.tiles(at) if wait.at else range(1)
        return all(self._arrived.get((wait.stage, c), 0) >= wait.count for c in counters)

    def _arrive(self, stage: Stage, counter: int) -> None:
        self._arrived[stage.name, counter] = self._arrived.get((stage.name, counter), 0) + 1

    def _tasks(self, stage: Stage) -> list[dict[str, int]]:
        if stage.name not in self._live:
            self._live[stage.name] = live_tasks(stage, Task(self._scene, stage, {}))
        return self._live[stage.name]
