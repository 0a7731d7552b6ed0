// Split attention: the softmax of all heads over 256 of the row's own keys, with its choice of
// blocks.
//
// A task is a partition of a row: the keys of two chosen blocks, in the order of their positions. A
// block of threads holds all of it in registers, asked for at once: first each warp scores 16 keys
// (heads are the rows of a matrix, keys the columns), then each warp mixes 64 keys' values of 32
// dimensions. Sums have one order: keys of a matrix instruction, its 4 steps, 4 warps ascending.
#pragma once
#include "attn_head.cuh"
#include "attn_select.cuh"
#include "attn_values.cuh"

constexpr int SPLIT_TASKS = ROWS * PARTITIONS;
static_assert(SPLIT_TASKS <= BLOCKS, "a block has one task at most");
// A head's part: its share of the output, then max (of log2), sum of p, what the share is multiplied
// with when parts are added. fp8: shares are means of values of at most 896 in size, kept in f16,
// as each block of the output projection may read all of them; otherwise in float32.
constexpr bool HALF_LINES = KV_KIND == FP8;
constexpr int SHARE = HALF_LINES ? DIM / 2 : DIM;  // words of a share
constexpr int LINE = SHARE + 4;
constexpr float ROOT = 0.08838834764831845f * 1.4426950408889634f;  // 1 / sqrt(DIM), of log2
constexpr int P_STRIDE = PARTITION + 8;  // halves; 4 banks on from head to head
struct SplitShared {
    SelectShared select;
    uint4 queries[8][32];           // operands of 8 MMAs, a lane each
    u16 p[HEADS][P_STRIDE];         // probabilities (fp8: times the value's scale) as operands
    alignas(16) float best[HEADS][WARPS];  // the largest score of a warp's keys
    float total[HEADS][WARPS];      // the sum of their p
    alignas(16) float scales[WARPS];  // the largest scale of their values
    int done;                       // partitions of the row that are (attn_merge)
    union {
        ValueShared values;
        float4 mixed[4][4][4][32];  // by warp of keys, of dimensions, by part: its sums
    };
};

// Keep the query of a head as operands.
__device__ __forceinline__ void put_query(int head, float (&x)[4], SplitShared& shared) {
    u16* halves = reinterpret_cast<u16*>(shared.queries);
    const int lane = lane_id();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const Meeting at = meeting_of<KV_KIND>(j, lane);
        // Keys of mxfp4 meet queries of saturating e4m3.
        if (KV_KIND == MXFP4)
            x[j] = MXFP4_UP * low_f16(e4m3_to_f16x2(to_e4m3x2(x[j], 0.0f)));
        const int half = (at.e / 2 * 2 + head / 8) * 2 + at.e % 2;
        halves[(at.i * 32 + head % 8 * 4 + at.q) * 8 + half] = pack<KV_KIND>(x[j], 0.0f);
    }
}

__device__ __forceinline__ void load_queries(const LayerArgs& a, int row, SplitShared& shared) {
    const int head = warp_id(), lane = lane_id();
    float x[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        x[j] = load_l2_one(a.queries + ((long)head * ROWS + row) * DIM + 32 * j + lane);
    put_query(head, x, shared);
}

// Make the row's queries here, a warp a head; `own`: its key and value too, for this task's keys
// have them among them.
__device__ __forceinline__ void make_queries(const LayerArgs& a, const StepRows& s, int row,
                                             bool own, SplitShared& shared) {
#pragma unroll 1
    for (int number = warp_id(); number < (own ? STAGE_HEADS : HEADS); number += WARPS) {
        const int head = stage_head(number);
        float x[4];
        make_head(a, head, row, x);
        if (head < HEADS) put_query(head, x, shared);
        else keep_own(a, head, __shfl_sync(ALL_LANES, s.slot, row), x);
    }
}

// A lane's keys of the warp's 16: numbers lane / 4 and lane / 4 + 8; scales of those whose scores
// it gets, 2q, 2q + 1 and 8 more.
struct Keys {
    u32 low[Words<KV_KIND>::COUNT], high[Words<KV_KIND>::COUNT], factors[2];
    float2 key_scales[2], value_scales[2];
};

// `count`: keys of the partition.
__device__ __forceinline__ void load_keys(const LayerArgs& a, int2 pages, int count, Keys& keys) {
    const int lane = lane_id(), warp = warp_id(), first = 16 * warp;
    keys = {};
    if (first >= count) return;  // a page that there may not be
    const long page = (long)(warp < 8 ? pages.x : pages.y) * BLOCK;
    const int token = first % BLOCK + lane / 4;
    const u8* at = a.keys + page * VALUE_BYTES + token * VALUE_BYTES;
    load_words<KV_KIND>(keys.low, at);
    load_words<KV_KIND>(keys.high, at + 8 * VALUE_BYTES);
}

// Their scales, behind all numbers: they are wanted last.
__device__ __forceinline__ void load_scales(const LayerArgs& a, int2 pages, int count, Keys& keys) {
    const int lane = lane_id(), warp = warp_id(), first = 16 * warp;
    if (first >= count) return;
    const long page = (long)(warp < 8 ? pages.x : pages.y) * BLOCK;
    if (KV_KIND == MXFP4) {
        const u8* scales = (const u8*)a.key_scales + (page + first % BLOCK) * 4 + lane;
        keys.factors[0] = 0x10001u * mxfp4_factor(__ldcg(scales));
        keys.factors[1] = 0x10001u * mxfp4_factor(__ldcg(scales + 8 * 4));
    }
    if (KV_KIND == FP8)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int own = first % BLOCK + 8 * j + lane % 4 * 2;
            keys.key_scales[j] = __ldcg((const float2*)(a.key_scales + page + own));
            keys.value_scales[j] = __ldcg((const float2*)(a.value_scales + page + own));
        }
}

