# ruff: noqa: F821
# mypy: ignore-errors
"""Stages of a layer with experts. A block routes for itself; `down` uses what `up` routed."""

PICKS = SHAPE_EXPERTS_PER_TOKEN + 1
SHARED = SHAPE_EXPERTS
ROUTER_INPUTS = HIDDEN // ROUTER_PARTS


@part
def router(step, ints, weights, scratch):
    """Project the rows to the experts' logits, and sum the squares of the norm."""
    rows = find_live(step, ints)
    x, starts, outs = ahead(scratch, X), ahead(ints, STARTS), ahead(ints, OUTS)
    for i in range(rows):
        mid = ahead(scratch, AT_MID + ints[LIVE + i] * HIDDEN)
        weighed(mid, ahead(weights, W_MLP_NORM), ahead(x, i * HIDDEN))
    for part_of_k in range(ROUTER_PARTS):
        first = part_of_k * ROUTER_INPUTS
        for i in range(rows):
            row = ints[LIVE + i]
            mid = ahead(scratch, AT_MID + row * HIDDEN + first)
            scratch[AT_MID_SQUARES + part_of_k * WIDTH + row] = DOT_MLP_SQUARE(mid, mid)
            starts[i] = i * HIDDEN + first
            outs[i] = AT_LOGIT_SUMS + (part_of_k * WIDTH + row) * SHAPE_EXPERTS
        w = ahead(weights, W_ROUTER_WEIGHT + first * SHAPE_EXPERTS)
        PRODUCT_ROUTER(x, starts, rows, w, scratch, outs)


@part
def route(scratch, weights, row, factor):
    """Write the row's experts and weights, in order of choice, the shared one last."""
    picked, share = ahead(scratch, PICKED + row * PICKS), ahead(scratch, SHARE + row * PICKS)
    chances, ranks = ahead(scratch, CHANCE), ahead(scratch, RANK)
    for expert in range(SHAPE_EXPERTS):
        logit = np.float32(0)
        for k in range(ROUTER_PARTS):
            logit += scratch[AT_LOGIT_SUMS + (k * WIDTH + row) * SHAPE_EXPERTS + expert]
        chances[expert] = sigmoid(np.float32(factor * logit))
        ranks[expert] = np.float32(chances[expert] + weights[W_ROUTER_BIAS + expert])
    total = np.float32(0)
    for pick in range(SHAPE_EXPERTS_PER_TOKEN):
        best = -1
        for expert in range(SHAPE_EXPERTS):
            taken = False
            for earlier in range(pick):
                taken = taken or picked[earlier] == np.float32(expert)
            if not taken and (best < 0 or ranks[expert] > ranks[best]):
                best = expert
        picked[pick] = np.float32(best)
        total = np.float32(total + chances[best])
    for pick in range(SHAPE_EXPERTS_PER_TOKEN):
        chance = chances[np.int64(picked[pick])]
        share[pick] = np.float32(np.float32(SHAPE_ROUTED_SCALE * np.float64(chance)) / total)
    picked[PICKS - 1], share[PICKS - 1] = np.float32(SHARED), ONE


@part
def route_all(step, ints, weights, scratch):
    """Route each row and write its normed input; return how many rows there are."""
    rows = find_live(step, ints)
    for i in range(rows):
        row = ints[LIVE + i]
        squares = np.float32(0)
        for k in range(ROUTER_PARTS):
            squares += scratch[AT_MID_SQUARES + k * WIDTH + row]
        scratch[FACTOR + i] = inverse_root(squares, HIDDEN)
        route(scratch, weights, row, scratch[FACTOR + i])
        mid = ahead(scratch, AT_MID + row * HIDDEN)
        weighed(mid, ahead(weights, W_MLP_NORM), ahead(scratch, X + i * HIDDEN))
    return rows


@part
def pairs_of(scratch, ints, rows, expert):
    """Put the (row, slot) pairs of ``expert`` at ints[PAIRS]; return how many."""
    count = 0
    for i in range(rows):
        picked = ahead(scratch, PICKED + ints[LIVE + i] * PICKS)
        for slot in range(PICKS):
            if picked[slot] == np.float32(expert):
                ints[PAIRS + 2 * count], ints[PAIRS + 2 * count + 1] = i, slot
                count += 1
    return count


