# ruff: noqa: F821
# mypy: ignore-errors
"""Stages from the residual stream to the stream after attention, but for what sparsity adds."""

QKV_FEATURES = V_END * DIM
QKV_INPUTS = HIDDEN // QKV_PARTS
GROUP = SHAPE_HEADS // SHAPE_KV_HEADS
LINE = DIM + 2
ROOT = np.float32(1 / math.sqrt(DIM))


@part
def qkv(step, ints, stream_in, weights, scratch):
    """Project the rows: sums of x (1 + w), and of squares, which the factor is made of later."""
    rows = find_live(step, ints)
    x, starts, outs = ahead(scratch, X), ahead(ints, STARTS), ahead(ints, OUTS)
    for i in range(rows):
        source = ahead(stream_in, ints[LIVE + i] * HIDDEN)
        weighed(source, ahead(weights, W_ATTENTION_NORM), ahead(x, i * HIDDEN))
    for part_of_k in range(QKV_PARTS):
        first = part_of_k * QKV_INPUTS
        for i in range(rows):
            row = ints[LIVE + i]
            own = ahead(stream_in, row * HIDDEN + first)
            scratch[AT_QKV_SQUARES + part_of_k * WIDTH + row] = DOT_QKV_SQUARE(own, own)
            starts[i] = i * HIDDEN + first
            outs[i] = AT_QKV_SUMS + (part_of_k * WIDTH + row) * QKV_FEATURES
        w = ahead(weights, W_QKV_WEIGHT + first * QKV_FEATURES)
        PRODUCT_QKV(x, starts, rows, w, scratch, outs)


@part
def head_features(scratch, head, row, factor, x):
    """Write a head of the projection at x: parts of K added, then the factor."""
    for i in range(DIM):
        total = np.float32(0)
        for k in range(QKV_PARTS):
            total += scratch[AT_QKV_SUMS + (k * WIDTH + row) * QKV_FEATURES + head * DIM + i]
        x[i] = factor * total


@part
def norm_and_turn(x, norm, turn):
    scale = inverse_root(DOT_HEAD_SQUARE(x, x), DIM)
    for i in range(DIM):
        x[i] = np.float32(scale * x[i]) * norm[i]
    half = SHAPE_ROTARY_DIM // 2
    for i in range(half):
        a, b = x[i], x[half + i]
        x[i] = np.float32(a * turn[i]) - np.float32(b * turn[half + i])
        x[half + i] = np.float32(b * turn[i]) + np.float32(a * turn[half + i])


@part
def head(step, turn, weights, scratch, keys, key_scales, values, value_scales, index, index_scales):
    """Norm and turn each head; keep queries in scratch, keys and values in the cache."""
    x = ahead(scratch, VECTOR)
    for row in range(WIDTH):
        if step[row] < 0:
            continue
        squares = np.float32(0)
        for k in range(QKV_PARTS):
            squares += scratch[AT_QKV_SQUARES + k * WIDTH + row]
        factor = inverse_root(squares, HIDDEN)
        slot = np.int64(step[2 * WIDTH + row])
        page, offset = slot // BLOCK, slot % BLOCK
        for number in range(V_END):
            head_features(scratch, number, row, factor, x)
            if number < V_FIRST:
                norm = ahead(weights, W_HEAD_NORM + number * DIM)
                norm_and_turn(x, norm, ahead(turn, row * SHAPE_ROTARY_DIM))
            if number < K_FIRST:
                copy(x, ahead(scratch, AT_QUERIES + (row * SHAPE_HEADS + number) * DIM), DIM)
            elif number < IQ_FIRST:
                place = (page * SHAPE_KV_HEADS + number - K_FIRST) * BLOCK + offset
                PUT_KV(x, keys, key_scales, place)
            elif number >= V_FIRST:
                place = (page * SHAPE_KV_HEADS + number - V_FIRST) * BLOCK + offset
                PUT_KV(x, values, value_scales, place)
            else:
                keep_index(scratch, number, row, slot, x, index, index_scales)


