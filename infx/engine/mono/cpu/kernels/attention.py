# ruff: noqa: F821
# mypy: ignore-errors
"""Stages from the residual stream to the stream after attention, but for what sparsity adds."""

QKV_FEATURES = QKV_TILES * QKV_TILE_SIZE
QKV_INPUTS = HIDDEN // QKV_PARTS
GROUP = SHAPE_HEADS // SHAPE_KV_HEADS
LINE = DIM + 2
ROOT = np.float32(1 / math.sqrt(DIM))


@stage
def qkv(step, ints, stream_in, weights, scratch):
    rows = find_live(step, ints)
    for i in range(rows):
        weighed(
            row_of(stream_in, ints[LIVE + i]), weights[W_ATTENTION_NORM:], row_of(scratch[X:], i)
        )
    for part_of_k in range(QKV_PARTS):
        first = part_of_k * QKV_INPUTS
        for i in range(rows):
            row = ints[LIVE + i]
            x = row * HIDDEN + first
            scratch[AT_QKV_SQUARES + part_of_k * WIDTH + row] = DOT_QKV_SQUARE(
                stream_in, x, stream_in, x
            )
            ints[STARTS + i] = X + i * HIDDEN + first
        for tile in range(QKV_TILES):
            w = W_QKV_WEIGHT + (tile * QKV_PARTS + part_of_k) * QKV_INPUTS * QKV_TILE_SIZE
            PRODUCT_QKV(scratch, ints[STARTS:], rows, weights, w, scratch, SUMS)
            for i in range(rows):
                row = ints[LIVE + i]
                to = AT_QKV_SUMS + (part_of_k * WIDTH + row) * QKV_FEATURES + tile * QKV_TILE_SIZE
                copy(scratch, SUMS + i * QKV_TILE_SIZE, QKV_TILE_SIZE, to)


@part
def head_features(scratch, head, row, factor):
    """Write a head of the projection at scratch[VECTOR]: parts of K added, then the factor."""
    total = scratch[VECTOR : VECTOR + DIM]
    total[:] = 0
    for k in range(QKV_PARTS):
        at = AT_QKV_SUMS + (k * WIDTH + row) * QKV_FEATURES + head * DIM
        sums = scratch[at : at + DIM]
        for i in range(DIM):
            total[i] += sums[i]
    for i in range(DIM):
        total[i] = factor * total[i]


@part
def norm_and_turn(scratch, weights, turn, head, row):
    scale = inverse_root(DOT_HEAD_SQUARE(scratch, VECTOR, scratch, VECTOR), DIM)
    x, norm = scratch[VECTOR : VECTOR + DIM], weights[W_HEAD_NORM + head * DIM :]
    for i in range(DIM):
        x[i] = np.float32(scale * x[i]) * norm[i]
    half = SHAPE_ROTARY_DIM // 2
    cos = turn[row * 2 * half : row * 2 * half + half]
    sin = turn[row * 2 * half + half : (row + 1) * 2 * half]
    low, high = x[:half], x[half : 2 * half]
    for i in range(half):
        a, b = low[i], high[i]
        low[i] = np.float32(a * cos[i]) - np.float32(b * sin[i])
        high[i] = np.float32(b * cos[i]) + np.float32(a * sin[i])


@stage
def head(step, turn, weights, scratch, kv, kv_scale, index, index_scale):
    values = kv.size // (2 * KV_WORDS)
    for row in range(WIDTH):
        if step[row] < 0:
            continue
        squares = np.float32(0)
        for k in range(QKV_PARTS):
            squares += scratch[AT_QKV_SQUARES + k * WIDTH + row]
        factor = inverse_root(squares, HIDDEN)
        slot = step[2 * WIDTH + row]
        page, offset = slot // BLOCK, slot % BLOCK
        for number in range(V_END):
            head_features(scratch, number, row, factor)
            if number < V_FIRST:
                norm_and_turn(scratch, weights, turn, number, row)
            if number < K_FIRST:
                to = AT_QUERIES + (number * WIDTH + row) * DIM
                copy(scratch, VECTOR, DIM, to)
            elif number < IQ_FIRST:
                place = (page * SHAPE_KV_HEADS + number - K_FIRST) * BLOCK + offset
                PUT_KV(scratch, VECTOR, kv, kv_scale, place)
            elif number >= V_FIRST:
                place = (page * SHAPE_KV_HEADS + number - V_FIRST) * BLOCK + offset
                PUT_KV(scratch, VECTOR, kv, kv_scale, values + place)
            else:
                keep_index(scratch, number, row, slot, index, index_scale)


