// The experts: MXFP4 weights, activations in bf16.
//
// 16 outputs x 64 of K are 512 bytes, four registers a lane: lane (g, q) has outputs g and g + 8 at
// k = 16 q ... 16 q + 15, so the rows' numbers that it needs are 32 contiguous bytes and its 16
// weights of an output share one scale. Bits are laid out offline (packing.py) so that shifts and
// masks cut four numbers of a half word out as bf16 whose exponent is too small by 126; one multiply
// mends that and applies the scale. Scales of a slice differ by less than 2^16; what is common to an
// output's slice is applied to its sum. Tables (PRMT) of f16 or, with a conversion, of e4m3 take
// fewer instructions and more time: docs/mono.md.
//
// A piece is 16 outputs x 384 of K: six such tiles, then a nibble a scale, then a byte an output.
#pragma once
#include "route.cuh"

constexpr int PIECE_TILES = 6, PIECE_SLICE = 64 * PIECE_TILES;

// A piece's columns: the numbers of 8 rows that a lane meets, and whose they are.
struct PieceColumns {
    u32 b[8 * PIECE_TILES];
    int of;  // 2 (index of the union) + half, -1: nobody's
};

constexpr u32 NUMBER = 0x81C081C0u;  // sign and three bits of a number in each half

// c += 16 outputs x 64 of K, times 8 columns. `scales`: a nibble of output g, then of g + 8; 15 is 1.
__device__ __forceinline__ void multiply_mxfp4(float (&c)[4], const u32* b, uint4 w, u32 scales) {
    constexpr u32 ONCE = 0x00800080u, LEAST = 238 * ONCE;  // exponents of 2^(126 - 15) in bf16
    u32 upper = (scales & 15) * ONCE + LEAST, lower = (scales >> 4 & 15) * ONCE + LEAST;
    u32 words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        u32 v = words[j];
        u32 a0 = times_bf16x2(v & NUMBER, upper);
        u32 a1 = times_bf16x2((v << 3) & NUMBER, lower);
        u32 a2 = times_bf16x2((v << 6) & NUMBER, upper);
        u32 last = ((v << 1) & 0x80008000u) | ((v >> 3) & 0x01800180u) | ((v >> 7) & 0x00400040u);
        mma_bf16(c, a0, a1, a2, times_bf16x2(last, lower), b[2 * j], b[2 * j + 1]);
    }
}

// c = a piece times its columns: two sums, of the even and of the odd tiles, then one.
__device__ __forceinline__ void multiply_piece(float (&c)[4], const PieceColumns& x, const char* piece) {
    int lane = lane_id(), g = lane >> 2;
    const u16* scales = (const u16*)(piece + 512 * PIECE_TILES) + 8 * ((lane & 3) >> 1) + g;
    u32 tops = ((const u16*)(piece + 512 * PIECE_TILES + 16 * PIECE_TILES))[g];
    float d[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = 0;
    uint4 w[2] = {load_tile(piece, 0), load_tile(piece, 1)};
    u32 both = scales[0];
#pragma unroll
    for (int t = 0; t < PIECE_TILES; t += 2) {
        uint4 now[2] = {w[0], w[1]};
        u32 own = both;
        if (t + 2 < PIECE_TILES) w[0] = load_tile(piece, t + 2), w[1] = load_tile(piece, t + 3), both = scales[8 * t + 16];
        asm volatile("" ::: "memory");  // One pair of tiles ahead, not all: registers.
        multiply_mxfp4(c, x.b + 8 * t, now[0], own);
        multiply_mxfp4(d, x.b + 8 * t + 8, now[1], own >> 8);
    }
    float upper = __uint_as_float((tops & 255) << 23), lower = __uint_as_float(tops >> 8 << 23);
    c[0] = upper * (c[0] + d[0]), c[1] = upper * (c[1] + d[1]);
    c[2] = lower * (c[2] + d[2]), c[3] = lower * (c[3] + d[3]);
}

// Load the columns of half `h` of an expert's rows: `from(pair)` is where a row's numbers begin.
template <class From>
__device__ __forceinline__ void load_piece_columns(const Deal& deal, PieceColumns& x, int index, int h, const From& from) {
    int at = 8 * h + (lane_id() >> 2);
    bool mine = at < deal.count[index];
    const u16* row = mine ? from(deal.pair[index][at]) + 16 * (lane_id() & 3) : nullptr;
#pragma unroll
    for (int i = 0; i < 2 * PIECE_TILES; ++i) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (mine) v = load_l2((const void*)(row + 64 * (i / 2) + 8 * (i % 2)));
        x.b[4 * i] = v.x, x.b[4 * i + 1] = v.y, x.b[4 * i + 2] = v.z, x.b[4 * i + 3] = v.w;
    }
}

