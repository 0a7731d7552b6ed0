"""A build as one Python file: constants of the table, then the kernels' text.

A file of its own for each key, since numba's cache knows a function by its file and its line, and
not by the constants that it saw.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from infx.engine.mono.builder import FLOAT, Tiles
from infx.engine.mono.cpu.pointers import ARGUMENTS
from infx.engine.mono.sums import Sum
from infx.engine.mono.table import Table

__all__ = ["FUSED", "build_text", "kernel_text", "local_sizes", "stage_names", "weight_offsets"]

KERNELS = Path(__file__).parent / "kernels"
LINE_FLOATS = 16  # of a cache line of 64 bytes
# Numbers of a cache as pointers.
TAKERS = {"fp32": "floats_at", "bf16": "halves_at", "fp8": "bytes_at", "mxfp4": "bytes_at"}
# What mono runs instead of two last stages: both, for one expert after another.
FUSED, REPLACED = "up_and_down", ("up", "down")


def build_text(table: Table) -> str:
    """Return the source of a module with ``run(call, first, end)``, which runs some of its stages.

    ``call`` is the address of a block of `ARGUMENTS`, ``first`` and ``end`` are numbers of
    `stage_names`. So mono and unfused layers are the same code, compiled once. Raises ValueError
    for a table whose orders this back end does not do.
    """
    if not table.has("merge"):
        raise ValueError("no stage merge: the CPU back end merges partitions in a stage of its own")
    lines = [
        "import numpy as np",
        "from infx.engine.mono.cpu.bits import power_of_two",
        "from infx.engine.mono.cpu.codecs import codec_of, e4m3_rounded",
        "from infx.engine.mono.cpu.inner import inner, owned_by",
        "from infx.engine.mono.cpu.pointers import ahead, bytes_at, floats_at, halves_at",
        "from infx.engine.mono.cpu.pointers import int32s_at, int64s_at",
        "from infx.engine.mono.cpu.vector import adding_of, dot_of, dots_of, product_of",
        "from infx.engine.mono.sums import Sum",
        "owned_by(__name__)",
        *(f"{name} = {value!r}" for name, value in _numbers(table).items()),
        *_sums(table),
        *_formats(table),
        kernel_text(table),
        *_calls(table),
    ]
    return "\n".join(lines) + "\n"


def kernel_text(table: Table) -> str:
    """Return the text of the kernels that the table's stages need."""
    names = [
        "common",
        "full" if table.kind == "dense" else "chosen",
        "attention",
        "experts" if table.kind == "sparse" else "dense",
    ]
    return "\n".join((KERNELS / f"{name}.py").read_text() for name in names)


def stage_names(table: Table) -> tuple[str, ...]:
    """Return the functions of ``run``: those of mono in order, then what one replaces."""
    names = tuple(stage.name for stage in table.stages)
    return (*names[:-2], FUSED, *REPLACED) if names[-2:] == REPLACED else names


