// Heads of the fused projection: parts of K added, Gemma norm, rotary turn, insertion in caches.
//
// A warp makes one head of one row; lane l has the numbers l, l + 32, l + 64, l + 96, so that sums
// run as the plan says (32 lanes, then halving) and both of a rotary pair are in one lane. Products
// and additions are not contracted: the bytes that caches get are those of the plan's arithmetic.
#pragma once
#include "attn_rows.cuh"

// Heads that the stage of queries, keys and values makes; the indexer's are made where scores are.
constexpr int STAGE_HEADS = HEADS + 2;
constexpr int HEAD_TASKS = (STAGE_HEADS * ROWS + WARPS - 1) / WARPS;

__device__ __forceinline__ float head_norm_factor(const float (&x)[4]) {
    float squares = __fmul_rn(x[0], x[0]);
#pragma unroll
    for (int j = 1; j < 4; j++) squares = __fadd_rn(squares, __fmul_rn(x[j], x[j]));
    const float mean = __fadd_rn(__fmul_rn(warp_halving(squares), 1.0f / DIM), NORM_EPS);
    return __fdiv_rn(1.0f, __fsqrt_rn(mean));
}

// The head `head` of row `row`, normed and turned unless it is the values'. One copy in a kernel.
static __device__ __noinline__ float4 head_of(const float* sums, const float* row_squares,
                                              const float* rotary, const float* head_norm,
                                              bool turned) {
    const int lane = lane_id();
    float x[4], parts[QKV_PARTS][4], squares[QKV_PARTS], norm[4] = {}, cosine = 0, sine = 0;
#pragma unroll
    for (int p = 0; p < QKV_PARTS; p++) {
        const float* from = sums + p * (ROWS * QKV) + lane;
#pragma unroll
        for (int j = 0; j < 4; j++) parts[p][j] = load_l2_one(from + 32 * j);
        squares[p] = load_l2_one(row_squares + p * ROWS);
    }
    if (turned) {
        cosine = __ldg(rotary + lane), sine = __ldg(rotary + ROTARY / 2 + lane);
#pragma unroll
        for (int j = 0; j < 4; j++) norm[j] = __ldg(head_norm + 32 * j + lane);
    }
    float total = squares[0];
#pragma unroll
    for (int p = 1; p < QKV_PARTS; p++) total = __fadd_rn(total, squares[p]);
    const float factor = norm_factor(total, HIDDEN);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float sum = parts[0][j];
#pragma unroll
        for (int p = 1; p < QKV_PARTS; p++) sum = __fadd_rn(sum, parts[p][j]);
        x[j] = __fmul_rn(factor, sum);
    }
    if (!turned) return make_float4(x[0], x[1], x[2], x[3]);
    const float scale = head_norm_factor(x);
#pragma unroll
    for (int j = 0; j < 4; j++) x[j] = __fmul_rn(__fmul_rn(scale, x[j]), norm[j]);
    return make_float4(__fsub_rn(__fmul_rn(x[0], cosine), __fmul_rn(x[1], sine)),
                       __fadd_rn(__fmul_rn(x[1], cosine), __fmul_rn(x[0], sine)), x[2], x[3]);
}

__device__ __forceinline__ void make_head(const LayerArgs& a, int head, int row, float (&x)[4]) {
    const float4 made = head_of(a.qkv_sums + row * QKV + head * DIM, a.qkv_squares + row,
                                a.rotary + row * ROTARY, a.head_norm + head * DIM, head != V_HEAD);
    x[0] = made.x, x[1] = made.y, x[2] = made.z, x[3] = made.w;
}

// Keep a row's new key or value in its slot.
__device__ __forceinline__ void keep_own(const LayerArgs& a, int head, int slot, const float (&x)[4]) {
    const bool key = head == K_HEAD;
    put_vector<KV_KIND, true>(x, lane_id(), key ? a.keys : a.values,
                              key ? a.key_scales : a.value_scales, slot);
}

// Head number 0 ... STAGE_HEADS - 1 of those that are not the indexer's.
__device__ __forceinline__ int stage_head(int number) { return number <= K_HEAD ? number : V_HEAD; }

// Sixteen of the q, k and v heads of all rows; pads are left alone.
__device__ __forceinline__ void head_task(const LayerArgs& a, const StepRows& s, int task) {
    const int item = task * WARPS + warp_id(), lane = lane_id();
    const int row = item / STAGE_HEADS, head = stage_head(item % STAGE_HEADS);
    if (__shfl_sync(ALL_LANES, s.id, row & 31) < 0) return;  // a pad, or behind the last row
    float x[4];
    make_head(a, head, row, x);
    if (head < HEADS) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            a.queries[((long)head * ROWS + row) * DIM + 32 * j + lane] = x[j];
        return;
    }
    keep_own(a, head, __shfl_sync(ALL_LANES, s.slot, row), x);
}