// ---- up: gates and ups of 8 pairs a task, the swiglu ----------------------------------------------

constexpr int UP_TILES = EXPERT_SIZE / 8;  // 96 tasks an expert: 8 gates, then their 8 ups
static_assert(PIECE_SLICE * WARPS == HIDDEN, "a warp's slice of K is a piece");
static_assert(UP_TILES <= BLOCKS, "the shared expert's tasks are one round");

// A block's tasks of the chosen experts: union index * UP_TILES + tile. Blocks 0 to 95 have a task of
// the shared expert each (known before the routing); the others get one more of the chosen.
struct UpRange {
    int first, end;
    __device__ __forceinline__ explicit UpRange(int chosen) : first(edge(blockIdx.x, chosen)), end(edge(blockIdx.x + 1, chosen)) {}
    static __device__ __forceinline__ int edge(int block, int chosen) {
        return max(0, block * (chosen + 1) * UP_TILES / BLOCKS - min(block, UP_TILES));
    }
};

__device__ __forceinline__ const u8* up_piece(const LayerArgs& a, int expert, int tile) {
    return a.up + ((size_t)(expert * WARPS + warp_id()) * UP_TILES + tile) * SLOT_BYTES;
}
__device__ __forceinline__ void fill_up_shared(const LayerArgs& a, Stream& s, int& next) {
    s.fill(next, blockIdx.x < UP_TILES ? 1 : 0, SLOT_BYTES, [&](int) { return up_piece(a, EXPERTS, blockIdx.x); });
}

// What is asked for next of the chosen experts' pieces: tiles of an expert lie one behind the other.
struct UpFeed {
    const u8* from;
    int left, run, index;  // pieces still to ask for, of them with this expert, its index of the union
    __device__ __forceinline__ UpFeed(const LayerArgs& a, const Deal& deal) {
        UpRange range(deal.chosen);
        left = range.end - range.first, index = range.first / UP_TILES;
        int tile = range.first % UP_TILES;
        run = UP_TILES - tile;
        from = left ? up_piece(a, deal.list[index], tile) : nullptr;
    }
    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
        while (s.room && left) {
            s.put(from, SLOT_BYTES);
            from += SLOT_BYTES, --left;
            if (--run || !left) continue;
            from = up_piece(a, deal.list[++index], 0), run = UP_TILES;
        }
    }
};

__device__ __forceinline__ float swiglu(float gate, float up) {
    gate = fminf(gate, SWIGLU_LIMIT);
    up = fminf(fmaxf(up, -SWIGLU_LIMIT), SWIGLU_LIMIT);
    float lit = gate * sigmoid(SWIGLU_ALPHA * gate);
    return lit + lit * up;
}

// Sum a task's slices and write its features between the matrices: warps take turns, 4 rows each.
__device__ __forceinline__ void finish_up(const LayerArgs& a, const Deal& deal, int index, int tile, const float* sums, int turn) {
    int at = 4 * ((warp_id() - turn) & (WARPS - 1)) + (lane_id() >> 3), pair = lane_id() & 7;
    if (at >= deal.count[index]) return;
    int row = deal.pair[index][at] / SLOTS, slot = deal.pair[index][at] % SLOTS;
    float factor = deal.factor[row], gate = factor * sum_warps(sums, at, pair), up = factor * sum_warps(sums, at, 8 + pair);
    a.mids[(row * SLOTS + slot) * EXPERT_SIZE + 8 * tile + pair] = to_bf16(swiglu(gate, up));
}

// One row: every expert meets the same numbers.
__device__ __forceinline__ void load_up_columns(const LayerArgs& a, const Deal& deal, PieceColumns& x, int index, int h) {
    int of = ROWS == 1 ? 0 : 2 * index + h;
    if (x.of != of) load_piece_columns(deal, x, index, h, [&](int pair) { return a.mid_normed + pair / SLOTS * HIDDEN + warp_id() * PIECE_SLICE; });
    x.of = of;
}

// Multiply one task's weights, the next piece of the ring, with all rows of expert `index` of the union.
__device__ __forceinline__ void multiply_up(const LayerArgs& a, const Deal& deal, Stream& s, PieceColumns& x, int index, float* sums) {
    int rows = deal.count[index];
#pragma unroll 1
    for (int h = 0; 8 * h < rows; ++h) {
        load_up_columns(a, deal, x, index, h);
        float c[4];
        multiply_piece(c, x, s.take());
        leave_sums(sums, c, h, 1.0f, 1.0f, rows);
    }
    if (rows == 0) s.take();
    s.release();
}

