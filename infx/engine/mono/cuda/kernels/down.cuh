// The experts' second matrices: all experts of a block's tiles of the stream, then their sum in each
// row's own order.
#pragma once
#include "follow.cuh"

constexpr int PARTS = EXPERT_SIZE / PIECE_SLICE;  // 2 parts of K, a warp each; pairs of warps share the units
static_assert(4 * OUT_TASKS * PAIRS * PARTS * 16 <= AHEAD_AT, "down's sums fit the stage's memory");

// Behind tickets the last experts are there last: a pair takes its units of the others first.
constexpr bool TWO_WAVES = FOLLOW && DEALT;
constexpr int LATE_EXPERTS = 3;  // of fewer a pair might have none, and take them as the others

// A pair's units: first a tile of the shared expert, if it has one, then of the chosen experts (index of
// the union * OUT_TASKS + tile of the block). With more than 8 rows a unit of the shared expert is twice the work.
struct DownRange {
    int pair, part, first, end;
    int second, second_end;  // with TWO_WAVES those behind: of the experts that are dealt
    bool shared;
    __device__ __forceinline__ DownRange(const Deal& deal, const Stream& s) : pair(s.warp / PARTS), part(s.warp % PARTS) {
        int tiles = out_tiles_of_block();
        first = edge(pair, deal.chosen, tiles), end = edge(pair + 1, deal.chosen, tiles), shared = pair < tiles;
        if constexpr (TWO_WAVES) {
            int early = fixed_tasks(deal.chosen) / UP_TILES;
            if (deal.chosen - early < LATE_EXPERTS) early = deal.chosen;
            int from = edge(pair, early, tiles), to = edge(pair + 1, early, tiles);
            second = early * OUT_TASKS + first - from, second_end = early * OUT_TASKS + end - to;
            first = from, end = to;
        }
    }
    __device__ __forceinline__ int count() const { return end - first + (TWO_WAVES ? second_end - second : 0) + shared; }
    static __device__ __forceinline__ int edge(int pair, int chosen, int tiles) {
        return max(0, pair * (chosen + HALVES) * tiles / (WARPS / PARTS) - HALVES * min(pair, tiles));
    }
};

// A pair's units of chosen experts in two waves, an expert's tiles at a time.
struct DownWalk {
    int unit, end, second, second_end;
    __device__ __forceinline__ explicit DownWalk(const DownRange& range) : unit(range.first), end(range.end), second(range.second), second_end(range.second_end) {}
    __device__ __forceinline__ void next(int& index, int& tile, int& run) {
        if (unit == end) unit = second, end = second_end;
        index = unit / OUT_TASKS, tile = unit % OUT_TASKS, run = min(OUT_TASKS - tile, end - unit);
        unit += run;
    }
    __device__ __forceinline__ int next_index() const { return (unit == end ? second : unit) / OUT_TASKS; }
};

// What is asked for next: an expert's tiles of a block lie one behind the other.
struct DownFeed {
    DownRange range;
    const u8* from;
    int left, run, index;  // units still to ask for, of them with this expert, the next expert's index of the union
    DownWalk walk;   // with TWO_WAVES
    __device__ __forceinline__ DownFeed(const LayerArgs& a, const Deal& deal, const Stream& s) : range(deal, s), walk(range) {
        left = range.count(), index = range.first / OUT_TASKS;
        from = nullptr, run = 0;
        if (range.shared) from = piece(a, EXPERTS, range.pair), run = 1;
        else if (left) go_on(a, deal, range.first % OUT_TASKS);
    }
    __device__ __forceinline__ const u8* piece(const LayerArgs& a, int expert, int tile) const {
        return a.down + ((size_t)(expert * PARTS + range.part) * OUT_TILES + OUT_TASKS * block_id() + tile) * SLOT_BYTES;
    }
    __device__ __forceinline__ void go_on(const LayerArgs& a, const Deal& deal, int tile) {
        if constexpr (TWO_WAVES) {
            walk.next(index, tile, run);
            from = piece(a, deal.list[index], tile);
            return;
        }
        from = piece(a, deal.list[index++], tile), run = OUT_TASKS - tile;
    }
    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
#pragma unroll 1
        while (s.room && left) {
            s.put(from, SLOT_BYTES);
            from += SLOT_BYTES, --left;
            if (--run || !left) continue;
            go_on(a, deal, index == range.first / OUT_TASKS ? range.first % OUT_TASKS : 0);
        }
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
    if (block_id() != 0 || thread_id() >= ROWS * TOPK) return;
    int row = thread_id() / TOPK, slot = thread_id() % TOPK, expert = deal.expert[thread_id()];
    a.routing[row * 2 * TOPK + slot] = expert == NOBODY ? -1.0f : expert;
    a.routing[row * 2 * TOPK + TOPK + slot] = expert == NOBODY ? 0.0f : deal.weight[row][slot];
}

// `outputs` are the thread's, made before the wait for `up`; `behind` knows which experts are there.
template <class Ups>
__device__ __forceinline__ void run_down(const LayerArgs& a, Stream& s, DownFeed& feed, const Output (&outputs)[OUT_OUTPUTS], Ups behind, char* smem) {
    const Deal& deal = deal_of(smem);
    float* sums = (float*)smem;
    PieceColumns x;
    Ahead ahead(smem);
    const DownRange& range = feed.range;
    const DownRows from(a, range.part);
    DownColumns columns;
    int next = range.first / OUT_TASKS, tile = range.pair, index = MOST_CHOSEN, run = range.shared, loaded = -1, left = range.count();
    DownWalk walk(range);
    if (TWO_WAVES && !range.shared && left) walk.next(index, tile, run);
    if (!TWO_WAVES && !range.shared && range.first < range.end) index = next++, tile = range.first % OUT_TASKS, run = OUT_TASKS - tile;
    if constexpr (TWO_WAVES) next = walk.next_index();
    int rows = deal.count[index];
    if (left && behind.there(a, deal, index)) ahead.ask(deal, index, from);
    mark(a, 40);
#pragma unroll 1
    for (; left; --left) {
        const char* piece = s.take();
#pragma unroll 1
        for (int half = 0; 8 * half < rows; ++half) {
            if (loaded != half) {
                behind.await(a, deal, index);
                load_columns(deal, x, ahead, index, half, from);
                columns.set(deal, index, half, range.part);
                loaded = half;
                if (left > run && behind.there(a, deal, next)) ahead.ask(deal, next, from);
            }
            float c[4];
            multiply_piece(c, x, piece);
            columns.leave(c, sums + tile * (PAIRS * PARTS * 16));
        }
        s.release();
        feed.fill(a, deal, s);
        ++tile;
        if (--run) continue;
        if constexpr (TWO_WAVES) {
            if (left > 1) walk.next(index, tile, run), next = walk.next_index(), rows = deal.count[index];
            loaded = -1;
            continue;
        }
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