@part
def up_of(expert, count, ints, weights, scratch):
    """Write the swiglu of an expert's ``count`` pairs."""
    starts, outs, sums = ahead(ints, STARTS), ahead(ints, OUTS), ahead(scratch, SUMS)
    for pair in range(count):
        starts[pair] = ints[PAIRS + 2 * pair] * HIDDEN
        outs[pair] = pair * 2 * SHAPE_EXPERT_SIZE
    w = ahead(weights, W_UP_WEIGHT + expert * HIDDEN * 2 * SHAPE_EXPERT_SIZE)
    PRODUCT_UP(ahead(scratch, X), starts, count, w, sums, outs)
    for pair in range(count):
        i, slot = ints[PAIRS + 2 * pair], ints[PAIRS + 2 * pair + 1]
        to = ahead(scratch, AT_MIDS + (ints[LIVE + i] * PICKS + slot) * SHAPE_EXPERT_SIZE)
        swiglu(ahead(sums, outs[pair]), scratch[FACTOR + i], to, SHAPE_EXPERT_SIZE)


@part
def down_of(expert, count, ints, weights, scratch):
    """Write what an expert makes of its pairs."""
    starts, outs = ahead(ints, STARTS), ahead(ints, OUTS)
    for pair in range(count):
        i, slot = ints[PAIRS + 2 * pair], ints[PAIRS + 2 * pair + 1]
        starts[pair] = (ints[LIVE + i] * PICKS + slot) * SHAPE_EXPERT_SIZE
        outs[pair] = (i * PICKS + slot) * HIDDEN
    w = ahead(weights, W_DOWN_WEIGHT + expert * HIDDEN * SHAPE_EXPERT_SIZE)
    PRODUCT_DOWN(ahead(scratch, AT_MIDS), starts, count, w, ahead(scratch, DONE), outs)


@part
def up(step, ints, weights, scratch):
    """Route the rows, and write the swiglu of each chosen expert's pairs."""
    rows = route_all(step, ints, weights, scratch)
    for expert in range(SHAPE_EXPERTS + 1):
        count = pairs_of(scratch, ints, rows, expert)
        if count > 0:
            up_of(expert, count, ints, weights, scratch)


@part
def down(step, ints, weights, scratch, stream_out, routing):
    """Write what each chosen expert makes of its pairs, and combine by row."""
    rows = find_live(step, ints)
    for expert in range(SHAPE_EXPERTS + 1):
        count = pairs_of(scratch, ints, rows, expert)
        if count > 0:
            down_of(expert, count, ints, weights, scratch)
    combine(step, ints, scratch, rows, stream_out, routing)


@part
def up_and_down(step, ints, weights, scratch, stream_out, routing):
    """Do both for one expert after another, while what `up` wrote is still in L1."""
    rows = route_all(step, ints, weights, scratch)
    for expert in range(SHAPE_EXPERTS + 1):
        count = pairs_of(scratch, ints, rows, expert)
        if count > 0:
            up_of(expert, count, ints, weights, scratch)
            down_of(expert, count, ints, weights, scratch)
    combine(step, ints, scratch, rows, stream_out, routing)


@part
def combine(step, ints, scratch, rows, stream_out, routing):
    """Write residual + Σ weight · expert(x), in the order of slots, and who was chosen."""
    total = ahead(scratch, X)
    for i in range(rows):
        row = ints[LIVE + i]
        for j in range(HIDDEN):
            total[j] = 0
        for slot in range(PICKS):
            share = scratch[SHARE + row * PICKS + slot]
            done = ahead(scratch, DONE + (i * PICKS + slot) * HIDDEN)
            for j in range(HIDDEN):
                total[j] += np.float32(share * done[j])
        mid = ahead(scratch, AT_MID + row * HIDDEN)
        add_residual(total, mid, ahead(stream_out, row * HIDDEN))
    clear_pads(step, stream_out)
    write_routing(step, scratch, routing)


@part
def write_routing(step, scratch, routing):
    for row in range(WIDTH):
        line, live = ahead(routing, row * 2 * SHAPE_EXPERTS_PER_TOKEN), step[row] >= 0
        for pick in range(SHAPE_EXPERTS_PER_TOKEN):
            expert = scratch[PICKED + row * PICKS + pick]
            share = scratch[SHARE + row * PICKS + pick]
            line[pick] = expert if live else -ONE
            line[SHAPE_EXPERTS_PER_TOKEN + pick] = share if live else np.float32(0)
