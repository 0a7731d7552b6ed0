"""``python -m infx.engine.mono.check``: every table that could be built, checked in seconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from infx.engine.mono.check import Fault, check, check_family
from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import (
    CACHE_KINDS,
    CPU_GRAIN,
    GPU_GRAIN,
    H200,
    KINDS,
    MOST_ROWS,
    SHAPES,
    Caches,
    Formats,
    Grain,
    Kind,
    Machine,
    cpu,
)
from infx.engine.mono.table import Table

__all__ = ["main"]

TARGETS: tuple[tuple[str, str, Machine, Grain, Formats], ...] = (
    ("mini", "cpu 1", cpu(1), CPU_GRAIN, Formats()),
    ("mini", "cpu 2", cpu(2), CPU_GRAIN, Formats()),
    ("mini", "h200", H200, GPU_GRAIN, Formats()),
    ("m3_tp4_rank", "h200", H200, GPU_GRAIN, Formats("fp8", "bf16", "mxfp4")),
    ("m3_tp2_rank", "h200", H200, GPU_GRAIN, Formats("fp8", "bf16", "mxfp4")),
)
HEAD = ("shape", "machine", "layer", "tables", "stages", "tasks 1..16", "scratch MiB", "faults")


def main() -> int:
    """Print a line for each shape, machine and kind of layer; return 1 when there is a fault."""
    print(_line(HEAD))
    faults = []
    for (shape, name, machine, grain, formats), kind in itertools.product(TARGETS, KINDS):
        tables = list(_tables(shape, kind, machine, grain, formats))
        found = _faults(tables)
        stages = f"{len(tables[0].stages)}..{len(tables[-1].stages)}"
        tasks = "..".join(
            str(sum(stage.tasks for stage in t.stages)) for t in (tables[0], tables[-1])
        )
        scratch = f"{max(table.arena('scratch') for table in tables) / 2**20:.1f}"
        print(_line((shape, name, kind, len(tables), stages, tasks, scratch, len(found))))
        faults += found
    for fault in faults:
        print(f"{fault.code}: {fault.sentence}")
    return 1 if faults else 0


def _tables(
    shape: str, kind: Kind, machine: Machine, grain: Grain, formats: Formats
) -> Iterator[Table]:
    pairs = list(
        itertools.product(CACHE_KINDS, CACHE_KINDS if kind != "dense" else CACHE_KINDS[:1])
    )
    for width, (kv, index) in itertools.product(range(1, MOST_ROWS + 1), pairs):
        yield make_table(SHAPES[shape], kind, width, machine, grain, Caches(kv, index), formats)


def _faults(tables: list[Table]) -> list[Fault]:
    return [fault for table in tables for fault in check(table)] + check_family(tables)


def _line(cells: tuple[object, ...]) -> str:
    return "".join(f"{cell!s:<14}" for cell in cells).rstrip()
