// Index scores: the largest q k of each page that a request sees, for each of its rows.
//
// A task is two pages (256 tokens) of one request: a warp reads 16 of their index keys as the rows
// of a matrix, the columns are queries. A query is two columns, what an operand holds of it and the
// rest, so that scores are as good as float32's (2^-16 with bf16 operands, 2^-21 with f16); the two
// sums lie in one lane. The block makes its index queries itself, and the task whose pages hold a
// row's own token makes and keeps that token's index key: no stage comes between projection and
// scores. A maximum has no order, so a row's scores depend on that row and its keys alone.
#pragma once
#include "attn_head.cuh"

constexpr int QUAD = 4;  // rows whose queries are the eight columns of one MMA
constexpr int INDEX_BYTES = bytes_of_token<INDEX_KIND>();
// Tiles that are under way while one is worked on: as many as registers hold.
constexpr int TILES_AHEAD = INDEX_KIND == BF16 ? 1 : 2;
struct ScoreShared {
    uint2 queries[ROWS][8][32];   // by first row of the quad: operands of 8 MMAs, a lane each
    float best[2][ROWS][WARPS];   // by parity of the task: the largest score of a warp's 16 tokens
    // Index keys of the step's own tokens, as the cache gets them.
    alignas(16) u8 fresh[ROWS][INDEX_BYTES];
    u8 fresh_scales[ROWS][4];
};

// One lane's words of 16 index keys: tokens lane / 4 and lane / 4 + 8 of the warp's.
struct KeyTile {
    u32 low[Words<INDEX_KIND>::COUNT], high[Words<INDEX_KIND>::COUNT], factors[2];
};

// The page of a task that this warp reads; any of the table where there is no such task.
__device__ __forceinline__ int page_of(const LayerArgs& a, const StepRows& s, int task) {
    int chunk;
    const int leader = leader_of(s, min(task, s.tasks - 1), chunk);
    // The last pair may have one page only: it is read twice, and its second scores go nowhere.
    const int last = __shfl_sync(ALL_LANES, s.last, leader) / BLOCK;
    return __ldg(a.pages + (long)leader * a.page_stride + min(2 * chunk + warp_id() / 8, last));
}

__device__ __forceinline__ void load_tile(const LayerArgs& a, int page, KeyTile& tile) {
    const int lane = lane_id();
    const int token = warp_id() % 8 * 16 + lane / 4;
    const u8* at = a.index_keys + (long)page * (BLOCK * INDEX_BYTES) + token * INDEX_BYTES;
    load_words<INDEX_KIND>(tile.low, at);
    load_words<INDEX_KIND>(tile.high, at + 8 * INDEX_BYTES);
    if (INDEX_KIND == MXFP4) {
        const u8* scales = a.index_scales + (long)page * (BLOCK * 4) + token * 4 + lane % 4;
        tile.factors[0] = __ldcg(scales), tile.factors[1] = __ldcg(scales + 8 * 4);
    }
}

// Put the step's own tokens in a tile that was loaded before they were.
__device__ __forceinline__ void put_fresh(const StepRows& s, const ScoreShared& shared, int leader,
                                          int chunk, KeyTile& tile) {
    const int lane = lane_id();
    const bool own = s.id == __shfl_sync(ALL_LANES, s.id, leader);
    u32 rows = __ballot_sync(ALL_LANES, own && s.position / 16 == chunk * WARPS + warp_id());
    for (; rows; rows &= rows - 1) {
        const int row = __ffs(rows) - 1;
        const int token = __shfl_sync(ALL_LANES, s.position, row) % 16;
        if (token % 8 != lane / 4) continue;
        const u32 scale = INDEX_KIND == MXFP4 ? shared.fresh_scales[row][lane % 4] : 0;
        tile.factors[0] = token < 8 ? scale : tile.factors[0];
        tile.factors[1] = token < 8 ? tile.factors[1] : scale;
#pragma unroll
        for (int c = 0; c < Words<INDEX_KIND>::COUNT; c++) {
            const u8* from = &shared.fresh[row][c / 4 * 64 + lane % 4 * 16 + c % 4 * 4];
            const u32 word = *(const u32*)from;
            tile.low[c] = token < 8 ? word : tile.low[c];
            tile.high[c] = token < 8 ? tile.high[c] : word;
        }
    }
}

