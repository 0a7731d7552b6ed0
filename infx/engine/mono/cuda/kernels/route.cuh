// The router as a stage of its own, and what a step's logits decide: who works for whom.
//
// Every block routes all rows for itself: 4 KB a row out of L2 (1 KB with LOGITS_IN_O) cost less than one
// more hand-off.
#pragma once
#include "output.cuh"

__device__ __forceinline__ void fill_router(const LayerArgs& a, Stream& s, int& next) {
    s.fill(next, block_id() < ROUTER_TASKS ? 1 : 0, 1536, [&](int) {
        return a.router + ((size_t)block_id() * WARPS + s.warp) * 1536;
    });
}

// `behind` asks for what is wanted later: behind the loads of the stage itself.
template <class Behind>
__device__ __forceinline__ void run_router(const LayerArgs& a, Stream& s, char* smem, const Behind& behind) {
    mark(a, 20);
    if (block_id() >= ROUTER_TASKS) return behind();
    int part = block_id() / ROUTER_TILES, tile = block_id() % ROUTER_TILES, lane = lane_id();
    int first = part * (HIDDEN / ROUTER_PARTS) + s.warp * ROUTER_SLICE + 4 * (lane & 3);
    RouterColumns x;
    float4 mid[HALVES][3];
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
#pragma unroll
        for (int t = 0; t < 3; ++t) {
            int row = 8 * h + (lane >> 2);
            mid[h][t] = make_float4(0, 0, 0, 0);
            if (row < ROWS) mid[h][t] = load_l2(a.mid + row * HIDDEN + first + 16 * t);
        }
    behind();
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
#pragma unroll
        for (int t = 0; t < 3; ++t) {
            float4 v = mid[h][t], w = __ldg((const float4*)(a.mlp_norm + first + 16 * t));
            x.set(h, t, make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w));
        }
    float c[HALVES][4] = {};
    const char* piece = s.take();
#pragma unroll
    for (int t = 0; t < 3; ++t) x.multiply(c, load_tile(piece, t), t);
    s.release();
    float* sums = (float*)smem;
#pragma unroll
    for (int h = 0; h < HALVES; ++h) leave_sums(sums_of_warp(sums, s.warp), c[h], h, 1.0f, 1.0f, ROWS);
    __syncthreads();
    if (thread_id() < 16 * ROWS) {
        int out = thread_id() % 16, row = thread_id() / 16;
        a.logit_sums[(part * ROWS + row) * EXPERTS + 16 * tile + out] = sum_warps(sums, row, out);
    }
    mark(a, 21);
}

// ---- routing --------------------------------------------------------------------------------------

constexpr int PAIRS = ROWS * SLOTS;
constexpr int MOST_CHOSEN = ROWS * TOPK < EXPERTS ? ROWS * TOPK : EXPERTS;

constexpr u8 NOBODY = 255;

// Tasks of `up` a block, on average, that go to whoever is free instead of to a block that is known before
// (up.cuh); not measured yet.
#ifndef DEALT_TASKS
#define DEALT_TASKS 0
#endif
constexpr int DEALT = ROWS < 8 ? 0 : DEALT_TASKS;  // few rows: a block has less than it asks for ahead
constexpr int TICKETS = 16;

// A step's routing. The union's experts are ascending, the shared one last (it has all live rows).
struct Deal {
#if DEALT_TASKS
    u32 ticket[TICKETS];         // up.cuh
#endif
    u8 expert[ROWS * TOPK];      // by row and slot, NOBODY: a pad
    float factor[ROWS];          // of the MLP's norm
    float weight[ROWS][SLOTS];   // the shared expert's is 1
    int chosen;                  // experts of the union, without the shared one
    u32 seen[EXPERTS / 32];      // bit e: some row chose e
    u8 list[MOST_CHOSEN + 1];    // the union
    u8 count[MOST_CHOSEN + 1];   // rows of each
    u8 pair[MOST_CHOSEN + 1][ROWS];  // its (row, slot) pairs, rows ascending: row * SLOTS + slot
};
// Behind what stages sum in; it lives from the router to the end of the layer.
constexpr int DEAL_AT = STAGE_BYTES - 4096;
static_assert(sizeof(Deal) <= 4096, "a deal fits its place");

