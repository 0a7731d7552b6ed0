// The experts' second matrices: all experts of a block's tiles of the stream, then their sum in each
// row's own order.
#pragma once
#include "experts.cuh"

constexpr int PARTS = EXPERT_SIZE / PIECE_SLICE;  // 2 parts of K, a warp each; pairs of warps share the units
static_assert(4 * OUT_TASKS * PAIRS * PARTS * 16 <= AHEAD_AT, "down's sums fit the stage's memory");

// A pair's units: first a tile of the shared expert, if it has one, then of the chosen experts (index of
// the union * OUT_TASKS + tile of the block); and what is asked for. With more than 8 rows a unit of
// the shared expert is twice the work.
struct DownFeed {
    int pair, part, first, at, next, end;  // units under `first` are the shared expert's
    __device__ __forceinline__ DownFeed(const Deal& deal, const Stream& s) : pair(s.warp / PARTS), part(s.warp % PARTS) {
        int tiles = out_tiles_of_block();
        first = edge(pair, deal.chosen, tiles), end = edge(pair + 1, deal.chosen, tiles);
        next = at = first - (pair < tiles);
    }
    static __device__ __forceinline__ int edge(int pair, int chosen, int tiles) {
        return max(0, pair * (chosen + HALVES) * tiles / (WARPS / PARTS) - HALVES * min(pair, tiles));
    }
    __device__ __forceinline__ int index(int unit) const { return unit < first ? MOST_CHOSEN : unit / OUT_TASKS; }
    __device__ __forceinline__ int tile(int unit) const { return unit < first ? pair : unit % OUT_TASKS; }
    // The first unit behind `unit` that is another expert's.
    __device__ __forceinline__ int behind(int unit) const { return unit < first ? first : (unit / OUT_TASKS + 1) * OUT_TASKS; }

    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
        s.fill(next, end, SLOT_BYTES, [&](int unit) {
            int expert = unit < first ? EXPERTS : deal.list[unit / OUT_TASKS];
            return a.down + ((size_t)(expert * PARTS + part) * OUT_TILES + OUT_TASKS * blockIdx.x + tile(unit)) * SLOT_BYTES;
        });
    }
};
static_assert(OUT_TASKS <= WARPS / PARTS, "a pair has at most one tile of the shared expert");

// Where a (row, slot)'s numbers begin that this warp multiplies.
struct DownRows {
    const u16* first;
    __device__ __forceinline__ DownRows(const LayerArgs& a, int part) : first(a.mids + part * PIECE_SLICE) {}
    __device__ __forceinline__ const u16* operator()(int pair) const { return first + pair * EXPERT_SIZE; }
};

// Multiply one unit, whose weights are `piece`; sums [(row, slot)][part][16], those of its tile and part.
__device__ __forceinline__ void multiply_down(const Deal& deal, const PieceColumns& x, const char* piece, int index, int half, float* sums) {
    float c[4];
    multiply_piece(c, x, piece);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        int at = 8 * half + 2 * (lane_id() & 3) + j;
        if (at >= deal.count[index]) continue;
        float* to = sums + deal.pair[index][at] * (PARTS * 16) + (lane_id() >> 2);
        to[0] = c[j], to[8] = c[2 + j];
    }
}

// Return a row's sum over its experts, in the order of its slots.
__device__ __forceinline__ float mix(const Deal& deal, const Output& to, const float* sums) {
    float total = 0;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
        const float* y = sums + (to.at * PAIRS + to.row * SLOTS + slot) * PARTS * 16 + to.out;
        total += deal.weight[to.row][slot] * (y[0] + y[16]);
    }
    return total;
}

__device__ __forceinline__ void write_routing(const LayerArgs& a, const Deal& deal) {
    if (blockIdx.x != 0 || threadIdx.x >= ROWS * TOPK) return;
    int row = threadIdx.x / TOPK, slot = threadIdx.x % TOPK, expert = deal.expert[threadIdx.x];
    a.routing[row * 2 * TOPK + slot] = expert == NOBODY ? -1.0f : expert;
    a.routing[row * 2 * TOPK + TOPK + slot] = expert == NOBODY ? 0.0f : deal.weight[row][slot];
}

// `outputs` are the thread's, made before the wait for `up`.
__device__ __forceinline__ void run_down(const LayerArgs& a, Stream& s, DownFeed& feed, const Output (&outputs)[OUT_OUTPUTS], char* smem) {
    const Deal& deal = deal_of(smem);
    float* sums = (float*)smem;
    PieceColumns x;
    Ahead ahead(smem);
    const DownRows from(a, feed.part);
    int loaded = -1;
    if (feed.at < feed.end) ahead.ask(deal, feed.index(feed.at), from);
    mark(a, 40);
#pragma unroll 1
    for (; feed.at < feed.end; ++feed.at) {
        const int index = feed.index(feed.at), next = feed.behind(feed.at);
        const char* piece = s.take();
#pragma unroll 1
        for (int half = 0; 8 * half < deal.count[index]; ++half) {
            if (loaded != 2 * index + half) {
                load_columns(deal, x, ahead, index, half, from);
                loaded = 2 * index + half;
                if (next < feed.end) ahead.ask(deal, feed.index(next), from);
            }
            multiply_down(deal, x, piece, index, half, sums + (feed.tile(feed.at) * PAIRS * PARTS + feed.part) * 16);
        }
        s.release();
        feed.fill(a, deal, s);
    }
    mark(a, 41);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < OUT_OUTPUTS; ++n) {
        const Output& to = outputs[n];
        if (to.mine) a.stream_out[to.row * HIDDEN + to.feature] = to.live ? add_ranks(to.residual, mix(deal, to, sums)) : 0.0f;
    }
    write_routing(a, deal);
    mark(a, 42);
}
