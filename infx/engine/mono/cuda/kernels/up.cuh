// The experts' first matrices: gates and ups of 8 pairs a task, then the swiglu.
#pragma once
#include "experts.cuh"

constexpr int UP_TILES = EXPERT_SIZE / 8;  // 96 tasks an expert: 8 gates, then their 8 ups
static_assert(PIECE_SLICE * WARPS == HIDDEN, "a warp's slice of K is a piece");
static_assert(UP_TILES <= BLOCKS, "the shared expert's tasks are one round");

__device__ __forceinline__ bool has_shared_tile() { return blockIdx.x < UP_TILES; }

// A block's tasks of the chosen experts: union index * UP_TILES + tile. Blocks 0 to 95 have a task of
// the shared expert each (known before the routing), which counts once a half of its rows; the others get more of
// the chosen.
struct UpRange {
    int first, end;
    __device__ __forceinline__ explicit UpRange(int chosen) : first(edge(blockIdx.x, chosen)), end(edge(blockIdx.x + 1, chosen)) {}
    static __device__ __forceinline__ int edge(int block, int chosen) {
        return max(0, block * (chosen + HALVES) * UP_TILES / BLOCKS - HALVES * min(block, UP_TILES));
    }
};

__device__ __forceinline__ const u8* up_piece(const LayerArgs& a, const Stream& s, int expert, int tile) {
    return a.up + ((size_t)(expert * WARPS + s.warp) * UP_TILES + tile) * SLOT_BYTES;
}
__device__ __forceinline__ void fill_up_shared(const LayerArgs& a, Stream& s) {
    if (has_shared_tile()) s.put(up_piece(a, s, EXPERTS, blockIdx.x), SLOT_BYTES);
}

// What is asked for next of the chosen experts' pieces: tiles of an expert lie one behind the other.
struct UpFeed {
    const u8* from;
    int left, run, index;  // pieces still to ask for, of them with this expert, its index of the union
    __device__ __forceinline__ UpFeed(const LayerArgs& a, const Deal& deal, const Stream& s) {
        UpRange range(deal.chosen);
        left = range.end - range.first, index = range.first / UP_TILES;
        int tile = range.first % UP_TILES;
        run = UP_TILES - tile;
        from = left ? up_piece(a, s, deal.list[index], tile) : nullptr;
    }
    __device__ __forceinline__ void step(const LayerArgs& a, const Deal& deal, const Stream& s) {
        from += SLOT_BYTES, --left;
        if (--run || !left) return;
        from = up_piece(a, s, deal.list[++index], 0), run = UP_TILES;
    }
    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
#pragma unroll 1
        for (; s.room && left; step(a, deal, s)) s.put(from, SLOT_BYTES);
    }
    // Give back a piece and ask for the next one in its place.
    __device__ __forceinline__ void replace(const LayerArgs& a, const Deal& deal, Stream& s) {
        s.replace(left, from, SLOT_BYTES);
        if (left) step(a, deal, s);
    }
};
struct Feedless {  // behind up
    static constexpr bool FOLLOWS = false;
    __device__ __forceinline__ void replace(const LayerArgs&, const Deal&, Stream&) {}
};

__device__ __forceinline__ float swiglu(float gate, float up) {
    gate = fminf(gate, SWIGLU_LIMIT);
    up = fminf(fmaxf(up, -SWIGLU_LIMIT), SWIGLU_LIMIT);
    float lit = gate * sigmoid(SWIGLU_ALPHA * gate);
    return lit + lit * up;
}

// Eight rows of an expert (index of the union) times one tile: what the block's warps sum together.
struct UpTask {
    u32 packed;  // one register: two of them are waiting to be finished
    __device__ __forceinline__ UpTask(int index, int tile, int half) : packed(index << 16 | tile << 8 | half) {}
    __device__ __forceinline__ int index() const { return packed >> 16; }
    __device__ __forceinline__ int tile() const { return packed >> 8 & 255; }
    __device__ __forceinline__ int half() const { return packed & 255; }
};

