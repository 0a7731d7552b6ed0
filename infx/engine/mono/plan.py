"""The plan of a mono layer: `make_table` for a shape, a width, caches and a machine.

Regions, row-major as given here, float32 unless said otherwise; a tile is what one task owns:

    stream_in, stream_out, aux [rows, hidden]   tiles of features; ping-pong by layer parity
    qkv_sums [parts, rows, heads x dim]         of x (1 + w), before the norm's factor
    qkv_squares [parts, rows]                   Σ x²: the factor is applied after the sum, so the
                                                norm needs no stage (and no barrier) of its own
    queries, index_queries [head, rows, dim]    normed and turned
    keys, values, index_keys                    the rows' own tokens in the paged caches
    scores [rows, chunk, kv head, page]         largest q k of a page
    chosen [rows, kv head, topk]                blocks, ascending; -1: none
    partials [rows, kv head, partition, head of the group, dim + 2]   Σ p v, then max, Σ p
    merged [head, rows, dim]                    attention's output
    mid [rows, hidden]                          the stream after attention
    logit_sums [tile, part, rows, experts of the tile], mid_squares [parts, rows]
    mids [rows, slot, expert_size], dense_mids [rows, dense_size]      after the swiglu
    routing [rows, topk ids, topk weights]      what was chosen, -1: a pad
    o_ranks, down_ranks [ranks, rows, hidden]   each rank's part

A pad's row is 0 in every region that has rows: nothing is read for it.

Narrow and wide differ in who does the work, never in a sum: experts are dealt by (row, slot) up to
``narrow_rows``, by expert above; partitions are merged by the output projection's tasks up to
``folded_rows``, by a stage above.
"""

from __future__ import annotations

from infx.engine.mono.builder import FLOAT, Builder
from infx.engine.mono.plan_attention import add_attention
from infx.engine.mono.plan_mlp import add_dense, add_experts
from infx.engine.mono.shape import MOST_ROWS, Caches, Formats, Grain, Kind, LayerShape, Machine
from infx.engine.mono.table import Table

__all__ = ["make_table"]


def make_table(
    shape: LayerShape,
    kind: Kind,
    width: int,
    machine: Machine,
    grain: Grain,
    caches: Caches | None = None,
    formats: Formats | None = None,
    tapped: bool = False,
) -> Table:
    """Return the table of one layer of ``kind`` for ``width`` rows.

    Raises ValueError for a width outside 1 ... `MOST_ROWS`.
    """
    if not 1 <= width <= MOST_ROWS:
        raise ValueError(f"width {width}: a mono step has 1 to {MOST_ROWS} rows, pads included")
    caches, formats = caches or Caches(), formats or Formats()
    build = Builder(shape, kind, width, caches, formats, machine, grain)
    _add_outside(build, tapped)
    add_attention(build)
    (add_experts if kind == "sparse" else add_dense)(build, tapped)
    return Table(
        shape=shape,
        kind=kind,
        width=width,
        caches=caches,
        formats=formats,
        machine=machine,
        grain=grain,
        tapped=tapped,
        regions=tuple(build.regions),
        stages=tuple(build.stages),
        sums=tuple(build.sums.values()),
    )


def _add_outside(build: Builder, tapped: bool) -> None:
    """Declare what comes from outside the layer, and what leaves it."""
    shape, rows, tiles = build.shape, build.width, build.tiles
    # Batch id, position, slot: int32 each.
    build.region("rows", "step", (rows,), 3 * FLOAT)
    build.region("pages", "step", (rows,), shape.pages * FLOAT)
    build.region("rotary", "step", (rows,), shape.rotary_dim * FLOAT)
    last = "down" if build.kind == "sparse" else "dense_down"
    tile = rows * tiles.out * FLOAT
    build.region("stream_in", "stream", (tiles.hidden,), tile, parity=0)
    build.region("stream_out", "stream", (tiles.hidden,), tile, last, parity=1)
    if tapped:
        build.region("aux", "out", (tiles.hidden,), tile, last)
