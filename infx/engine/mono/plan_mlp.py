"""The stages from the stream after attention to the layer's output."""

from __future__ import annotations

from infx.engine.mono.builder import FLOAT, Builder, at
from infx.engine.mono.plan_attention import add_ranks
from infx.engine.mono.shape import Formats
from infx.engine.mono.table import Access, Dealt, Looked, Span

__all__ = ["add_dense", "add_experts"]


def add_experts(build: Builder, tapped: bool) -> None:
    """Append the stages router, up, down. The shared expert is the last expert, in every slot k."""
    _add_router(build)
    _add_up(build)
    _add_down(build, tapped)


def add_dense(build: Builder, tapped: bool) -> None:
    """Append the stages dense_up, dense_down."""
    shape, tiles, rows, grain = build.shape, build.tiles, build.width, build.grain
    count, form = shape.dense_size // tiles.dense, build.formats.projections
    up = Formats.weight_bytes(form, 2 * tiles.dense, shape.hidden)
    down = Formats.weight_bytes(form, tiles.out, shape.dense_size)
    build.region("mlp_norm", "weight", (1,), shape.hidden * FLOAT)
    build.region("dense_up_weight", "weight", (count,), up)
    build.region("dense_mids", "scratch", (count,), rows * tiles.dense * FLOAT, "dense_up")
    build.stage(
        "dense_up",
        (("tile", count),),
        reads=(
            at("rows", rows),
            at("mid", tiles.hidden),
            at("mlp_norm", 1),
            at("dense_up_weight", "tile"),
        ),
        writes=(at("dense_mids", "tile"),),
        after=("o",),
        sums=(
            build.matrix("dense_up", shape.hidden),
            build.sum("mlp_square", shape.hidden, 1, grain.square_lanes, "halving"),
        ),
        shared_bytes=grain.lanes * 2 * tiles.dense * rows * FLOAT,
    )
    build.region("dense_down_weight", "weight", (tiles.hidden,), down)
    _add_last(
        build,
        "dense_down",
        reads=(at("dense_mids", count), at("dense_down_weight", "tile")),
        after="dense_up",
        sums=(build.matrix("dense_down", shape.dense_size),),
        writes=(at("aux", "tile"),) if tapped else (),
        shared_bytes=grain.lanes * tiles.out * rows * FLOAT,
    )


def _add_router(build: Builder) -> None:
    """Add the router's sums of x (1 + w), cut in K to fill the blocks, and the squares of x."""
    shape, tiles, rows, grain = build.shape, build.tiles, build.width, build.grain
    count, parts = shape.experts // tiles.router, tiles.router_parts
    inputs, a_part = shape.hidden // parts, tiles.hidden // parts
    weight = Formats.weight_bytes(build.formats.router, tiles.router, inputs)
    build.region("mlp_norm", "weight", (parts,), inputs * FLOAT)
    build.region("router_weight", "weight", (count, parts), weight)
    build.region("router_bias", "weight", (1,), shape.experts * FLOAT)
    build.region("logit_sums", "scratch", (count, parts), rows * tiles.router * FLOAT, "router")
    build.region("mid_squares", "scratch", (parts,), rows * FLOAT, "router")
    build.stage(
        "router",
        (("tile", count), ("part", parts)),
        reads=(
            at("mid", Span("part", 0, a_part, a_part)),
            at("mlp_norm", "part"),
            at("router_weight", "tile", "part"),
        ),
        writes=(
            at("logit_sums", "tile", "part"),
            at("mid_squares", "part", when=("tile", 0, 1)),
        ),
        after=(("o", Span("part")),),
        sums=(
            build.matrix("router", inputs),
            build.sum("mlp_square", inputs, 1, grain.square_lanes, "halving"),
        ),
        shared_bytes=grain.lanes * tiles.router * rows * FLOAT,
    )


def _routed(build: Builder) -> tuple[Access, ...]:
    """Return what routing reads. Each block routes all rows for itself: no stage, no barrier."""
    count, parts = build.shape.experts // build.tiles.router, build.tiles.router_parts
    return (
        at("rows", build.width),
        at("logit_sums", count, parts),
        at("mid_squares", parts),
        at("router_bias", 1),
    )


def _add_up(build: Builder) -> None:
    """Add gate, up and the swiglu: by (row, slot), or by expert for all rows that chose it."""
    shape, tiles, rows, grain = build.shape, build.tiles, build.width, build.grain
    count, experts = shape.expert_size // tiles.up, shape.experts + 1
    weight = Formats.weight_bytes(build.formats.experts, 2 * tiles.up, shape.hidden)
    build.region("up_weight", "weight", (experts, count), weight)
    build.region("mids", "scratch", (rows, shape.slots, count), tiles.up * FLOAT, "up")
    tile = ("tile", count)
    narrow = rows <= grain.narrow_rows
    build.stage(
        "up",
        (("row", rows), ("slot", shape.slots), tile) if narrow else (("expert", experts), tile),
        reads=(
            *_routed(build),
            at("mid", tiles.hidden),
            at("mlp_norm", tiles.router_parts),
            at("up_weight", Looked("expert") if narrow else "expert", "tile"),
        ),
        writes=(
            at("mids", "row", "slot", "tile")
            if narrow
            else at("mids", Dealt("expert"), Dealt("expert"), "tile"),
        ),
        after=("router",),
        sums=(build.matrix("up", shape.hidden), build.sum("router_parts", tiles.router_parts)),
        live=("row",) if narrow else ("chosen",),
        shared_bytes=grain.lanes * 2 * tiles.up * rows * FLOAT,
    )


def _add_down(build: Builder, tapped: bool) -> None:
    """Add the second matrices, each (row, slot) apart, then their sum in the order of slots."""
    shape, tiles, rows, grain = build.shape, build.tiles, build.width, build.grain
    count, topk = shape.expert_size // tiles.up, shape.experts_per_token
    weight = Formats.weight_bytes(build.formats.experts, tiles.out, shape.expert_size)
    build.region("down_weight", "weight", (shape.experts + 1, tiles.hidden), weight)
    build.region("routing", "out", (1,), rows * topk * 2 * FLOAT, "down")
    aux = (at("aux", "tile"),) if tapped else ()
    _add_last(
        build,
        "down",
        reads=(
            *_routed(build)[1:],
            at("mids", rows, shape.slots, count),
            at("down_weight", Looked("expert"), "tile"),
        ),
        after="up",
        sums=(
            build.matrix("down", shape.expert_size, grain.down_lanes),
            build.sum("combine", shape.slots),
            build.sum("router_parts", tiles.router_parts),
        ),
        writes=(at("routing", 1, when=("tile", 0, 1)), *aux),
        shared_bytes=rows * shape.slots * grain.down_lanes * tiles.out * FLOAT,
    )


def _add_last(
    build: Builder,
    name: str,
    *,
    reads: tuple[Access, ...],
    after: str,
    sums: tuple[str, ...],
    writes: tuple[Access, ...],
    shared_bytes: int,
) -> None:
    """Add the stage that sums over ranks, adds the residual and writes the layer's output."""
    ranked = add_ranks(build, name)
    ranks = (build.sum("ranks", build.shape.ranks),) if ranked else ()
    build.stage(
        name,
        (("tile", build.tiles.hidden),),
        reads=(at("rows", build.width), *reads, at("mid", "tile"), *ranked),
        writes=(at("stream_out", "tile"), *writes, *ranked),
        after=(after,),
        sums=(*sums, *ranks),
        shared_bytes=shared_bytes,
    )
