# ruff: noqa: F821
# mypy: ignore-errors
"""Stages of a layer with a dense MLP."""

DENSE_TILES = SHAPE_DENSE_SIZE // DENSE_PAIRS


@stage
def dense_up(step, ints, weights, scratch):
    rows = find_live(step, ints)
    for i in range(rows):
        mid = AT_MID + ints[LIVE + i] * HIDDEN
        scratch[FACTOR + i] = inverse_root(DOT_MLP_SQUARE(scratch, mid, scratch, mid), HIDDEN)
        weighed(scratch[mid:], weights[W_MLP_NORM:], row_of(scratch[X:], i))
        ints[STARTS + i] = X + i * HIDDEN
    for tile in range(DENSE_TILES):
        w = W_DENSE_UP_WEIGHT + tile * HIDDEN * 2 * DENSE_PAIRS
        PRODUCT_DENSE_UP(scratch, ints[STARTS:], rows, weights, w, scratch, SUMS)
        for i in range(rows):
            to = AT_DENSE_MIDS + ints[LIVE + i] * SHAPE_DENSE_SIZE + tile * DENSE_PAIRS
            at, scale = SUMS + i * 2 * DENSE_PAIRS, scratch[FACTOR + i]
            swiglu_tile(scratch[at : at + 2 * DENSE_PAIRS], scale, scratch[to : to + DENSE_PAIRS])


@stage
def dense_down(step, ints, weights, scratch, stream_out, aux):
    rows = find_live(step, ints)
    for i in range(rows):
        ints[STARTS + i] = AT_DENSE_MIDS + ints[LIVE + i] * SHAPE_DENSE_SIZE
    for tile in range(OUT_TILES):
        w = W_DENSE_DOWN_WEIGHT + tile * SHAPE_DENSE_SIZE * OUT_TILE
        PRODUCT_DENSE_DOWN(scratch, ints[STARTS:], rows, weights, w, scratch, SUMS)
        for i in range(rows):
            at = ints[LIVE + i] * HIDDEN + tile * OUT_TILE
            own = scratch[SUMS + i * OUT_TILE : SUMS + (i + 1) * OUT_TILE]
            out = stream_out[at : at + OUT_TILE]
            add_residual(own, scratch[AT_MID + at :], out)
            if TAPPED:
                aux[at : at + OUT_TILE] = out
    clear_pads(step, stream_out, aux)
