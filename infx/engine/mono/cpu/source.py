"""A build as one Python file: constants of the table, then the kernels' text.

A file of its own for each key, since numba's cache knows a function by its file and its line, and
not by the constants that it saw.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from infx.engine.mono.build import constants
from infx.engine.mono.builder import FLOAT, Tiles
from infx.engine.mono.sums import Sum
from infx.engine.mono.table import Table

__all__ = ["build_text", "kernel_text", "local_sizes", "weight_offsets"]

KERNELS = Path(__file__).parent / "kernels"
LINE_FLOATS = 16  # of a cache line of 64 bytes
LAYER_ARGUMENTS = (
    "step", "ints", "turn", "weights", "scratch", "stream_in", "stream_out", "aux", "routing",
    "kv", "kv_scale", "index", "index_scale",
)  # fmt: skip


def build_text(table: Table) -> str:
    """Return the source of a module with a function a stage, and ``layer`` that calls them all.

    Raises ValueError for a table whose orders this back end does not do.
    """
    lines = [
        "import numpy as np",
        "from infx.engine.mono.cpu.codecs import codec_of, e4m3_rounded",
        "from infx.engine.mono.cpu.vector import adding_of, dot_of, inner, product_of",
        "from infx.engine.mono.cpu.vector import power_of_two",
        "from infx.engine.mono.sums import Sum",
        *(f"{name} = {value!r}" for name, value in _numbers(table).items()),
        *_sums(table),
        *_formats(table),
        kernel_text(table),
        *_layer(table),
    ]
    return "\n".join(lines) + "\n"


def kernel_text(table: Table) -> str:
    """Return the text of the kernels that the table's stages need."""
    names = [
        "common",
        "full" if table.kind == "dense" else "chosen",
        "attention",
        "last",
        "experts" if table.kind == "sparse" else "dense",
    ]
    return "\n".join((KERNELS / f"{name}.py").read_text() for name in names)


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
    numbers: dict[str, int | float] = constants(table)
    numbers |= {f"{kind.upper()}_FIRST": heads.start for kind, heads in kinds.items()}
    numbers |= {
        "V_END": kinds["v"].stop,
        "PAGES": shape.pages,
        "PARTITIONS": tiles.partitions(table.kind != "dense"),
        "TAPPED": table.tapped,
        "FOLDED": not table.has("merge"),
        "QKV_TILES": kinds["v"].stop * shape.head_dim // tiles.qkv,
        "QKV_TILE_SIZE": tiles.qkv,
        "QKV_PARTS": tiles.qkv_parts,
        "OUT_TILE": tiles.out,
        "SCORE_TILE_SIZE": table.grain.score_tile,
        "ROUTER_TILES": shape.experts // tiles.router,
        "ROUTER_TILE_SIZE": tiles.router,
        "ROUTER_PARTS": tiles.router_parts,
        "UP_PAIRS": tiles.up,
        "DENSE_PAIRS": tiles.dense,
        # Numbers of the cache's array in a vector: half a byte each in MXFP4.
        "KV_WORDS": shape.head_dim // (2 if table.caches.kv == "mxfp4" else 1),
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
    shape, rows, tiles = table.shape, table.width, Tiles(table.shape, table.grain)
    group = shape.heads // shape.kv_heads
    widest = max(tiles.qkv, tiles.out, tiles.router, 2 * tiles.up, 2 * tiles.dense)
    return _laid(
        {
            "X": rows * max(shape.hidden, shape.heads * shape.head_dim),
            "SUMS": max(2 * rows * widest, group * shape.head_dim),
            "VECTOR": shape.head_dim,
            "Q": group * shape.head_dim,
            "P": group * shape.partition,
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
    starts = max(rows, table.shape.heads // table.shape.kv_heads)
    return _laid({"LIVE": rows, "STARTS": starts, "PAIRS": 2 * rows}, "INTS", 0)


def _laid(sizes: dict[str, int], end: str, first: int) -> dict[str, int]:
    places, at = {}, first
    for name, size in sizes.items():
        places[name] = at
        at += _lines(size)
    return places | {end: at}


def _sums(table: Table) -> Iterator[str]:
    """Yield for each sum of a matrix or a dot the line that makes its function."""
    tiles = Tiles(table.shape, table.grain)
    widths = {
        "qkv": tiles.qkv,
        "o": tiles.out,
        "router": tiles.router,
        "up": 2 * tiles.up,
        "down": tiles.out,
        "dense_up": 2 * tiles.dense,
        "dense_down": tiles.out,
    }
    for total in table.sums:
        name = total.name.upper()
        if total.name in widths:
            yield f"PRODUCT_{name} = product_of({total!r}, {widths[total.name]})"
        elif total.merged_by == "halving":
            yield f"DOT_{name} = dot_of({total!r})"
        else:
            _plain(total)
    yield f"ADD_ATTENTION_KEYS = adding_of({table.sum('attention_keys')!r}, SHAPE_HEAD_DIM)"


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


def _layer(table: Table) -> Iterator[str]:
    functions = {
        node.name: [argument.arg for argument in node.args.args]
        for node in ast.parse(kernel_text(table)).body
        if isinstance(node, ast.FunctionDef)
    }
    yield "\n\n@stage"
    yield f"def layer({', '.join(LAYER_ARGUMENTS)}):"
    for stage in table.stages:
        yield f"    {stage.name}({', '.join(functions[stage.name])})"