// The block's task of the shared expert, if it has one. `x` has the columns of its first half already.
__device__ __forceinline__ void run_up_shared(const LayerArgs& a, Stream& s, PieceColumns& x, char* smem) {
    mark(a, 30);
    if (blockIdx.x >= UP_TILES) return;
    const Deal& deal = deal_of(smem);
    multiply_up(a, deal, s, x, MOST_CHOSEN, (float*)smem + 2 * SUMS_FLOATS);
    mark(a, 31);
}

// One __syncthreads a task: a task's sums are read while the next one's go to the other half. The
// shared expert's, multiplied before, are read after the first.
__device__ __forceinline__ void run_up(const LayerArgs& a, Stream& s, PieceColumns& x, UpFeed& feed, char* smem) {
    const Deal& deal = deal_of(smem);
    UpRange range(deal.chosen);
    int index = range.first / UP_TILES, tile = range.first % UP_TILES;
    mark(a, 33);
#pragma unroll 1
    for (int task = range.first; task < range.end; ++task) {
        float* sums = (float*)smem + (task & 1) * SUMS_FLOATS;
        multiply_up(a, deal, s, x, index, sums);
        feed.fill(a, deal, s);
        __syncthreads();
        finish_up(a, deal, index, tile, sums, 4 * task);
        if (++tile == UP_TILES) tile = 0, ++index;
        if (task == range.first) mark(a, 34);
    }
    if (blockIdx.x < UP_TILES) {
        if (range.first == range.end) __syncthreads();
        finish_up(a, deal, MOST_CHOSEN, blockIdx.x, (float*)smem + 2 * SUMS_FLOATS, 4 * range.end);
    }
    mark(a, 35);
}

// ---- down: all experts of a block's tiles of the stream, then their sum in each row's order ---------

constexpr int PARTS = EXPERT_SIZE / PIECE_SLICE;  // 2 parts of K, a warp each; pairs of warps share the units
static_assert(4 * OUT_TASKS * PAIRS * PARTS * 16 <= DEAL_AT, "down's sums fit the stage's memory");

// A warp's units (index of the union, the shared expert behind it; tile of the block), and what is asked for.
struct DownFeed {
    int next, at, end;
    __device__ __forceinline__ explicit DownFeed(const Deal& deal) {
        int pair = warp_id() / PARTS, units = (deal.chosen + 1) * out_tiles_of_block();
        next = at = pair * units / (WARPS / PARTS);
        end = (pair + 1) * units / (WARPS / PARTS);
    }
    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
        s.fill(next, end, SLOT_BYTES, [&](int unit) {
            int index = unit / OUT_TASKS, expert = index == deal.chosen ? EXPERTS : deal.list[index];
            int tile = OUT_TASKS * blockIdx.x + unit % OUT_TASKS;
            return a.down + ((size_t)(expert * PARTS + warp_id() % PARTS) * OUT_TILES + tile) * SLOT_BYTES;
        });
    }
};

// Multiply one unit, the next piece of the ring; sums [tile][pair][part][16].
__device__ __forceinline__ void multiply_down(const LayerArgs& a, const Deal& deal, Stream& s, PieceColumns& x, int index, int tile, float* sums) {
    int part = warp_id() % PARTS, rows = deal.count[index];
#pragma unroll 1
    for (int h = 0; 8 * h < rows; ++h) {
        if (x.of != 2 * index + h) load_piece_columns(deal, x, index, h, [&](int pair) { return a.mids + pair * EXPERT_SIZE + part * PIECE_SLICE; });
        x.of = 2 * index + h;
        float c[4];
        multiply_piece(c, x, s.take());
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            int at = 8 * h + 2 * (lane_id() & 3) + j;
            if (at >= rows) continue;
            float* to = sums + ((tile * PAIRS + deal.pair[index][at]) * PARTS + part) * 16 + (lane_id() >> 2);
            to[0] = c[j], to[8] = c[2 + j];
        }
    }
    if (rows == 0) s.take();
    s.release();
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

__device__ __forceinline__ void run_down(const LayerArgs& a, Stream& s, DownFeed& feed, char* smem) {
    const Deal& deal = deal_of(smem);
    float* sums = (float*)smem;
    PieceColumns x;
    x.of = -1;
    mark(a, 40);
#pragma unroll 1
    for (; feed.at < feed.end; ++feed.at) {
        int index = feed.at / OUT_TASKS;
        multiply_down(a, deal, s, x, index == deal.chosen ? MOST_CHOSEN : index, feed.at % OUT_TASKS, sums);
        feed.fill(a, deal, s);
    }
    mark(a, 41);
#pragma unroll
    for (int n = 0; n < OUT_OUTPUTS; ++n) {
        Output to(a, a.mid, n);
        if (n == 0) __syncthreads();
        if (to.mine) a.stream_out[to.row * HIDDEN + to.feature] = to.live ? add_ranks(to.residual, mix(deal, to, sums)) : 0.0f;
    }
    write_routing(a, deal);
    mark(a, 42);
}
