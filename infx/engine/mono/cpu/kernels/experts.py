# ruff: noqa: F821
# mypy: ignore-errors
"""Stages of a layer with experts. A block routes for itself; `down` uses what `up` routed."""

PICKS = SHAPE_EXPERTS_PER_TOKEN + 1
SHARED = SHAPE_EXPERTS
ROUTER_INPUTS = HIDDEN // ROUTER_PARTS
UP_TILES = SHAPE_EXPERT_SIZE // UP_PAIRS


@stage
def router(step, ints, weights, scratch):
    rows = find_live(step, ints)
    for i in range(rows):
        mid = row_of(scratch[AT_MID:], ints[LIVE + i])
        weighed(mid, weights[W_MLP_NORM:], row_of(scratch[X:], i))
    for part_of_k in range(ROUTER_PARTS):
        first = part_of_k * ROUTER_INPUTS
        for i in range(rows):
            row = ints[LIVE + i]
            x = AT_MID + row * HIDDEN + first
            scratch[AT_MID_SQUARES + part_of_k * WIDTH + row] = DOT_MLP_SQUARE(
                scratch, x, scratch, x
            )
            ints[STARTS + i] = X + i * HIDDEN + first
        for tile in range(ROUTER_TILES):
            at = tile * ROUTER_PARTS + part_of_k
            w = W_ROUTER_WEIGHT + at * ROUTER_INPUTS * ROUTER_TILE_SIZE
            PRODUCT_ROUTER(scratch, ints[STARTS:], rows, weights, w, scratch, SUMS)
            for i in range(rows):
                to = AT_LOGIT_SUMS + (at * WIDTH + ints[LIVE + i]) * ROUTER_TILE_SIZE
                copy(scratch, SUMS + i * ROUTER_TILE_SIZE, ROUTER_TILE_SIZE, to)


@part
def route(scratch, weights, row, factor):
    """Write the row's experts and weights, in order of choice, the shared one last."""
    for expert in range(SHAPE_EXPERTS):
        tile, place = expert // ROUTER_TILE_SIZE, expert % ROUTER_TILE_SIZE
        logit = np.float32(0)
        for k in range(ROUTER_PARTS):
            at = ((tile * ROUTER_PARTS + k) * WIDTH + row) * ROUTER_TILE_SIZE + place
            logit += scratch[AT_LOGIT_SUMS + at]
        chance = sigmoid(np.float32(factor * logit))
        scratch[CHANCE + expert] = chance
        scratch[RANK + expert] = np.float32(chance + weights[W_ROUTER_BIAS + expert])
    total = np.float32(0)
    for pick in range(SHAPE_EXPERTS_PER_TOKEN):
        best = -1
        for expert in range(SHAPE_EXPERTS):
            taken = False
            for earlier in range(pick):
                taken = taken or scratch[PICKED + row * PICKS + earlier] == np.float32(expert)
            if not taken and (best < 0 or scratch[RANK + expert] > scratch[RANK + best]):
                best = expert
        scratch[PICKED + row * PICKS + pick] = np.float32(best)
        total = np.float32(total + scratch[CHANCE + best])
    for pick in range(SHAPE_EXPERTS_PER_TOKEN):
        chance = scratch[CHANCE + np.int64(scratch[PICKED + row * PICKS + pick])]
        share = np.float32(np.float32(SHAPE_ROUTED_SCALE * np.float64(chance)) / total)
        scratch[SHARE + row * PICKS + pick] = share
    scratch[PICKED + row * PICKS + PICKS - 1] = np.float32(SHARED)
    scratch[SHARE + row * PICKS + PICKS - 1] = ONE


@part
def pairs_of(scratch, ints, rows, expert):
    """Put the (row, slot) pairs of ``expert`` at ints[PAIRS]; return how many."""
    count = 0
    for i in range(rows):
        row = ints[LIVE + i]
        for slot in range(PICKS):
            if scratch[PICKED + row * PICKS + slot] == np.float32(expert):
                ints[PAIRS + 2 * count], ints[PAIRS + 2 * count + 1] = i, slot
                count += 1
    return count