// Keep both halves of an index query as operands of its request's `place`-th row.
__device__ __forceinline__ void keep_query(uint2* quad, int place, const float (&x)[4]) {
    u16* halves = reinterpret_cast<u16*>(quad);
    const int column = place % QUAD * 2;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const Meeting at = meeting_of<INDEX_KIND>(j, lane_id());
        const float number = INDEX_KIND == MXFP4 ? x[j] * MXFP4_UP : x[j];
        u16* to = halves + (at.i * 32 + column * 4 + at.q) * 4 + at.e;
        to[0] = pack<INDEX_KIND>(number, 0.0f);
        to[16] = pack<INDEX_KIND>(number - held<INDEX_KIND>(number), 0.0f);
    }
}

// Copy a new index key to its slot of the cache.
__device__ __forceinline__ void keep_fresh(const LayerArgs& a, const StepRows& s, int row,
                                           const ScoreShared& shared) {
    const long slot = __shfl_sync(ALL_LANES, s.slot, row);
    const int at = lane_id() * 2;
#pragma unroll
    for (int byte = 0; byte < INDEX_BYTES; byte += 64)
        *(u16*)(a.index_keys + slot * INDEX_BYTES + byte + at) =
            *(const u16*)&shared.fresh[row][byte + at];
    if (INDEX_KIND == MXFP4 && lane_id() < 4)
        a.index_scales[slot * 4 + lane_id()] = shared.fresh_scales[row][lane_id()];
}

// Item `item` of 2 ROWS: index queries, then new index keys; a row's key is another warp's than its
// query (but of 12 rows, which is right as well), so that neither waits for the other.
struct IndexHead {
    int head, row;
};
__device__ __forceinline__ IndexHead index_head(int item) {
    if (item < ROWS) return {IQ_HEAD, item};
    return {IK_HEAD, (ROWS <= WARPS / 2 ? item : item + WARPS / 2) % ROWS};
}
__device__ __forceinline__ int leader_of_row(const StepRows& s, int row) {
    const int id = __shfl_sync(ALL_LANES, s.id, row);
    return __ffs(__ballot_sync(ALL_LANES, s.chunks > 0 && s.id == id)) - 1;
}

// Which of the warp's items this block's tasks need: a bit each, lowest first.
constexpr int INDEX_ROUNDS = (2 * ROWS + WARPS - 1) / WARPS;
__device__ __forceinline__ u32 index_heads_of(const StepRows& s) {
    u32 needed = 0;
#pragma unroll 1
    for (int round = 0; round < INDEX_ROUNDS; round++) {
        const int item = warp_id() + round * WARPS;
        const IndexHead of = index_head(item);
        const int leader = max(leader_of_row(s, of.row), 0);  // a pad has none
        const int first = __shfl_sync(ALL_LANES, s.first, leader);
        const int own = __shfl_sync(ALL_LANES, s.position, of.row) / (2 * BLOCK);
        const int chunks = __shfl_sync(ALL_LANES, s.chunks, leader);
        const bool live = item < 2 * ROWS && __shfl_sync(ALL_LANES, s.id, of.row) >= 0;
        const bool here = of.head == IQ_HEAD ? owns_some(first, chunks) : owns_some(first + own, 1);
        needed |= (u32)(live && here) << round;
    }
    return needed;
}

// Make what this block's tasks need of their rows, a warp a head.
__device__ __forceinline__ void make_index_heads(const LayerArgs& a, const StepRows& s, u32 needed,
                                                 ScoreShared& shared) {
#pragma unroll 1
    for (int item = warp_id(); needed; needed >>= 1, item += WARPS) {
        if (!(needed & 1)) continue;
        const IndexHead of = index_head(item);
        float x[4];
        make_head(a, of.head, of.row, x);
        if (of.head == IQ_HEAD) {
            const int leader = leader_of_row(s, of.row), place = of.row - leader;
            keep_query(shared.queries[leader + place / QUAD][0], place, x);
        } else {
            put_vector<INDEX_KIND, false>(x, lane_id(), shared.fresh[of.row],
                                          shared.fresh_scales[of.row], 0);
            __syncwarp();
            keep_fresh(a, s, of.row, shared);
        }
    }
}

// The largest scores of the warp's 16 tokens for four rows: in lane q those of row q of the quad.
__device__ __forceinline__ float best_of_tile(const KeyTile& tile, const uint2 (*queries)[32],
                                              int token, int position) {
    float sums[2][4] = {};
    u32 factors[2] = {};
    if (INDEX_KIND == MXFP4)
#pragma unroll
        for (int n = 0; n < 2; n++) factors[n] = 0x10001u * mxfp4_factor(tile.factors[n]);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint4 keys;
        operand<INDEX_KIND>(tile.low, factors[0], i, keys.x, keys.z);
        operand<INDEX_KIND>(tile.high, factors[1], i, keys.y, keys.w);
        const uint2 query = queries[i][lane_id()];
        mma<INDEX_KIND>(sums[i % 2], keys, query.x, query.y);
    }