@part
def split(step, scratch, keys, key_scales, values, value_scales):
    """Attend, partition by partition of a row's own keys."""
    for row in range(WIDTH):
        if step[row] < 0:
            continue
        seen = seen_keys(np.int64(step[WIDTH + row]))
        for group in range(SHAPE_KV_HEADS):
            load_queries(scratch, row, group)
            for partition in range(0, (seen + SHAPE_PARTITION - 1) // SHAPE_PARTITION):
                first = partition * SHAPE_PARTITION
                end = min(first + SHAPE_PARTITION, seen)
                place = ((row * SHAPE_KV_HEADS + group) * PARTITIONS + partition) * GROUP
                lines = ahead(scratch, AT_PARTIALS + place * LINE)
                score_keys(step, scratch, keys, key_scales, row, group, first, end)
                weigh_scores(scratch, end - first, lines)
                mix_values(step, scratch, values, value_scales, row, group, first, end, lines)


@part
def load_queries(scratch, row, group):
    """Write a group's queries at scratch[Q], as they meet the keys, over sqrt(dim)."""
    queries = ahead(scratch, AT_QUERIES + (row * SHAPE_HEADS + group * GROUP) * DIM)
    for i in range(GROUP * DIM):
        scratch[Q + i] = ROOT * MEET(queries[i])


@part
def vector_of(step, scratch, row, group, place):
    """Return the number, in the cache, of a row's vector ``place`` of those it attends to."""
    page = step[3 * WIDTH + row * PAGES + block_of(scratch, row, group, place // BLOCK)]
    return (np.int64(page) * SHAPE_KV_HEADS + group) * BLOCK + place % BLOCK


@part
def score_keys(step, scratch, keys, key_scales, row, group, first, end):
    """Write the group's q k of the row's keys number first ... end - 1 at scratch[P]."""
    place = first
    while place < end:
        count = min(BLOCK - place % BLOCK, end - place)
        vector = vector_of(step, scratch, row, group, place)
        own = GET_KV(keys, key_scales, vector, count, ahead(scratch, KEYS))
        for h in range(GROUP):
            to = ahead(scratch, P + h * SHAPE_PARTITION + place - first)
            DOTS_ATTENTION_DOT(ahead(scratch, Q + h * DIM), own, count, to)
        place += count


@part
def weigh_scores(scratch, count, lines):
    """Make scratch[P] e^(score - largest); write the largest and the sum to the partial's line."""
    for h in range(GROUP):
        scores = ahead(scratch, P + h * SHAPE_PARTITION)
        largest = scores[0]
        for j in range(1, count):
            largest = scores[j] if scores[j] > largest else largest
        for j in range(count):
            scores[j] = exponential(np.float32(scores[j] - largest))
        total = np.float32(0)
        for j in range(count):
            total += scores[j]
        lines[h * LINE + DIM] = largest
        lines[h * LINE + DIM + 1] = total


@part
def mix_values(step, scratch, values, value_scales, row, group, first, end, lines):
    """Write the group's Σ p v to the partial's lines."""
    sums = ahead(scratch, SUMS)
    for i in range(GROUP * DIM):
        sums[i] = 0
    place = first
    while place < end:
        count = min(BLOCK - place % BLOCK, end - place)
        vector = vector_of(step, scratch, row, group, place)
        own = GET_KV(values, value_scales, vector, count, ahead(scratch, KEYS))
        weights = ahead(scratch, P + place - first)
        ADD_ATTENTION_KEYS(weights, SHAPE_PARTITION, count, own, sums)
        place += count
    for h in range(GROUP):
        copy(ahead(sums, h * DIM), ahead(lines, h * LINE), DIM)


@part
def merge_head(scratch, row, head, count, out):
    """Write attention's output of a head: its ``count`` partitions merged in their order."""
    group, place = head // GROUP, head % GROUP
    first = (row * SHAPE_KV_HEADS + group) * PARTITIONS * GROUP + place
    lines, apart = ahead(scratch, AT_PARTIALS + first * LINE), GROUP * LINE
    largest = lines[DIM]
    for i in range(1, count):
        other = lines[i * apart + DIM]
        largest = other if other > largest else largest
    total = np.float32(0)
    for j in range(DIM):
        out[j] = 0
    for i in range(count):
        line = ahead(lines, i * apart)
        factor = exponential(np.float32(line[DIM] - largest))
        for j in range(DIM):
            out[j] += np.float32(factor * line[j])
        total += np.float32(factor * line[DIM + 1])
    for j in range(DIM):
        out[j] = out[j] / total


@part
def merge(step, scratch):
    """Merge each row's partitions, in their order."""
    for row in range(WIDTH):
        if step[row] >= 0:
            seen = seen_keys(np.int64(step[WIDTH + row]))
            count = (seen + SHAPE_PARTITION - 1) // SHAPE_PARTITION
            for number in range(SHAPE_HEADS):
                to = ahead(scratch, AT_MERGED + (row * SHAPE_HEADS + number) * DIM)
                merge_head(scratch, row, number, count, to)


@part
def o(step, ints, stream_in, weights, scratch):
    """Project the merged heads, and add the residual."""
    rows = find_live(step, ints)
    starts, outs = ahead(ints, STARTS), ahead(ints, OUTS)
    for i in range(rows):
        starts[i] = ints[LIVE + i] * SHAPE_HEADS * DIM
        outs[i] = ints[LIVE + i] * HIDDEN
    merged, mids = ahead(scratch, AT_MERGED), ahead(scratch, AT_MID)
    PRODUCT_O(merged, starts, rows, ahead(weights, W_O_WEIGHT), mids, outs)
    for i in range(rows):
        own = ahead(mids, outs[i])
        add_residual(own, ahead(stream_in, outs[i]), own)
