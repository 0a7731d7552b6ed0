"""Times of the three arms of a layer, interleaved in one process, beside the memory's own speed."""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.mono.cpu.kinds import kinds_of, layer_shape
from infx.engine.mono.plan import make_table
from infx.engine.mono.probe.arms import Run, step_rows
from infx.engine.mono.probe.compiled_arms import three
from infx.engine.mono.probe.rows import ARMS, Arm, Numbers, Row
from infx.engine.mono.probe.traffic import layer_bytes
from infx.engine.mono.shape import CPU_GRAIN, MOST_ROWS, Caches, cpu
from infx.engine.mono.step import StepRows
from infx.engine.weights import target_weights

__all__ = ["Bench", "WidthTimes", "bench", "machine_facts"]

COMPILED: tuple[Arm, ...] = ("mono", "unfused")

# Passes over all layers that one figure is the mean of, after one that is not timed: those of torch
# are twenty times as long.
PASSES, TORCH_PASSES = 10, 2
WARM_ROUNDS = 2


@dataclass(slots=True)
class WidthTimes:
    """Times at one width: a figure a round, µs a layer; ``prepare_us`` a step, for compiled arms.

    ``union`` is the mean number of experts that some row chose, without the shared one;
    ``bytes`` what a layer reads (`traffic.layer_bytes`). ``copy_gb_s`` are GB/s of a copy of as
    many bytes as all timed layers read, so that it comes from the same caches: bytes read and
    written, a figure a round.
    """

    width: int
    union: float
    bytes: int
    us: dict[Arm, list[float]] = field(default_factory=lambda: {arm: [] for arm in ARMS})
    prepare_us: list[float] = field(default_factory=list)
    copy_gb_s: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Bench:
    """All of a run, and which layers were timed."""

    layers: list[int]
    context: int
    widths: list[WidthTimes]


def machine_facts() -> dict[str, Any]:
    """Return what the times depend on of machine and libraries."""
    import numba

    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": 1,
        "load": os.getloadavg()[0],
        "numba": numba.__version__,
        "torch": str(torch.__version__),
    }


def bench(
    config: EngineConfig,
    widths: Sequence[int],
    context: int,
    rounds: int,
    tell: Callable[[int], None] = lambda done: None,
) -> Bench:
    """Return the times of the layers with experts, each request with ``context`` tokens.

    A round runs every width, in random order: the two compiled arms pass by pass one beside the
    other, which comes first by chance, then torch; a pass is all layers in turn. A row a request,
    random streams, so routing is as spread as the router makes it. One thread. ``tell`` hears after
    each round.
    """
    run = _Runs(config, context, max(widths))
    made = Bench(run.layers, context, [run.times(width) for width in widths])
    draw = random.Random(0)
    for done in range(1, WARM_ROUNDS + rounds + 1):
        keep = done > WARM_ROUNDS
        _round(run, made, draw, keep)
        if keep:
            tell(done - WARM_ROUNDS)
    return made


def _round(run: _Runs, made: Bench, draw: random.Random, keep: bool) -> None:
    for times in draw.sample(made.widths, len(made.widths)):
        prepare_us, us = run.measure(times.width, draw)
        copy = run.copy(times.bytes * len(made.layers))
        if keep:
            times.prepare_us.append(prepare_us)
            times.copy_gb_s.append(copy)
            for arm in ARMS:
                times.us[arm].append(us[arm])


class _Runs:
    """A model's layers by all arms over one cache of random contexts."""

    def __init__(self, config: EngineConfig, context: int, rows: int) -> None:
        model, self._context = config.shape, context
        self._shape, kinds = layer_shape(model), kinds_of(model)
        self.layers = [layer for layer, kind in enumerate(kinds) if kind == "sparse"]
        weights = target_weights(model, config.weights, config.expert_dtype)
        self._held = -(-(context + 1) // model.block_size)
        cache = KvCache.empty(model, rows * self._held, kinds=config.cache_kinds)
        self._fill(cache)
        self._three = three(model, weights, cache)
        caches = Caches(cache.kinds.kv, cache.kinds.index)
        self._table = make_table(self._shape, "sparse", MOST_ROWS, cpu(1), CPU_GRAIN, caches)
        draw = np.random.default_rng(0)
        self._streams = draw.standard_normal((rows, model.hidden_size), dtype=np.float32)
        self._out: Numbers = np.empty_like(self._streams)
        most = layer_bytes(self._table, model.experts, rows, context) * len(self.layers)
        self._copied, self._copy = (np.ones(most, dtype=np.uint8) for _ in range(2))

    def times(self, width: int) -> WidthTimes:
        """Return no times yet, with what ``width`` reads."""
        compiled = self._three.compiled
        compiled.prepare(self._step(width))
        unions = []
        for layer in self.layers:
            self._three.runs["mono"](layer, self._streams[:width], self._out[:width])
            unions.append(len(set(compiled.routing(layer).ravel().tolist())))
        read = [layer_bytes(self._table, union, width, self._context) for union in unions]
        return WidthTimes(width, sum(unions) / len(unions), sum(read) // len(read))

    def measure(self, width: int, draw: random.Random) -> tuple[float, dict[Arm, float]]:
        """Return µs of preparing a step of the compiled arms, and of a layer by each arm."""
        step = self._step(width)
        begun = time.perf_counter_ns()
        self._three.compiled.prepare(step)
        prepare_us = (time.perf_counter_ns() - begun) / 1e3
        orders = [draw.sample(COMPILED, 2) for _ in range(PASSES)]
        us = self._us(width, orders)
        self._three.reference.prepare(step)
        return prepare_us, us | self._us(width, [["reference"]] * TORCH_PASSES)

    def _us(self, width: int, orders: Sequence[Sequence[Arm]]) -> dict[Arm, float]:
        """Return µs a layer of the arms in ``orders``, one order a pass, after one not timed."""
        spent: dict[Arm, int] = dict.fromkeys(orders[0], 0)
        for arm in spent:
            self._pass(arm, width)
        for order in orders:
            for arm in order:
                spent[arm] += self._pass(arm, width)
        return {arm: ns / 1e3 / len(orders) / len(self.layers) for arm, ns in spent.items()}

    def _pass(self, arm: Arm, width: int) -> int:
        """Return the nanoseconds of all layers in turn."""
        run: Run = self._three.runs[arm]
        stream, out = self._streams[:width], self._out[:width]
        begun = time.perf_counter_ns()
        for layer in self.layers:
            run(layer, stream, out)
        return time.perf_counter_ns() - begun

    def copy(self, count: int) -> float:
        """Return GB/s of a copy of ``count`` bytes that was done just before, read and written."""
        source, target = self._copied[:count], self._copy[:count]
        np.copyto(target, source)
        begun = time.perf_counter_ns()
        np.copyto(target, source)
        return 2 * count / (time.perf_counter_ns() - begun)

    def _step(self, width: int) -> StepRows:
        pages = [range(r * self._held, (r + 1) * self._held) for r in range(width)]
        stream = self._streams[0]
        rows = [Row(n, self._context, tuple(own), stream) for n, own in enumerate(pages)]
        return step_rows(rows, self._shape.block)

    def _fill(self, cache: KvCache) -> None:
        shape, generator = self._shape, torch.Generator().manual_seed(0)
        slots = torch.arange(cache.slots)
        both = (len(slots), shape.kv_heads, shape.head_dim)
        for layer in self.layers:
            keys, values = (torch.randn(both, generator=generator) for _ in range(2))
            cache.write(layer, slots, keys, values)
            cache.write_index(layer, slots, torch.randn(both[0], both[2], generator=generator))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