__device__ __forceinline__ Deal& deal_of(char* smem) { return *(Deal*)(smem + DEAL_AT); }

// A row's sums of squares, a lane some blocks'; and what they make the norm's factor.
struct MidSquares {
    static constexpr int COUNT = OUT_BLOCKS / 32;
    static_assert(COUNT * 32 == OUT_BLOCKS, "");
    float of[COUNT];
    __device__ __forceinline__ MidSquares() {}
    __device__ __forceinline__ MidSquares(const LayerArgs& a, int row) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) of[i] = load_l2_one(a.mid_squares + (lane_id() + 32 * i) * ROWS + row);
    }
    __device__ __forceinline__ float factor() const {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) sum += of[i];
        return norm_factor(warp_sum(sum), HIDDEN);
    }
};
__device__ __forceinline__ float mid_factor(const LayerArgs& a, int row) { return MidSquares(a, row).factor(); }

// Larger floats give larger integers; NaN is above all, as in a descending sort.
__device__ __forceinline__ u32 ordered(float x) {
    u32 bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// A row's logits before the norm's factor, as loaded: a lane has 4 experts.
struct Logits {
#if LOGITS_IN_O
    uint4 of[2];
    __device__ __forceinline__ void load(const LayerArgs& a, int row) {
#pragma unroll
        for (int i = 0; i < 2; ++i) of[i] = load_l2((const void*)(a.logit_totals + row * EXPERTS + 4 * lane_id() + 2 * i));
    }
    __device__ __forceinline__ float4 sum() const {
        return make_float4(logit_of(of[0].x, of[0].y), logit_of(of[0].z, of[0].w), logit_of(of[1].x, of[1].y), logit_of(of[1].z, of[1].w));
    }
#else
    float4 part[ROUTER_PARTS];
    __device__ __forceinline__ void load(const LayerArgs& a, int row) {
#pragma unroll
        for (int p = 0; p < ROUTER_PARTS; ++p) part[p] = load_l2(a.logit_sums + (p * ROWS + row) * EXPERTS + 4 * lane_id());
    }
    __device__ __forceinline__ float4 sum() const {
        float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int p = 0; p < ROUTER_PARTS; ++p) all.x += part[p].x, all.y += part[p].y, all.z += part[p].z, all.w += part[p].w;
        return all;
    }
#endif
};

// Choose the row's experts: the best of sigmoid + bias, ties to the lower. One warp; a lane has 4 experts.
__device__ __forceinline__ void route_row(const LayerArgs& a, Deal& deal, int row, float factor, const Logits& logits) {
    int lane = lane_id();
    float chance[4], own = 0, total = 0;
    float4 bias = __ldg((const float4*)(a.router_bias + 4 * lane)), sum = logits.sum();
    chance[0] = sigmoid(factor * sum.x), chance[1] = sigmoid(factor * sum.y);
    chance[2] = sigmoid(factor * sum.z), chance[3] = sigmoid(factor * sum.w);
    u32 key[4] = {ordered(chance[0] + bias.x), ordered(chance[1] + bias.y), ordered(chance[2] + bias.z), ordered(chance[3] + bias.w)};
    int chosen = 0;
#pragma unroll
    for (int slot = 0; slot < TOPK; ++slot) {
        u32 best = max(max(key[0], key[1]), max(key[2], key[3]));
        u32 most = __reduce_max_sync(~0u, best);
        int owner = __ffs(__ballot_sync(~0u, best == most)) - 1;
        int j = key[0] == most ? 0 : key[1] == most ? 1 : key[2] == most ? 2 : 3;
        float p = __shfl_sync(~0u, j == 0 ? chance[0] : j == 1 ? chance[1] : j == 2 ? chance[2] : chance[3], owner);
        int expert = 4 * owner + __shfl_sync(~0u, j, owner);
#pragma unroll
        for (int i = 0; i < 4; ++i) key[i] = lane == owner && i == j ? 0 : key[i];
        if (lane == slot) chosen = expert, own = p;
        total += p;
    }
    if (lane > TOPK) return;
    deal.weight[row][lane] = lane < TOPK ? __fdividef(ROUTED_SCALE * own, total) : 1.0f;
    if (lane == TOPK) return;
    deal.expert[row * TOPK + lane] = chosen;
    atomicOr(&deal.seen[chosen / 32], 1u << (chosen % 32));
}

