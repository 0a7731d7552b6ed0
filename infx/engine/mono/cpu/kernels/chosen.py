# ruff: noqa: F821
# mypy: ignore-errors
"""Attention to chosen blocks: the stages that score and choose them."""

BEST = np.float32(np.inf)


@part
def seen_keys(position):
    blocks = min(SHAPE_TOPK_BLOCKS, position // BLOCK + 1)
    return (blocks - 1) * BLOCK + position % BLOCK + 1


@part
def block_of(scratch, row, group, place):
    at = (row * SHAPE_KV_HEADS + group) * SHAPE_TOPK_BLOCKS + place
    return np.int64(scratch[AT_CHOSEN + at])


@part
def keep_index(scratch, number, row, slot, x, index, index_scales):
    """Keep an index query in scratch, an index key in the cache."""
    if number < IK_FIRST:
        place = row * SHAPE_KV_HEADS + number - IQ_FIRST
        copy(x, ahead(scratch, AT_INDEX_QUERIES + place * DIM), DIM)
    else:
        PUT_INDEX(x, index, index_scales, slot)


@part
def scores_of(scratch, row, head):
    """Return the scores of a row's pages."""
    place = (row * SHAPE_KV_HEADS + head) * SCORE_PAGES
    return ahead(scratch, AT_SCORES + place)


@part
def score(step, scratch, index, index_scales):
    """Score a request's pages for each of its rows: the largest q k of a page."""
    for leader in range(WIDTH):
        last = last_of_request(step, leader)
        for page in range(last // BLOCK + 1 if last >= 0 else 0):
            first = page * BLOCK
            count = min(BLOCK, last + 1 - first)
            number = np.int64(step[3 * WIDTH + leader * PAGES + page])
            keys = GET_INDEX(index, index_scales, number * BLOCK, count, ahead(scratch, KEYS))
            for row in range(leader, WIDTH):
                if step[row] == step[leader]:
                    seen = min(count, np.int64(step[WIDTH + row]) + 1 - first)
                    score_page(scratch, row, page, keys, seen)


@part
def last_of_request(step, leader):
    """Return the last position of the request that ``leader`` leads, -1 where it leads none."""
    if step[leader] < 0:
        return -1
    for row in range(leader):
        if step[row] == step[leader]:
            return -1
    last = np.int64(0)
    for row in range(leader, WIDTH):
        if step[row] == step[leader]:
            last = max(last, np.int64(step[WIDTH + row]))
    return last


@part
def score_page(scratch, row, page, keys, seen):
    dots = ahead(scratch, P)
    for head in range(SHAPE_KV_HEADS):
        query = ahead(scratch, AT_INDEX_QUERIES + (row * SHAPE_KV_HEADS + head) * DIM)
        best = -BEST
        if seen > 0:
            DOTS_INDEX_DOT(query, keys, seen, dots)
            best = dots[0]
            for j in range(1, seen):
                best = dots[j] if dots[j] > best else best
        scores_of(scratch, row, head)[page] = best


@part
def select(step, scratch):
    """Choose the blocks that each row attends to."""
    for row in range(WIDTH):
        if step[row] >= 0:
            for group in range(SHAPE_KV_HEADS):
                choose(scratch, row, group, np.int64(step[WIDTH + row]) // BLOCK)


@part
def choose(scratch, row, group, own):
    """Write the row's best blocks and its own, ascending; ties go to the lower block."""
    to = AT_CHOSEN + (row * SHAPE_KV_HEADS + group) * SHAPE_TOPK_BLOCKS
    if own < SHAPE_TOPK_BLOCKS:
        for i in range(SHAPE_TOPK_BLOCKS):
            scratch[to + i] = np.float32(i if i <= own else -1)
        return
    scores = scores_of(scratch, row, group)
    # Best first at scratch[RANKED]; a later block passes an earlier one only by a better score.
    kept = 0
    for turn in range(own + 1):
        page = own if turn == 0 else turn - 1
        one = BEST if turn == 0 else scores[page]
        one = -BEST if one != one else one
        place = kept
        while place > 0 and better(one, page, scratch, place - 1):
            place -= 1
        if place == SHAPE_TOPK_BLOCKS:
            continue
        for i in range(min(kept, SHAPE_TOPK_BLOCKS - 1), place, -1):
            scratch[RANKED + 2 * i] = scratch[RANKED + 2 * i - 2]
            scratch[RANKED + 2 * i + 1] = scratch[RANKED + 2 * i - 1]
        scratch[RANKED + 2 * place], scratch[RANKED + 2 * place + 1] = one, np.float32(page)
        kept = min(kept + 1, SHAPE_TOPK_BLOCKS)
    ascend(scratch, to)


@part
def better(one, page, scratch, place):
    other = scratch[RANKED + 2 * place]
    return one > other or (one == other and np.float32(page) < scratch[RANKED + 2 * place + 1])


@part
def ascend(scratch, to):
    """Write the ranked blocks in ascending order."""
    for i in range(SHAPE_TOPK_BLOCKS):
        page = scratch[RANKED + 2 * i + 1]
        place = i
        while place > 0 and scratch[to + place - 1] > page:
            scratch[to + place] = scratch[to + place - 1]
            place -= 1
        scratch[to + place] = page
