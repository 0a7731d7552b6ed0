// The router, and what a step's logits decide: who works for whom.
//
// Logits are summed from bf16 weights and inputs split in two bf16 numbers (16 bits of mantissa):
// a choice of experts should not turn on the rounding of an activation. Every block routes all rows
// for itself: 4 KB a row out of L2 cost less than one more hand-off.
#pragma once
#include "output.cuh"

constexpr int ROUTER_TILES = EXPERTS / 16, ROUTER_TASKS = ROUTER_TILES * ROUTER_PARTS;  // 64, one a block
constexpr int ROUTER_SLICE = HIDDEN / ROUTER_PARTS / WARPS;                            // 48
static_assert(ROUTER_TASKS <= BLOCKS, "the router is one round");

__device__ __forceinline__ void fill_router(const LayerArgs& a, Stream& s, int& next) {
    s.fill(next, blockIdx.x < ROUTER_TASKS ? 1 : 0, 1536, [&](int) {
        return a.router + ((size_t)blockIdx.x * WARPS + s.warp) * 1536;
    });
}

// `behind` asks for what is wanted later: behind the loads of the stage itself.
template <class Behind>
__device__ __forceinline__ void run_router(const LayerArgs& a, Stream& s, char* smem, const Behind& behind) {
    mark(a, 20);
    if (blockIdx.x >= ROUTER_TASKS) return behind();
    int part = blockIdx.x / ROUTER_TILES, tile = blockIdx.x % ROUTER_TILES, lane = lane_id();
    int first = part * (HIDDEN / ROUTER_PARTS) + s.warp * ROUTER_SLICE + 4 * (lane & 3);
    u32 high[HALVES][6], low[HALVES][6];
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
            v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
            u32 x = to_bf16x2(v.x, v.y), y = to_bf16x2(v.z, v.w);
            high[h][2 * t] = x, high[h][2 * t + 1] = y;
            low[h][2 * t] = to_bf16x2(v.x - low_bf16(x), v.y - high_bf16(x));
            low[h][2 * t + 1] = to_bf16x2(v.z - low_bf16(y), v.w - high_bf16(y));
        }
    float c[HALVES][4] = {};
    const char* piece = s.take();
#pragma unroll
    for (int t = 0; t < 3; ++t) {
        uint4 w = load_tile(piece, t);
#pragma unroll
        for (int h = 0; h < HALVES; ++h) {
            mma_bf16(c[h], w.x, w.y, w.z, w.w, high[h][2 * t], high[h][2 * t + 1]);
            mma_bf16(c[h], w.x, w.y, w.z, w.w, low[h][2 * t], low[h][2 * t + 1]);
        }
    }
    s.release();
    float* sums = (float*)smem;
#pragma unroll
    for (int h = 0; h < HALVES; ++h) leave_sums(sums_of_warp(sums, s.warp), c[h], h, 1.0f, 1.0f, ROWS);
    __syncthreads();
    if (threadIdx.x < 16 * ROWS) {
        int out = threadIdx.x % 16, row = threadIdx.x / 16;
        send_word(a.logit_sums + (part * ROWS + row) * EXPERTS + 16 * tile + out, __float_as_uint(sum_warps(sums, row, out)));
    }
    mark(a, 21);
}

// ---- routing --------------------------------------------------------------------------------------

constexpr int PAIRS = ROWS * SLOTS;
constexpr int MOST_CHOSEN = ROWS * TOPK < EXPERTS ? ROWS * TOPK : EXPERTS;

constexpr u8 NOBODY = 255;

// A step's routing. The union's experts are ascending, the shared one last (it has all live rows).
struct Deal {
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

// Choose the row's experts: the best of sigmoid + bias, ties to the lower. One warp; a lane has 4 experts.
template <bool MAIL>
__device__ __forceinline__ void route_row(const LayerArgs& a, Deal& deal, int row) {
    int lane = lane_id();
    float factor = deal.factor[row], chance[4], own = 0, total = 0;
    uint4 part[ROUTER_PARTS];
    float4 sum = make_float4(0, 0, 0, 0), bias = __ldg((const float4*)(a.router_bias + 4 * lane));
#pragma unroll
    for (int p = 0; p < ROUTER_PARTS; ++p) part[p] = load_l2((const void*)(a.logit_sums + (p * ROWS + row) * EXPERTS + 4 * lane));
    if (MAIL) {
        await_mail(a, part, FOR_LOGITS, [&](int p) { return a.logit_sums + (p * ROWS + row) * EXPERTS + 4 * lane; });
        __syncwarp();
    }
#pragma unroll
    for (int p = 0; p < ROUTER_PARTS; ++p) {
        const float4 own = as_floats(part[p]);
        sum.x += own.x, sum.y += own.y, sum.z += own.z, sum.w += own.w;
    }
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

// The norm's factors and the shared expert's rows: all that the shared expert needs. All threads call it.
__device__ __forceinline__ void deal_shared(const LayerArgs& a, char* smem) {
    Deal& deal = deal_of(smem);
    int lane = lane_id(), warp = warp_id();
    if (warp < ROWS) {
        float factor = mid_factor(a, warp);
        if (lane == 0) deal.factor[warp] = factor;
    }
    if (warp == WARPS - 1) {
        bool live = lane < ROWS && __ldg(a.batch_ids + min(lane, ROWS - 1)) >= 0;
        u32 all = __ballot_sync(~0u, live);
        if (live) deal.pair[MOST_CHOSEN][__popc(all & ((1u << lane) - 1))] = lane * SLOTS + TOPK;
        if (lane == 0) deal.count[MOST_CHOSEN] = __popc(all);
        if (lane < EXPERTS / 32) deal.seen[lane] = 0;
    }
    __syncthreads();
}

// Write down who works for whom. All threads call it, after `deal_shared` and the router; `MAIL`: which may still work.
template <bool MAIL>
__device__ __forceinline__ void deal_experts(const LayerArgs& a, char* smem) {
    Deal& deal = deal_of(smem);
    int lane = lane_id(), warp = warp_id();
    if (warp < ROWS) {
        if (__ldg(a.batch_ids + warp) >= 0) route_row<MAIL>(a, deal, warp);
        else if (lane < TOPK) deal.expert[warp * TOPK + lane] = NOBODY;
    }
    __syncthreads();
    int chosen = 0, before = 0, expert = threadIdx.x;
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
    if (threadIdx.x == 0) deal.chosen = chosen;
    __syncthreads();
}
