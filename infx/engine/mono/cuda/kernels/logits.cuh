// The router: bf16 weights, and inputs split in two bf16 numbers (16 bits of mantissa), since a choice of
// experts should not turn on the rounding of an activation.
#pragma once
#include "fp8.cuh"

// 1 (not measured yet): whoever has a tile of the stream behind the output projection multiplies it with
// the router at once. Shares of a logit then meet as integers, whose sum has no order, and a hand-off and a
// kernel are gone. 0: a stage of its own.
#ifndef LOGITS_IN_O
#define LOGITS_IN_O 0
#endif
constexpr bool LOGITS = LOGITS_IN_O && !DENSE_MLP;

constexpr int ROUTER_TILES = EXPERTS / 16, ROUTER_TASKS = ROUTER_TILES * ROUTER_PARTS;  // 64, one a block
constexpr int ROUTER_SLICE = HIDDEN / ROUTER_PARTS / WARPS;                            // 48
constexpr int ROUTER_STEPS = ROUTER_SLICE / 16;
static_assert(ROUTER_TASKS <= BLOCKS, "the router is one round");

// A slice's numbers of all rows: a lane has 4 of each 16.
struct RouterColumns {
    u32 high[HALVES][2 * ROUTER_STEPS], low[HALVES][2 * ROUTER_STEPS];
    __device__ __forceinline__ void set(int h, int t, float4 v) {
        u32 x = to_bf16x2(v.x, v.y), y = to_bf16x2(v.z, v.w);
        high[h][2 * t] = x, high[h][2 * t + 1] = y;
        low[h][2 * t] = to_bf16x2(v.x - low_bf16(x), v.y - high_bf16(x));
        low[h][2 * t + 1] = to_bf16x2(v.z - low_bf16(y), v.w - high_bf16(y));
    }
    // c += 16 experts x 16 of K, times the columns.
    __device__ __forceinline__ void multiply(float (&c)[HALVES][4], uint4 w, int t) const {
#pragma unroll
        for (int h = 0; h < HALVES; ++h) {
            mma_bf16(c[h], w.x, w.y, w.z, w.w, high[h][2 * t], high[h][2 * t + 1]);
            mma_bf16(c[h], w.x, w.y, w.z, w.w, low[h][2 * t], low[h][2 * t + 1]);
        }
    }
};

// A share of a logit as an integer: 2^-28 is its unit, what is beyond 2^27 becomes that, NaN too, and the
// largest shares of all blocks still have a sum.
constexpr float LOGIT_UNITS = 268435456.0f, MOST_UNITS = 36028797018963968.0f;  // 2^28, 2^55
__device__ __forceinline__ long long logit_units(float x) {
    return __float2ll_rn(fmaxf(fminf(x * LOGIT_UNITS, MOST_UNITS), -MOST_UNITS));
}
__device__ __forceinline__ float logit_of(u32 low, u32 high) {
    return (float)(long long)((u64)high << 32 | low) * (1.0f / LOGIT_UNITS);
}

// All shares of a step are added to nothing: before any block's projection is done, after all of the last layer.
__device__ __forceinline__ void empty_totals(const LayerArgs& a) {
    if (LOGITS && block_id() < EXPERTS && thread_id() < ROWS) a.logit_totals[thread_id() * EXPERTS + block_id()] = 0;
}

// 16 experts a warp of the first ones, times the slice that the block's tiles of the stream are.
struct RouterOfTiles {
    static constexpr int PITCH = ROUTER_SLICE + 4;
    uint4 w[ROUTER_STEPS];
    __device__ __forceinline__ void load(const LayerArgs& a) {
        int part = block_id() / WARPS, slice = block_id() % WARPS, tile = warp_id();
        if (part >= ROUTER_PARTS || tile >= ROUTER_TILES) return;
        const u8* from = a.router + ((size_t)(part * ROUTER_TILES + tile) * WARPS + slice) * (ROUTER_STEPS * 512) + 16 * lane_id();
#pragma unroll
        for (int t = 0; t < ROUTER_STEPS; ++t) w[t] = load_once(from + 512 * t);
    }
    // `normed` [row][PITCH]: the slice's numbers before the norm's factor. Blocks with tiles call it.
    __device__ __forceinline__ void add(const LayerArgs& a, const float* normed) const {
        int lane = lane_id(), g = lane >> 2, q = lane & 3;
        if (warp_id() >= ROUTER_TILES) return;
        RouterColumns x;
        float c[HALVES][4] = {};
#pragma unroll
        for (int t = 0; t < ROUTER_STEPS; ++t) {
#pragma unroll
            for (int h = 0; h < HALVES; ++h) {
                int row = 8 * h + g;
                x.set(h, t, row < ROWS ? *(const float4*)(normed + row * PITCH + 16 * t + 4 * q) : make_float4(0, 0, 0, 0));
            }
            x.multiply(c, w[t], t);
        }
#pragma unroll
        for (int h = 0; h < HALVES; ++h)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int row = 8 * h + 2 * q + i % 2;
                if (row < ROWS) add_at_l2(a.logit_totals + row * EXPERTS + 16 * warp_id() + g + i / 2 * 8, logit_units(c[h][i]));
            }
    }
};
