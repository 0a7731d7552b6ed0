// The experts' second matrices: all experts of a block's tiles of the stream, then their sum in each
// row's own order.
#pragma once
#include "experts.cuh"

constexpr int PARTS = EXPERT_SIZE / PIECE_SLICE;  // 2 parts of K, a warp each; pairs of warps share the units
static_assert(4 * OUT_TASKS * PAIRS * PARTS * 16 <= AHEAD_AT, "down's sums fit the stage's memory");

// A pair's units: first a tile of the shared expert, if it has one, then of the chosen experts (index of
// the union * OUT_TASKS + tile of the block). With more than 8 rows a unit of the shared expert is twice the work.
struct DownRange {
    int pair, part, first, end;
    bool shared;
    __device__ __forceinline__ DownRange(const Deal& deal, const Stream& s) : pair(s.warp / PARTS), part(s.warp % PARTS) {
        int tiles = out_tiles_of_block();
        first = edge(pair, deal.chosen, tiles), end = edge(pair + 1, deal.chosen, tiles), shared = pair < tiles;
    }
    static __device__ __forceinline__ int edge(int pair, int chosen, int tiles) {
        return max(0, pair * (chosen + HALVES) * tiles / (WARPS / PARTS) - HALVES * min(pair, tiles));
    }
};

// What is asked for next: an expert's tiles of a block lie one behind the other.
struct DownFeed {
    static constexpr bool FOLLOWS = BY_MAIL;  // up's last piece: no arrival, whose release would wait for weights, comes between
    DownRange range;
    const u8* from;
    int left, run, index;  // units still to ask for, of them with this expert, the next expert's index of the union
    __device__ __forceinline__ DownFeed(const LayerArgs& a, const Deal& deal, const Stream& s) : range(deal, s) {
        left = range.end - range.first + range.shared, index = range.first / OUT_TASKS;
        from = nullptr, run = 0;
        if (range.shared) from = piece(a, EXPERTS, range.pair), run = 1;
        else if (left) go_on(a, deal, range.first % OUT_TASKS);
    }
    __device__ __forceinline__ const u8* piece(const LayerArgs& a, int expert, int tile) const {
        return a.down + ((size_t)(expert * PARTS + range.part) * OUT_TILES + OUT_TASKS * blockIdx.x + tile) * SLOT_BYTES;
    }
    __device__ __forceinline__ void go_on(const LayerArgs& a, const Deal& deal, int tile) {
        from = piece(a, deal.list[index++], tile), run = OUT_TASKS - tile;
    }
    __device__ __forceinline__ void step(const LayerArgs& a, const Deal& deal) {
        from += SLOT_BYTES, --left;
        if (--run || !left) return;
        go_on(a, deal, index == range.first / OUT_TASKS ? range.first % OUT_TASKS : 0);
    }
    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
#pragma unroll 1
        for (; s.room && left; step(a, deal)) s.put(from, SLOT_BYTES);
    }
    // Give back a piece and ask for the next one in its place.
    __device__ __forceinline__ void replace(const LayerArgs& a, const Deal& deal, Stream& s) {
        s.replace(left, from, SLOT_BYTES);
        if (left) step(a, deal);
    }
};
static_assert(OUT_TASKS <= WARPS / PARTS, "a pair has at most one tile of the shared expert");

// Where a (row, slot)'s numbers begin that this warp multiplies.
struct DownRows {
    const u16* first;
    __device__ __forceinline__ DownRows(const LayerArgs& a, int part) : first(a.mids + part * PIECE_SLICE) {}
    __device__ __forceinline__ const u16* operator()(int pair) const { return first + pair * EXPERT_SIZE; }
};

// Where the sums of this lane's two columns go [(row, slot)][part][16], in floats; -1: nobody's.
struct DownColumns {
    int to[2];
    __device__ __forceinline__ void set(const Deal& deal, int index, int half, int part) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            int at = 8 * half + 2 * (lane_id() & 3) + j;
            to[j] = at < deal.count[index] ? (deal.pair[index][at] * PARTS + part) * 16 + (lane_id() >> 2) : -1;
        }
    }
    __device__ __forceinline__ void leave(const float (&c)[4], float* sums) const {
#pragma unroll
        for (int j = 0; j < 2; ++j)
            if (to[j] >= 0) sums[to[j]] = c[j], sums[to[j] + 8] = c[2 + j];
    }
};

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
template <bool MAIL>
__device__ __forceinline__ void run_down(const LayerArgs& a, Stream& s, DownFeed& feed, const Output (&outputs)[OUT_OUTPUTS], char* smem) {
    const Deal& deal = deal_of(smem);
    float* sums = (float*)smem;
    PieceColumns x;
    Ahead ahead(smem);
    const DownRange& range = feed.range;
    const DownRows from(a, range.part);
    const PieceLane lane;
    DownColumns columns;
    int next = range.first / OUT_TASKS, tile = range.pair, index = MOST_CHOSEN, run = range.shared, loaded = -1;
    if (!range.shared && range.first < range.end) index = next++, tile = range.first % OUT_TASKS, run = OUT_TASKS - tile;
    int left = range.end - range.first + range.shared, rows = deal.count[index];
    if (left) ahead.ask(deal, index, from);
    mark(a, 40);
#pragma unroll 1
    for (; left; --left) {
        const u32 piece = s.take_at();
#pragma unroll 1
        for (int half = 0; 8 * half < rows; ++half) {
            if (loaded != half) {
                load_columns<MAIL>(a, deal, x, ahead, index, half, from);
                columns.set(deal, index, half, range.part);
                loaded = half;
                if (left > run) ahead.ask(deal, next, from);
            }
            float c[4];
            multiply_piece(c, x, piece, lane);
            columns.leave(c, sums + tile * (PAIRS * PARTS * 16));
        }
        feed.replace(a, deal, s);
        ++tile;
        if (--run) continue;
        tile = next == range.first / OUT_TASKS ? range.first % OUT_TASKS : 0, run = OUT_TASKS - tile;
        index = next++, loaded = -1;
        if (left > 1) rows = deal.count[index];
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
