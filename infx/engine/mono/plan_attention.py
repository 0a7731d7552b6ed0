"""The stages from the residual stream to the stream after attention."""

from __future__ import annotations

from infx.engine.mono.builder import FLOAT, Builder, at
from infx.engine.mono.shape import Formats
from infx.engine.mono.table import Access, Dealt, Span

__all__ = ["add_attention"]


def add_attention(build: Builder) -> None:
    """Append the stages qkv, head, (score, select,) split, (merge,) o."""
    _add_qkv(build)
    _add_head(build)
    if build.sparse:
        _add_score(build)
        _add_select(build)
    _add_split(build)
    folded = build.width <= build.grain.folded_rows
    if not folded:
        _add_merge(build)
    _add_output(build, folded)


def _add_qkv(build: Builder) -> None:
    """Add the fused projection of x (1 + w), cut in K where tiles alone leave blocks idle."""
    shape, tiles, rows, grain = build.shape, build.tiles, build.width, build.grain
    parts, heads = tiles.qkv_parts, build.shape.head_kinds(build.sparse)["v"].stop
    count, inputs = heads * shape.head_dim // tiles.qkv, shape.hidden // parts
    weight = Formats.weight_bytes(build.formats.projections, tiles.qkv, inputs)
    build.region("attention_norm", "weight", (parts,), inputs * FLOAT)
    build.region("qkv_weight", "weight", (count, parts), weight)
    build.region("qkv_sums", "scratch", (parts, count), rows * tiles.qkv * FLOAT, "qkv")
    build.region("qkv_squares", "scratch", (parts,), rows * FLOAT, "qkv")
    a_part = tiles.hidden // parts
    build.stage(
        "qkv",
        (("tile", count), ("part", parts)),
        reads=(
            at("stream_in", Span("part", 0, a_part, a_part)),
            at("attention_norm", "part"),
            at("qkv_weight", "tile", "part"),
        ),
        writes=(
            at("qkv_sums", "part", "tile"),
            at("qkv_squares", "part", when=("tile", 0, 1)),
        ),
        sums=(
            build.matrix("qkv", inputs),
            build.sum("qkv_square", inputs, 1, grain.square_lanes, "halving"),
        ),
        # A counter a head: a head starts when its own tiles are there.
        group=("tile", shape.head_dim // tiles.qkv),
        shared_bytes=grain.lanes * tiles.qkv * rows * FLOAT,
    )


def _add_head(build: Builder) -> None:
    """Add norm, rotary and cache insert: a task is a head of all rows (16 of them, 16 warps)."""
    shape, tiles, rows = build.shape, build.tiles, build.width
    heads, parts = shape.head_kinds(build.sparse), tiles.qkv_parts
    token, index_token = build.caches.token_bytes(shape.head_dim)
    vector = rows * shape.head_dim * FLOAT
    build.region("head_norm", "weight", (heads["v"].start,), shape.head_dim * FLOAT)
    build.region("queries", "scratch", (shape.heads,), vector, "head")
    build.region("keys", "cache", (shape.kv_heads,), rows * token, "head")
    build.region("values", "cache", (shape.kv_heads,), rows * token, "head")
    if build.sparse:
        build.region("index_queries", "scratch", (shape.kv_heads,), vector, "head")
        build.region("index_keys", "cache", (1,), rows * index_token, "head")
    targets = {
        "q": "queries",
        "k": "keys",
        "iq": "index_queries",
        "ik": "index_keys",
        "v": "values",
    }
    a_head = shape.head_dim // tiles.qkv
    build.stage(
        "head",
        (("head", heads["v"].stop),),
        reads=(
            at("rows", rows),
            at("rotary", rows, when=("head", 0, heads["v"].start)),
            at("qkv_sums", parts, Span("head", 0, a_head, a_head)),
            at("qkv_squares", parts),
            at("head_norm", "head", when=("head", 0, heads["v"].start)),
        ),
        writes=[_into(targets[kind], span) for kind, span in heads.items() if span],
        # Counter 0 holds the tiles 0, which wrote the squares.
        after=(("qkv", Span("head")), ("qkv", Span())),
        sums=(
            build.sum("qkv_parts", parts),
            build.sum("head_square", shape.head_dim, 1, build.grain.square_lanes, "halving"),
        ),
    )


def _into(region: str, heads: range) -> Access:
    return at(region, Span("head", -heads.start), when=("head", heads.start, heads.stop))


def _add_score(build: Builder) -> None:
    """Add index scores: each page of index keys is read once for all rows of its request."""
    shape, grain, rows, chunks = build.shape, build.grain, build.width, build.tiles.chunks
    tile = shape.kv_heads * grain.score_tile * FLOAT
    build.region("scores", "scratch", (rows, chunks), tile, "score")
    build.stage(
        "score",
        (("row", rows), ("chunk", chunks)),
        reads=(
            at("rows", rows),
            at("pages", "row"),
            at("index_queries", shape.kv_heads),
            at("index_keys", 1),
        ),
        writes=(at("scores", Dealt("row"), "chunk"),),
        after=("head",),
        sums=(build.sum("index_dot", shape.head_dim, 1, grain.dot_lanes, "halving"),),
        live=("leader", "seen"),
    )


def _add_select(build: Builder) -> None:
    """Add the choice of blocks; it compares and adds nothing, so it has no sum."""
    shape, rows, chunks = build.shape, build.width, build.tiles.chunks
    tile = shape.topk_blocks * FLOAT
    build.region("chosen", "scratch", (rows, shape.kv_heads), tile, "select")
    build.stage(
        "select",
        (("row", rows), ("group", shape.kv_heads)),
        reads=(at("rows", "row"), at("scores", "row", chunks)),
        writes=(at("chosen", "row", "group"),),
        after=("score",),
        live=("row",),
        shared_bytes=chunks * build.grain.score_tile * FLOAT,
    )


def _add_split(build: Builder) -> None:
    """Add attention over fixed partitions of the row's own keys, counted from its first."""
    shape, rows = build.shape, build.width
    group, parts = shape.heads // shape.kv_heads, build.tiles.partitions(build.sparse)
    tile = group * (shape.head_dim + 2) * FLOAT
    build.region("partials", "scratch", (rows, shape.kv_heads, parts), tile, "split")
    chosen = (at("chosen", "row", "group"),) if build.sparse else ()
    build.stage(
        "split",
        (("row", rows), ("group", shape.kv_heads), ("partition", parts)),
        reads=(
            at("rows", "row"),
            at("pages", "row"),
            at("queries", Span("group", 0, group, group)),
            at("keys", "group"),
            at("values", "group"),
            *chosen,
        ),
        writes=(at("partials", "row", "group", "partition"),),
        after=("select",) if build.sparse else ("head",),
        sums=(
            build.sum("attention_dot", shape.head_dim, 1, build.grain.dot_lanes, "halving"),
            build.sum("attention_keys", shape.partition),
        ),
        live=("row", "seen"),
        shared_bytes=group * shape.partition * FLOAT,
    )


def _add_merge(build: Builder) -> None:
    """Add the merge of partitions: a task is a head of all rows."""
    shape, rows = build.shape, build.width
    parts = build.tiles.partitions(build.sparse)
    build.region("merged", "scratch", (shape.heads,), rows * shape.head_dim * FLOAT, "merge")
    build.stage(
        "merge",
        (("head", shape.heads),),
        reads=(at("rows", rows), at("partials", rows, shape.kv_heads, parts)),
        writes=(at("merged", "head"),),
        after=("split",),
        sums=(_merge_sum(build, parts),),
    )


def _merge_sum(build: Builder, parts: int) -> str:
    """Declare the sum of partitions: a group of them has a lane of its own."""
    group = build.grain.merge_group
    if parts <= group:
        return build.sum("merge", parts)
    return build.sum("merge", parts, group, -(-parts // group))


def _add_output(build: Builder, folded: bool) -> None:
    """Add the output projection, the sum over ranks and the residual."""
    shape, tiles, rows, grain = build.shape, build.tiles, build.width, build.grain
    inputs, parts = shape.heads * shape.head_dim, build.tiles.partitions(build.sparse)
    weight = Formats.weight_bytes(build.formats.projections, tiles.out, inputs)
    tile = rows * tiles.out * FLOAT
    build.region("o_weight", "weight", (tiles.hidden,), weight)
    build.region("mid", "scratch", (tiles.hidden,), tile, "o")
    ranked = add_ranks(build, "o")
    mixed = at("partials", rows, shape.kv_heads, parts) if folded else at("merged", shape.heads)
    build.stage(
        "o",
        (("tile", tiles.hidden),),
        reads=(at("rows", rows), mixed, at("stream_in", "tile"), at("o_weight", "tile"), *ranked),
        writes=(at("mid", "tile"), *ranked),
        after=("split" if folded else "merge",),
        sums=(
            *([_merge_sum(build, parts)] if folded else []),
            build.matrix("o", inputs),
            *([build.sum("ranks", shape.ranks)] if ranked else []),
        ),
        # A counter a part of the router's K: its tasks start when their own features are there.
        group=("tile", tiles.hidden // tiles.router_parts) if build.kind == "sparse" else None,
        shared_bytes=grain.lanes * tiles.out * rows * FLOAT,
    )


def add_ranks(build: Builder, stage: str) -> tuple[Access, ...]:
    """Declare what ranks push to each other in ``stage``; return the access (none for one rank)."""
    shape, tiles = build.shape, build.tiles
    if shape.ranks == 1:
        return ()
    name, tile = f"{stage}_ranks", build.width * tiles.out * FLOAT
    build.region(name, "peer", (shape.ranks, tiles.hidden), tile, stage, parity=0)
    return (at(name, shape.ranks, "tile"),)