@stage
def up(step, ints, weights, scratch):
    rows = find_live(step, ints)
    for i in range(rows):
        row = ints[LIVE + i]
        squares = np.float32(0)
        for k in range(ROUTER_PARTS):
            squares += scratch[AT_MID_SQUARES + k * WIDTH + row]
        scratch[FACTOR + i] = inverse_root(squares, HIDDEN)
        route(scratch, weights, row, scratch[FACTOR + i])
        weighed(row_of(scratch[AT_MID:], row), weights[W_MLP_NORM:], row_of(scratch[X:], i))
    for expert in range(SHAPE_EXPERTS + 1):
        count = pairs_of(scratch, ints, rows, expert)
        if count == 0:
            continue
        for pair in range(count):
            ints[STARTS + pair] = X + ints[PAIRS + 2 * pair] * HIDDEN
        for tile in range(UP_TILES):
            w = W_UP_WEIGHT + (expert * UP_TILES + tile) * HIDDEN * 2 * UP_PAIRS
            PRODUCT_UP(scratch, ints[STARTS:], count, weights, w, scratch, SUMS)
            for pair in range(count):
                i, slot = ints[PAIRS + 2 * pair], ints[PAIRS + 2 * pair + 1]
                to = AT_MIDS + (ints[LIVE + i] * PICKS + slot) * SHAPE_EXPERT_SIZE + tile * UP_PAIRS
                at, scale = SUMS + pair * 2 * UP_PAIRS, scratch[FACTOR + i]
                swiglu_tile(scratch[at : at + 2 * UP_PAIRS], scale, scratch[to : to + UP_PAIRS])


@stage
def down(step, ints, weights, scratch, stream_out, aux, routing):
    rows = find_live(step, ints)
    for expert in range(SHAPE_EXPERTS + 1):
        count = pairs_of(scratch, ints, rows, expert)
        if count == 0:
            continue
        for pair in range(count):
            row, slot = ints[LIVE + ints[PAIRS + 2 * pair]], ints[PAIRS + 2 * pair + 1]
            ints[STARTS + pair] = AT_MIDS + (row * PICKS + slot) * SHAPE_EXPERT_SIZE
        for tile in range(OUT_TILES):
            w = W_DOWN_WEIGHT + (expert * OUT_TILES + tile) * SHAPE_EXPERT_SIZE * OUT_TILE
            PRODUCT_DOWN(scratch, ints[STARTS:], count, weights, w, scratch, SUMS)
            for pair in range(count):
                i, slot = ints[PAIRS + 2 * pair], ints[PAIRS + 2 * pair + 1]
                to = DONE + (i * PICKS + slot) * HIDDEN + tile * OUT_TILE
                copy(scratch, SUMS + pair * OUT_TILE, OUT_TILE, to)
    combine(ints, scratch, rows, stream_out, aux)
    clear_pads(step, stream_out, aux)
    write_routing(step, scratch, routing)


@part
def combine(ints, scratch, rows, stream_out, aux):
    """Write residual + Σ weight · expert(x), in the order of slots."""
    for i in range(rows):
        row = ints[LIVE + i]
        total, out = row_of(scratch[X:], i), row_of(stream_out, row)
        total[:] = 0
        for slot in range(PICKS):
            share, done = (
                scratch[SHARE + row * PICKS + slot],
                row_of(scratch[DONE:], i * PICKS + slot),
            )
            for j in range(HIDDEN):
                total[j] += np.float32(share * done[j])
        add_residual(total, row_of(scratch[AT_MID:], row), out)
        if TAPPED:
            row_of(aux, row)[:] = out


@part
def write_routing(step, scratch, routing):
    for row in range(WIDTH):
        line = row * 2 * SHAPE_EXPERTS_PER_TOKEN
        for pick in range(SHAPE_EXPERTS_PER_TOKEN):
            live = step[row] >= 0
            expert, share = (
                scratch[PICKED + row * PICKS + pick],
                scratch[SHARE + row * PICKS + pick],
            )
            routing[line + pick] = expert if live else -ONE
            routing[line + SHAPE_EXPERTS_PER_TOKEN + pick] = share if live else np.float32(0)