def weight_offsets(table: Table) -> dict[str, int]:
    """Return where each weight region begins in the packed weights (floats); ``""``: the end."""
    offsets, end = {}, 0
    for region in table.regions:
        if region.space == "weight":
            offsets[region.name] = end
            end += _lines(region.bytes // FLOAT)
    return offsets | {"": end}


def local_sizes(table: Table) -> tuple[int, int]:
    """Return the floats of scratch, block-local memory included, and the int64s beside it."""
    *_, end = _floats(table).values()
    *_, last = _ints(table).values()
    return end, last


def _lines(floats: int) -> int:
    return -(-floats // LINE_FLOATS) * LINE_FLOATS


def _numbers(table: Table) -> dict[str, int | float]:
    shape, tiles = table.shape, Tiles(table.shape, table.grain)
    kinds = shape.head_kinds(table.kind != "dense")
    numbers: dict[str, int | float] = {"WIDTH": table.width}
    numbers |= {f"SHAPE_{name.upper()}": value for name, value in asdict(shape).items()}
    numbers |= {f"{kind.upper()}_FIRST": heads.start for kind, heads in kinds.items()}
    numbers |= {
        "V_END": kinds["v"].stop,
        "PAGES": shape.pages,
        "PARTITIONS": tiles.partitions(table.kind != "dense"),
        "QKV_PARTS": tiles.qkv_parts,
        "ROUTER_PARTS": tiles.router_parts,
        "SCORE_PAGES": tiles.chunks * table.grain.score_tile,
    }
    numbers |= {
        f"AT_{region.name.upper()}": region.offset // FLOAT
        for region in table.regions
        if region.space == "scratch"
    }
    numbers |= {f"W_{name.upper()}": at for name, at in weight_offsets(table).items() if name}
    return numbers | _floats(table) | _ints(table)


def _floats(table: Table) -> dict[str, int]:
    """Return the places of a block's own memory, which lies behind scratch; ``FLOATS``: the end."""
    shape, rows = table.shape, table.width
    group = shape.heads // shape.kv_heads
    pairs = shape.expert_size if table.kind == "sparse" else shape.dense_size
    return _laid(
        {
            "X": rows * shape.hidden,
            "SUMS": max(2 * rows * pairs, group * shape.head_dim),
            "VECTOR": shape.head_dim,
            "Q": group * shape.head_dim,
            "P": max(group * shape.partition, shape.block),
            "KEYS": shape.block * shape.head_dim,
            "RANKED": 2 * shape.topk_blocks,
            "FACTOR": rows,
            "CHANCE": shape.experts,
            "RANK": shape.experts,
            "PICKED": rows * shape.slots,
            "SHARE": rows * shape.slots,
            "DONE": rows * shape.slots * shape.hidden,
        },
        "FLOATS",
        _lines(table.arena("scratch") // FLOAT),
    )


def _ints(table: Table) -> dict[str, int]:
    rows = table.width
    return _laid({"LIVE": rows, "STARTS": rows, "OUTS": rows, "PAIRS": 2 * rows}, "INTS", 0)


def _laid(sizes: dict[str, int], end: str, first: int) -> dict[str, int]:
    places, at = {}, first
    for name, size in sizes.items():
        places[name] = at
        at += _lines(size)
    return places | {end: at}


def _sums(table: Table) -> Iterator[str]:
    """Yield for each sum of a matrix or a dot the line that makes its function."""
    shape = table.shape
    outputs = {
        "qkv": shape.head_kinds(table.kind != "dense")["v"].stop * shape.head_dim,
        "o": shape.hidden,
        "router": shape.experts,
        "up": 2 * shape.expert_size,
        "down": shape.hidden,
        "dense_up": 2 * shape.dense_size,
        "dense_down": shape.hidden,
    }
    for total in table.sums:
        name = total.name.upper()
        if total.name in outputs:
            yield f"PRODUCT_{name} = product_of({total!r}, {outputs[total.name]})"
        elif total.name in ("index_dot", "attention_dot"):
            yield f"DOTS_{name} = dots_of({total!r})"
        elif total.merged_by == "halving":
            yield f"DOT_{name} = dot_of({total!r})"
        else:
            _plain(total)
    group = shape.heads // shape.kv_heads
    keys = table.sum("attention_keys")
    yield f"ADD_ATTENTION_KEYS = adding_of({keys!r}, {group}, SHAPE_HEAD_DIM)"


def _plain(total: Sum) -> None:
    """Raise ValueError unless ``total`` is one lane in ascending order, as kernels write it out."""
    if (total.chunk, total.lanes, total.dealt_by) != (1, 1, ("chunk",)):
        raise ValueError(
            f"sum {total.name} has {total.lanes} lanes of chunks of {total.chunk}: the CPU back end"
            " adds its terms one by one"
        )


def _formats(table: Table) -> Iterator[str]:
    kv = "fp8-scaled" if table.caches.kv == "fp8" else table.caches.kv
    yield f"PUT_KV, GET_KV = codec_of({kv!r}, SHAPE_HEAD_DIM)"
    yield f"PUT_INDEX, GET_INDEX = codec_of({table.caches.index!r}, SHAPE_HEAD_DIM)"
    yield f"MEET = {'e4m3_rounded' if kv == 'mxfp4' else 'np.float32'}"


def _calls(table: Table) -> Iterator[str]:
    """Yield ``run``: the stages of `stage_names` from ``first`` to before ``end``."""
    functions = {
        node.name: [argument.arg for argument in node.args.args]
        for node in ast.parse(kernel_text(table)).body
        if isinstance(node, ast.FunctionDef)
    }
    names = stage_names(table)
    yield "\n\n@stage\ndef run(call, first, end):"
    for number, argument in enumerate(ARGUMENTS):
        if any(argument in functions[name] for name in names):
            yield f"    {argument} = {_taker(table, argument)}(call, {number})"
    yield "    for number in range(first, end):"
    for number, name in enumerate(names):
        yield f"        {'elif' if number else 'if'} number == {number}:"
        yield f"            {name}({', '.join(functions[name])})"


def _taker(table: Table, argument: str) -> str:
    """Return what takes an argument as a pointer of its type."""
    if argument in ("keys", "values"):
        return TAKERS[table.caches.kv]
    if argument == "index":
        return TAKERS[table.caches.index]
    if argument.endswith("_scales"):
        kind = table.caches.index if argument == "index_scales" else table.caches.kv
        return "bytes_at" if kind == "mxfp4" else "floats_at"
    return {"step": "int32s_at", "ints": "int64s_at"}.get(argument, "floats_at")