// The shared expert's rows, which the step alone decides. One warp.
__device__ __forceinline__ void deal_live(const LayerArgs& a, Deal& deal) {
    int lane = lane_id();
    bool live = lane < ROWS && __ldg(a.batch_ids + min(lane, ROWS - 1)) >= 0;
    u32 all = __ballot_sync(~0u, live);
    if (live) deal.pair[MOST_CHOSEN][__popc(all & ((1u << lane) - 1))] = lane * SLOTS + TOPK;
    if (lane == 0) deal.count[MOST_CHOSEN] = __popc(all);
    if (lane < EXPERTS / 32) deal.seen[lane] = 0;
#if DEALT_TASKS
    if (lane < TICKETS) deal.ticket[lane] = ~0u;
#endif
}

// The norm's factors and the shared expert's rows: all that the shared expert needs. All threads call it.
__device__ __forceinline__ void deal_shared(const LayerArgs& a, char* smem) {
    Deal& deal = deal_of(smem);
    int lane = lane_id(), warp = warp_id();
    if (warp < ROWS) {
        float factor = mid_factor(a, warp);
        if (lane == 0) deal.factor[warp] = factor;
    }
    if (warp == WARPS - 1) deal_live(a, deal);
    __syncthreads();
}

// What a warp routes its row by: fetched together where norm and logits come from one stage.
struct RouteAhead {
    MidSquares squares;
    Logits logits;
    __device__ __forceinline__ void fetch(const LayerArgs& a) {
        if (LOGITS_IN_O && warp_id() < ROWS) squares = MidSquares(a, warp_id()), logits.load(a, warp_id());
    }
    __device__ __forceinline__ float factor(Deal& deal, int row) const {
        if (!LOGITS_IN_O) return deal.factor[row];
        float own = squares.factor();
        if (lane_id() == 0) deal.factor[row] = own;
        return own;
    }
    // Leave the logits where a judge looks at them.
    __device__ __forceinline__ void show(const LayerArgs& a, int row) const {
        float4 sum = logits.sum();
        for (int p = 0; p < ROUTER_PARTS; ++p, sum = make_float4(0, 0, 0, 0))
            *(float4*)(a.logit_sums + (p * ROWS + row) * EXPERTS + 4 * lane_id()) = sum;
    }
    __device__ __forceinline__ void route(const LayerArgs& a, Deal& deal, int row) {
        float own = factor(deal, row);
        if (LOGITS_IN_O && block_id() == 0) show(a, row);
        if (__ldg(a.batch_ids + row) >= 0) {
            if (!LOGITS_IN_O) logits.load(a, row);
            route_row(a, deal, row, own, logits);
        } else if (lane_id() < TOPK) deal.expert[row * TOPK + lane_id()] = NOBODY;
    }
};

// Write down who works for whom. All threads call it, after `deal_live`.
__device__ __forceinline__ void deal_experts(const LayerArgs& a, RouteAhead& known, char* smem) {
    Deal& deal = deal_of(smem);
    int lane = lane_id(), warp = warp_id();
    if (warp < ROWS) known.route(a, deal, warp);
    __syncthreads();
    int chosen = 0, before = 0, expert = thread_id();
#pragma unroll
    for (int word = 0; word < EXPERTS / 32; ++word) {
        u32 seen = deal.seen[word];
        if (word == warp) before = chosen + __popc(seen & ((1u << lane) - 1));
        chosen += __popc(seen);
    }
    if (expert < EXPERTS && deal.seen[warp] >> lane & 1) {
        int count = 0;
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            u32 four = *(const u32*)(deal.expert + row * TOPK), equal = __vcmpeq4(four, expert * 0x01010101u);
            if (equal) deal.pair[before][count++] = row * SLOTS + (__ffs(equal) - 1) / 8;
        }
        deal.list[before] = expert, deal.count[before] = count;
    }
    if (thread_id() == 0) deal.chosen = chosen;
    __syncthreads();
}