// Over the four lanes of a quad, which have one head's scores.
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

// Scores (of log2) of the warp's keys: [2 j + half] of keys 8 j + 2q + half, for heads lane / 4 and
// + 8.
__device__ __forceinline__ void score_keys(Keys& keys, int count, SplitShared& shared,
                                           float (&own)[4], float (&other)[4]) {
    const int lane = lane_id(), warp = warp_id();
    float sums[2][4] = {}, odd[2][4] = {};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint4 queries = shared.queries[i][lane];
        u32 first, second;
        operand<KV_KIND>(keys.low, keys.factors[0], i, first, second);
        mma<KV_KIND>(i % 2 ? odd[0] : sums[0], queries, first, second);
        operand<KV_KIND>(keys.high, keys.factors[1], i, first, second);
        mma<KV_KIND>(i % 2 ? odd[1] : sums[1], queries, first, second);
    }
#pragma unroll
    for (int n = 0; n < 8; n++) sums[n / 4][n % 4] += BITS_BACK<KV_KIND> * odd[n / 4][n % 4];
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const bool seen = 16 * warp + n / 2 * 8 + lane % 4 * 2 + n % 2 < count;
        const float2 scales = keys.key_scales[n / 2];
        const float factor = KV_KIND == FP8 ? ROOT * (n % 2 ? scales.y : scales.x) : ROOT;
        own[n] = seen ? factor * sums[n / 2][n % 2] : minus_infinity();
        other[n] = seen ? factor * sums[n / 2][2 + n % 2] : minus_infinity();
        // Where no key is there may be anything, NaN too.
        float& scale = n % 2 ? keys.value_scales[n / 2].y : keys.value_scales[n / 2].x;
        if (KV_KIND == FP8 && !seen) scale = 0.0f;
    }
    const float best = quad_max(fmaxf(fmaxf(own[0], own[1]), fmaxf(own[2], own[3])));
    const float best8 = quad_max(fmaxf(fmaxf(other[0], other[1]), fmaxf(other[2], other[3])));
    if (lane % 4 == 0) shared.best[lane / 4][warp] = best, shared.best[lane / 4 + 8][warp] = best8;
    if (KV_KIND == FP8) {
        const float2 a = keys.value_scales[0], b = keys.value_scales[1];
        const float scale = quad_max(fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y)));
        if (lane == 0) shared.scales[warp] = scale;
    }
}

// The largest of all warps' numbers; a quad's lanes look at four each.
__device__ __forceinline__ float max_of_warps(const float (&of)[WARPS]) {
    const float4 x = *(const float4*)&of[lane_id() % 4 * 4];
    return quad_max(fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)));
}

// Write one head's p of the warp's keys as operands; return their sum.
__device__ __forceinline__ float keep_p(const float (&scores)[4], const Keys& keys, float best,
                                        float down, u16* to) {
    float p[4];
#pragma unroll
    for (int n = 0; n < 4; n++) p[n] = exp2_of(scores[n] - best);
    const float sum = p[0] + p[1] + (p[2] + p[3]);
#pragma unroll
    for (int j = 0; j < 2; j++) {
        if (KV_KIND == FP8) {
            p[2 * j] *= keys.value_scales[j].x * down;
            p[2 * j + 1] *= keys.value_scales[j].y * down;
        }
        *(u32*)(to + 8 * j) = pack<KV_KIND>(p[2 * j], p[2 * j + 1]);
    }
    return sum;
}

