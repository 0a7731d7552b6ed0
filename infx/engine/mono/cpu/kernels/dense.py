# ruff: noqa: F821
# mypy: ignore-errors
"""Stages of a layer with a dense MLP."""


@part
def dense_up(step, ints, weights, scratch):
    """Project the rows up, and gate."""
    rows = find_live(step, ints)
    x, sums = ahead(scratch, X), ahead(scratch, SUMS)
    starts, outs = ahead(ints, STARTS), ahead(ints, OUTS)
    for i in range(rows):
        mid = ahead(scratch, AT_MID + ints[LIVE + i] * HIDDEN)
        scratch[FACTOR + i] = inverse_root(DOT_MLP_SQUARE(mid, mid), HIDDEN)
        weighed(mid, ahead(weights, W_MLP_NORM), ahead(x, i * HIDDEN))
        starts[i], outs[i] = i * HIDDEN, i * 2 * SHAPE_DENSE_SIZE
    PRODUCT_DENSE_UP(x, starts, rows, ahead(weights, W_DENSE_UP_WEIGHT), sums, outs)
    for i in range(rows):
        to = ahead(scratch, AT_DENSE_MIDS + ints[LIVE + i] * SHAPE_DENSE_SIZE)
        swiglu(ahead(sums, outs[i]), scratch[FACTOR + i], to, SHAPE_DENSE_SIZE)


@part
def dense_down(step, ints, weights, scratch, stream_out):
    """Project down, add the residual, and clear the pads."""
    rows = find_live(step, ints)
    starts, outs = ahead(ints, STARTS), ahead(ints, OUTS)
    for i in range(rows):
        starts[i] = ints[LIVE + i] * SHAPE_DENSE_SIZE
        outs[i] = ints[LIVE + i] * HIDDEN
    mids, w = ahead(scratch, AT_DENSE_MIDS), ahead(weights, W_DENSE_DOWN_WEIGHT)
    PRODUCT_DENSE_DOWN(mids, starts, rows, w, stream_out, outs)
    for i in range(rows):
        own = ahead(stream_out, outs[i])
        add_residual(own, ahead(scratch, AT_MID + outs[i]), own)
    clear_pads(step, stream_out)