#pragma unroll
    for (int n = 0; n < 4; n++) sums[0][n] += BITS_BACK<INDEX_KIND> * sums[1][n];
    const float low = token <= position ? sums[0][0] + sums[0][1] : minus_infinity();
    const float high = token + 8 <= position ? sums[0][2] + sums[0][3] : minus_infinity();
    float best = fmaxf(low, high);
#pragma unroll
    for (int far = 4; far < 32; far *= 2)
        best = fmaxf(best, __shfl_xor_sync(ALL_LANES, best, far));
    return best;
}

// Score the task's two pages for all rows of its request.
__device__ __forceinline__ void score_task(const LayerArgs& a, const StepRows& s, int task,
                                           KeyTile& tile, ScoreShared& shared, int parity) {
    const int lane = lane_id(), warp = warp_id();
    int chunk;
    const int leader = leader_of(s, task, chunk);
    const int id = __shfl_sync(ALL_LANES, s.id, leader);
    const int rows = __popc(__ballot_sync(ALL_LANES, s.id == id));
    const int token = (2 * chunk + warp / 8) * BLOCK + warp % 8 * 16 + lane / 4;
    put_fresh(s, shared, leader, chunk, tile);
    for (int first = 0; first < rows; first += QUAD) {
        const int row = min(first + lane % 4, rows - 1);
        const int position = __shfl_sync(ALL_LANES, s.position, leader + row);
        const float best =
            best_of_tile(tile, shared.queries[leader + first / QUAD], token, position);
        if (lane < QUAD && first + lane < rows) shared.best[parity][first + lane][warp] = best;
    }
    __syncthreads();
    const int row = threadIdx.x / 2, half = threadIdx.x % 2;
    if (row >= rows) return;
    float best = shared.best[parity][row][8 * half];
#pragma unroll
    for (int w = 1; w < 8; w++) best = fmaxf(best, shared.best[parity][row][8 * half + w]);
    send_word(a.scores + (long)(leader + row) * REACH_PAGES + 2 * chunk + half, __float_as_uint(best));
}

// What a block may fetch before the projection is done: the index keys of its first tasks, and the
// page of the next one; and which heads it will make.
struct ScoreAhead {
    StepRows rows;
    u32 heads;
    KeyTile tiles[TILES_AHEAD];
    int page;
};
__device__ __forceinline__ void fetch_scores(const LayerArgs& a, ScoreAhead& ahead) {
    ahead.rows = step_rows(a);
    const int tasks = ahead.rows.tasks;
    ahead.page = 0, ahead.heads = 0;
    int pages[TILES_AHEAD + 1], task = blockIdx.x;
    if (task >= tasks) return;
#pragma unroll
    for (int i = 0; i <= TILES_AHEAD; i++) pages[i] = page_of(a, ahead.rows, task + i * BLOCKS);
#pragma unroll
    for (int i = 0; i < TILES_AHEAD; i++)
        if (task + i * BLOCKS < tasks) load_tile(a, pages[i], ahead.tiles[i]);
    ahead.page = pages[TILES_AHEAD];
    ahead.heads = index_heads_of(ahead.rows);
}

// The stage of all heads and of index scores; `ahead` is from fetch_scores. Blocks walk score
// tasks, then head tasks, so that they begin on blocks that the scores leave idle; `heads`: whether
// the stage makes queries, keys and values, or split does for itself.
__device__ __forceinline__ void stage_scores(const LayerArgs& a, ScoreAhead& ahead, char* smem,
                                             bool heads = true) {
    ScoreShared& shared = *reinterpret_cast<ScoreShared*>(smem);
    const StepRows& s = ahead.rows;
    mark(a, 46);
    int task = blockIdx.x;
    if (task < s.tasks) {
        make_index_heads(a, s, ahead.heads, shared);
        __syncthreads();
    }
    mark(a, 47);
    for (int parity = 0; task < s.tasks; parity ^= 1, task += BLOCKS) {
        const int far = task + TILES_AHEAD * BLOCKS;
        KeyTile last;
        if (far < s.tasks) {
            load_tile(a, ahead.page, last);
            ahead.page = page_of(a, s, far + BLOCKS);
        }
        score_task(a, s, task, ahead.tiles[0], shared, parity);
#pragma unroll
        for (int i = 1; i < TILES_AHEAD; i++) ahead.tiles[i - 1] = ahead.tiles[i];
        ahead.tiles[TILES_AHEAD - 1] = last;
    }
    mark(a, 48);
    for (int number = task - s.tasks; heads && number < HEAD_TASKS; number += BLOCKS) head_task(a, s, number);
    mark(a, 49);
}