// Make scores probabilities; return what sums of p v are multiplied with at the end.
__device__ __forceinline__ float keep_probabilities(const Keys& keys, SplitShared& shared,
                                                    const float (&own)[4],
                                                    const float (&other)[4]) {
    const int lane = lane_id(), warp = warp_id(), head = lane / 4;
    float down = 1.0f, up = 1.0f;
    if (KV_KIND == FP8) {
        // A power of two near the largest scale: p times scales stays in the range of f16.
        const u32 exponent = __float_as_uint(max_of_warps(shared.scales)) >> 23;
        const u32 held = min(max(exponent, 1u), 253u);
        up = __uint_as_float(held << 23), down = __uint_as_float((254 - held) << 23);
    }
    u16* to = &shared.p[head][16 * warp + lane % 4 * 2];
    float sum = keep_p(own, keys, max_of_warps(shared.best[head]), down, to);
    float sum8 =
        keep_p(other, keys, max_of_warps(shared.best[head + 8]), down, to + 8 * P_STRIDE);
    sum = quad_sum(sum), sum8 = quad_sum(sum8);
    if (lane % 4 == 0) shared.total[head][warp] = sum, shared.total[head + 8][warp] = sum8;
    return KV_KIND == MXFP4 ? MXFP4_UP : up;
}

// Rolled up where values lie in shared memory (registers have no index): code is fetched once a launch,
// and that takes longer than it runs.
constexpr int MIX_AT_ONCE = STAGED ? 1 : 4;

// Sum p v of the warp's 64 keys and 32 dimensions; [d] of dimension 4 column + d.
__device__ __forceinline__ void mix_values(const Values& values, const SplitShared& shared,
                                           float (&mixed)[4][4]) {
    const int head = lane_id() / 4;
#pragma unroll MIX_AT_ONCE
    for (int step = 0; step < 4; step++) {
        const int key = value_key(step, 0);
        const uint4 p = {*(const u32*)&shared.p[head][key], *(const u32*)&shared.p[head + 8][key],
                         *(const u32*)&shared.p[head][key + 8],
                         *(const u32*)&shared.p[head + 8][key + 8]};
        u32 operands[4][2];
        value_operands(shared.values, values, step, operands);
#pragma unroll
        for (int dim = 0; dim < 4; dim++)
            mma<KV_KIND>(mixed[dim], p, operands[dim][0], operands[dim][1]);
    }
}

__device__ __forceinline__ void add(float4& sum, float4 other) {
    sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
}

// Add the four warps of keys in their order and write the heads' lines.
__device__ __forceinline__ void write_lines(const float (&mixed)[4][4], float up,
                                            SplitShared& shared, float* lines) {
    const int lane = lane_id(), dims = warp_id() % 4, part = warp_id() / 4;
    const int head = lane / 4 + part / 2 * 8, dim = 32 * dims + lane % 4 * 8 + part % 2 * 4;
    const float4 totals = *(const float4*)&shared.total[head][lane % 4 * 4];
    const float total = quad_sum(totals.x + totals.y + (totals.z + totals.w));
    float4 own[4];  // by column: the four dimensions that lie together
#pragma unroll
    for (int c = 0; c < 4; c++)
        own[c] = make_float4(mixed[0][c], BITS_BACK<KV_KIND> * mixed[1][c], mixed[2][c],
                             BITS_BACK<KV_KIND> * mixed[3][c]);
    // f16 takes means before they are brought back to the values' scale.
    const float share = (HALF_LINES ? 1.0f : up) / total, weight = HALF_LINES ? up * total : total;
    __syncthreads();  // the sums take the place of the values
#pragma unroll
    for (int c = 0; c < 4; c++) shared.mixed[part][dims][c][lane] = own[c];
    __syncthreads();
    float4 sum = shared.mixed[0][dims][part][lane];
#pragma unroll
    for (int k = 1; k < 4; k++) add(sum, shared.mixed[k][dims][part][lane]);
    sum = make_float4(share * sum.x, share * sum.y, share * sum.z, share * sum.w);
    float* line = lines + head * LINE;
    if (HALF_LINES) store_two(line + dim / 2, to_f16x2(sum.x, sum.y), to_f16x2(sum.z, sum.w));
    else store_four(line + dim, sum);
    if (warp_id() % 8) return;
    // Two warps: what a head's scores were and add up to.
    const float best = max_of_warps(shared.best[head]);
    if (lane % 4 == 0) store_four(line + SHARE, make_float4(best, total, weight, 0.0f));
}