// Sum a task's slices and write its features between the matrices: one warp. By mail a lane has two features, whose
// word is there at once; else one, of 4 rows at a time: 2% of `up` at 16 rows.
__device__ __forceinline__ void finish_up(const LayerArgs& a, const Deal& deal, UpTask task, const float* sums) {
    const int rows = min(8, deal.count[task.index()] - 8 * task.half());
    if constexpr (BY_MAIL) {
        const int feature = 2 * (lane_id() & 3), at = lane_id() >> 2;
        if (at >= rows) return;
        const int who = deal.pair[task.index()][8 * task.half() + at];
        const float factor = deal.factor[who / SLOTS];
        const float2 gate = sum_two<PLACE_ROWS>(sums, at, feature), up = sum_two<PLACE_ROWS>(sums, at, 8 + feature);
        const u32 both = to_bf16x2(swiglu(factor * gate.x, factor * up.x), swiglu(factor * gate.y, factor * up.y));
        send_word(a.mids + who * EXPERT_SIZE + 8 * task.tile() + feature, both);
    } else {
        const int pair = lane_id() & 7;
#pragma unroll 1
        for (int at = lane_id() >> 3; at < rows; at += 4) {
            const int who = deal.pair[task.index()][8 * task.half() + at];
            const float factor = deal.factor[who / SLOTS];
            const float gate = factor * sum_warps<PLACE_ROWS>(sums, at, pair), up = factor * sum_warps<PLACE_ROWS>(sums, at, 8 + pair);
            a.mids[who * EXPERT_SIZE + 8 * task.tile() + pair] = to_bf16(swiglu(gate, up));
        }
    }
}

// Where the numbers of a (row, slot)'s row begin that this warp multiplies.
struct UpRows {
    const u16* first;
    __device__ __forceinline__ explicit UpRows(const LayerArgs& a) : first(a.mid_normed + warp_id() * PIECE_SLICE) {}
    __device__ __forceinline__ const u16* operator()(int pair) const { return first + pair / SLOTS * HIDDEN; }
};

// Load what a block's first task of `up` multiplies, where that is known before the routing: the
// shared expert's rows. One row: all experts'.
__device__ __forceinline__ void load_up_shared(const LayerArgs& a, PieceColumns& x, char* smem) {
    if (ROWS == 1 || has_shared_tile()) load_columns<false>(a, deal_of(smem), x, Ahead(smem), MOST_CHOSEN, 0, UpRows(a));
}

// Ask for the rows of the block's first chosen expert: before its weights, or they come behind those.
__device__ __forceinline__ void ask_up(const LayerArgs& a, Ahead& ahead, char* smem) {
    const Deal& deal = deal_of(smem);
    UpRange range(deal.chosen);
    if (ROWS > 1 && range.first < range.end) ahead.ask(deal, range.first / UP_TILES, UpRows(a));
}

// The block's task of the shared expert, if it has one, then those of the chosen ones. `x` is from
// load_up_shared, `ahead` from ask_up; the shared weights were asked for before `feed`'s. Behind its last piece
// those of `next` are asked for.
template <class Next>
__device__ __forceinline__ void run_up(const LayerArgs& a, Stream& s, Places& places, PieceColumns& x, Ahead& ahead, UpFeed& feed, Next& next, char* smem) {
    const Deal& deal = deal_of(smem);
    const UpRange range(deal.chosen);
    const PieceLane lane;
    const u32 begin = places.count;
    const int last = (range.end - 1) / UP_TILES;
    int index = range.first / UP_TILES, tile = range.first % UP_TILES, loaded = 2 * MOST_CHOSEN;
    UpTask before(0, 0, 0), earlier(0, 0, 0);
    mark(a, 33);
#pragma unroll 1
    for (int task = range.first - has_shared_tile(); task < range.end; ++task) {
        const bool shared = task < range.first;
        const int now = shared ? MOST_CHOSEN : index, rows = deal.count[now];
        const u32 piece = s.take_at();
#pragma unroll 1
        for (int half = 0; 8 * half < rows; ++half) {
            if (ROWS > 1 && loaded != 2 * now + half) {
                load_columns<false>(a, deal, x, ahead, now, half, UpRows(a));
                loaded = 2 * now + half;
                if (now < last) ahead.ask(deal, now + 1, UpRows(a));
            }
            float c[4];
            multiply_piece(c, x, piece, lane);
            places.leave(c, rows - 8 * half);
            const u32 done = places.count - 1 - FINISH_BEHIND;
            if (places.finishes(done) && places.count > begin + FINISH_BEHIND) {
                finish_up(a, deal, earlier, places.all(done));
                places.give_back(done);
            }
            earlier = before, before = UpTask(now, shared ? blockIdx.x : tile, half);
        }
        if (Next::FOLLOWS && !feed.left) next.replace(a, deal, s);
        else feed.replace(a, deal, s);
        if (!shared && ++tile == UP_TILES) tile = 0, ++index;
    }
    mark(a, 34);
#pragma unroll 1
    for (u32 task = max(begin + FINISH_BEHIND, places.count) - FINISH_BEHIND; task < places.count; ++task) {
        if (!places.finishes(task)) continue;
        finish_up(a, deal, task == places.count - 1 ? before : earlier, places.all(task));
        places.give_back(task);
    }
    mark(a, 35);
}