@stage
def split(step, scratch, ints, kv, kv_scale):
    for row in range(WIDTH):
        if step[row] < 0:
            continue
        seen = seen_keys(step[WIDTH + row])
        for group in range(SHAPE_KV_HEADS):
            load_queries(scratch, row, group)
            for partition in range(0, (seen + SHAPE_PARTITION - 1) // SHAPE_PARTITION):
                first = partition * SHAPE_PARTITION
                end = min(first + SHAPE_PARTITION, seen)
                to = AT_PARTIALS + (
                    ((row * SHAPE_KV_HEADS + group) * PARTITIONS + partition) * GROUP * LINE
                )
                score_keys(step, scratch, kv, kv_scale, row, group, first, end)
                weigh_scores(scratch, end - first, to)
                mix_values(step, scratch, ints, kv, kv_scale, row, group, first, end, to)


@part
def load_queries(scratch, row, group):
    """Write a group's queries at scratch[QUERIES], as they meet the keys, over sqrt(dim)."""
    for h in range(GROUP):
        at = AT_QUERIES + ((group * GROUP + h) * WIDTH + row) * DIM
        for i in range(DIM):
            scratch[Q + h * DIM + i] = ROOT * MEET(scratch[at + i])


@part
def score_keys(step, scratch, kv, kv_scale, row, group, first, end):
    """Write the group's q k of the row's keys number first ... end - 1 at scratch[P]."""
    place = first
    while place < end:
        inside = place % BLOCK
        count = min(BLOCK - inside, end - place)
        page = step[3 * WIDTH + row * PAGES + block_of(scratch, row, group, place // BLOCK)]
        vector = (page * SHAPE_KV_HEADS + group) * BLOCK + inside
        keys, at = GET_KV(kv, kv_scale, vector, count, scratch, KEYS)
        for j in range(count):
            for h in range(GROUP):
                scratch[P + h * SHAPE_PARTITION + place - first + j] = DOT_ATTENTION_DOT(
                    scratch, Q + h * DIM, keys, at + j * DIM
                )
        place += count


@part
def weigh_scores(scratch, count, to):
    """Make scratch[P] e^(score - largest); write the largest and the sum to the partial's line."""
    for h in range(GROUP):
        scores = scratch[P + h * SHAPE_PARTITION : P + h * SHAPE_PARTITION + count]
        largest = scores[0]
        for j in range(1, count):
            largest = scores[j] if scores[j] > largest else largest
        for j in range(count):
            scores[j] = exponential(np.float32(scores[j] - largest))
        total = np.float32(0)
        for j in range(count):
            total += scores[j]
        scratch[to + h * LINE + DIM] = largest
        scratch[to + h * LINE + DIM + 1] = total


@part
def mix_values(step, scratch, ints, kv, kv_scale, row, group, first, end, to):
    """Write the group's Σ p v to the partial's lines."""
    values = kv.size // (2 * KV_WORDS)
    scratch[SUMS : SUMS + GROUP * DIM] = 0
    for h in range(GROUP):
        ints[STARTS + h] = P + h * SHAPE_PARTITION
    place = first
    while place < end:
        inside = place % BLOCK
        count = min(BLOCK - inside, end - place)
        page = step[3 * WIDTH + row * PAGES + block_of(scratch, row, group, place // BLOCK)]
        vector = values + (page * SHAPE_KV_HEADS + group) * BLOCK + inside
        mixed, at = GET_KV(kv, kv_scale, vector, count, scratch, KEYS)
        ADD_ATTENTION_KEYS(
            scratch, ints[STARTS:], GROUP, place - first, count, mixed, at, scratch, SUMS
        )
        place += count
    for h in range(GROUP):
        copy(scratch, SUMS + h * DIM, DIM, to + h * LINE)


@part
def merge_head(scratch, row, head, count, to):
    """Write attention's output of a head: its ``count`` partitions merged in their order."""
    group, place = head // GROUP, head % GROUP
    at = AT_PARTIALS + (row * SHAPE_KV_HEADS + group) * PARTITIONS * GROUP * LINE + place * LINE
    largest = scratch[at + DIM]
    for i in range(1, count):
        other = scratch[at + i * GROUP * LINE + DIM]
        largest = other if other > largest else largest
    out, total = scratch[to : to + DIM], np.float32(0)
    out[:] = 0
    for i in range(count):
        line = scratch[at + i * GROUP * LINE : at + i * GROUP * LINE + LINE]
        factor = exponential(np.float32(line[DIM] - largest))
        for j in range(DIM):
            out[j] += np.float32(factor * line[j])
        total += np.float32(factor * line[DIM + 1])
    for j in range(DIM):
        out[j] = out[j] / total


@stage
def merge(step, scratch):
    for row in range(WIDTH):
        if step[row] >= 0:
            seen = seen_keys(step[WIDTH + row])
            count = (seen + SHAPE_PARTITION - 1) // SHAPE_PARTITION
            for number in range(SHAPE_HEADS):
                to = AT_MERGED + (number * WIDTH + row) * DIM
                merge_head(scratch, row, number, count, to)


@stage
def o(step, ints, stream_in, weights, scratch):
    rows = find_live(step, ints)
    inputs = SHAPE_HEADS * DIM
    for i in range(rows):
        row = ints[LIVE + i]
        ints[STARTS + i] = X + i * inputs
        gather(step, scratch, row, X + i * inputs)
    for tile in range(OUT_TILES):
        w = W_O_WEIGHT + tile * inputs * OUT_TILE
        PRODUCT_O(scratch, ints[STARTS:], rows, weights, w, scratch, SUMS)
        for i in range(rows):
            at = ints[LIVE + i] * HIDDEN + tile * OUT_TILE
            own = scratch[SUMS + i * OUT_TILE : SUMS + (i + 1) * OUT_TILE]
            add_residual(own, stream_in[at:], scratch[AT_MID + at :])


@part
def gather(step, scratch, row, to):
    """Write all heads of a row one after another."""
    if FOLDED:
        seen = seen_keys(step[WIDTH + row])
        count = (seen + SHAPE_PARTITION - 1) // SHAPE_PARTITION
        for number in range(SHAPE_HEADS):
            merge_head(scratch, row, number, count, to + number * DIM)
    else:
        for number in range(SHAPE_HEADS):
            copy(scratch, AT_MERGED + (number * WIDTH + row) * DIM, DIM, to + number * DIM)