// Keys that a row attends to: all its chosen blocks are full but its own, the last.
__device__ __forceinline__ int seen_keys(int position) {
    return min(TOPK_BLOCKS - 1, position / BLOCK) * BLOCK + position % BLOCK + 1;
}

// Whether a task has keys, and how many.
__device__ __forceinline__ int keys_of(const StepRows& s, int task) {
    const int id = __shfl_sync(ALL_LANES, s.id, task / PARTITIONS);
    const int position = __shfl_sync(ALL_LANES, s.position, task / PARTITIONS);
    if (id < 0) return 0;
    return min(PARTITION, seen_keys(position) - task % PARTITIONS * PARTITION);
}

// What a block may fetch before scores are done: the row's table of pages.
__device__ __forceinline__ void fetch_split(const LayerArgs& a, const StepRows& s, int task,
                                            char* smem) {
    if (task >= SPLIT_TASKS || keys_of(s, task) <= 0) return;
    const int row = task / PARTITIONS;
    fetch_pages(a, row, __shfl_sync(ALL_LANES, s.position, row) / BLOCK,
                reinterpret_cast<SplitShared*>(smem)->select);
}

// Write the numbers of the task's two blocks.
__device__ __forceinline__ void keep_chosen(const LayerArgs& a, int task, int2 blocks) {
    if (threadIdx.x < 2) a.chosen[2 * task + threadIdx.x] = threadIdx.x ? blocks.y : blocks.x;
}

// What a task of split may take for done when it begins.
enum Split {
    STAGED_BEFORE,  // all of the stage before
    DIRECT,  // what the projection left: heads are made here, scores say when they are there. Only
             // where rows are alone: the row's own token is the last key of its last partition
};

struct Nothing {
    __device__ __forceinline__ void operator()() const {}
};

// One partition of a row, behind fetch_split. Every task of a row chooses its blocks for itself.
// `landed` is called once keys and values are there: memory has nothing to do for this task then.
template <class Landed = Nothing>
__device__ __forceinline__ void stage_split(const LayerArgs& a, const StepRows& s, int task,
                                            char* smem, Split how = STAGED_BEFORE,
                                            const Landed& landed = Landed()) {
    const int count = keys_of(s, task);
    if (count <= 0) return keep_chosen(a, task, make_int2(-1, -1));
    SplitShared& shared = *reinterpret_cast<SplitShared*>(smem);
    const int row = task / PARTITIONS, partition = task % PARTITIONS;
    const int own = __shfl_sync(ALL_LANES, s.position, row) / BLOCK;
    mark(a, 51);
    float2 block_scores;
    if (how == DIRECT) {
        const int seen = seen_keys(__shfl_sync(ALL_LANES, s.position, row));
        make_queries(a, s, row, seen == partition * PARTITION + count, shared);
        block_scores = load_scores(a, row, own, true);
    } else {
        block_scores = load_scores(a, row, own, false);
        load_queries(a, row, shared);
    }
    mark(a, 52);
    choose_blocks(block_scores, own, shared.select);
    mark(a, 53);
    const int2 blocks = chosen_pair(shared.select, 2 * partition, own);
    int2 pages = make_int2(shared.select.pages[blocks.x], shared.select.pages[max(blocks.y, 0)]);
    if (count <= BLOCK) pages.y = pages.x;  // there is no second one
    Keys keys;
    Values values;
    load_keys(a, pages, count, keys);
    load_values(a, pages, count, shared.values, values);
    load_scales(a, pages, count, keys);
    float scores[4], scores8[4];  // of heads lane / 4 and 8 more
    float mixed[4][4] = {};
    mark(a, 54);
    score_keys(keys, count, shared, scores, scores8);
    keep_chosen(a, task, blocks);
    mark(a, 55);
    __syncthreads();
    const float up = keep_probabilities(keys, shared, scores, scores8);
    copies_done();
    __syncthreads();
    mark(a, 56);
    landed();
    mix_values(values, shared, mixed);
    mark(a, 57);
    write_lines(mixed, up, shared, a.partials + (long)task * HEADS * LINE);
    mark(a, 58);
}
