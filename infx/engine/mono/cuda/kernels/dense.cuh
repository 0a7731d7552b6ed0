// The dense MLP: e4m3 weights with a scale an output, activations in f16.
//
// Both matrices are dealt as the output projection is: three tiles of 16 outputs a block, a warp a
// slice of K, so sums are cut by weight coordinates alone. `up` has 8 gates and their 8 ups in a
// tile (24 pairs a block, the plan's dense_tile); a warp's slice is 384 inputs, two pieces of the
// ring. `down` has a slice of 192, one piece: all its weights fit the ring.
#pragma once
#include "attn_ptx.cuh"
#include "up.cuh"

constexpr int DENSE_TILES = DENSE_SIZE / 8;
static_assert(DENSE_TILES == OUT_TILES, "a block has as many tiles of `up` as of the stream");
constexpr int DENSE_PIECE = 3072;  // bytes: 16 outputs x 192 inputs
constexpr int UP_SLICE = HIDDEN / WARPS, DOWN_SLICE = DENSE_SIZE / WARPS;
static_assert(UP_SLICE * 16 == 2 * DENSE_PIECE && DOWN_SLICE * 16 == DENSE_PIECE, "slices are whole pieces");
static_assert(DENSE_PIECE <= SLOT_BYTES && OUT_TASKS <= RING_SLOTS, "down's weights fit the ring");

// Pieces a warp asks for before it waits; the rest goes behind the loads of activations, which would
// else stand in line behind a whole ring's weights.
constexpr int DENSE_AHEAD = 2;

// Numbers between the matrices are below 57: the swiglu's limit of 7, times 8.
constexpr float MIDS_SCALE = 1024.0f;

__device__ __forceinline__ void fill_dense_up(const LayerArgs& a, Stream& s, int& next, int most = 2 * OUT_TASKS) {
    const u8* from = a.up + (size_t)(s.warp * DENSE_TILES + OUT_TASKS * blockIdx.x) * (2 * DENSE_PIECE);
    s.fill(next, min(most, 2 * out_tiles_of_block()), DENSE_PIECE, [&](int i) { return from + i * DENSE_PIECE; });
}
__device__ __forceinline__ void fill_dense_down(const LayerArgs& a, Stream& s, int& next, int most = OUT_TASKS) {
    const u8* from = a.down + (size_t)(s.warp * OUT_TILES + OUT_TASKS * blockIdx.x) * DENSE_PIECE;
    s.fill(next, min(most, out_tiles_of_block()), DENSE_PIECE, [&](int i) { return from + i * DENSE_PIECE; });
}

// ---- up -------------------------------------------------------------------------------------------

// A warp's slice of all rows. Where a step has two halves of 8 rows, 24 of its 96 registers wait in
// shared memory: the second piece's of the first half. Each lane reads what it wrote itself.
constexpr int PIECE_STEPS = UP_SLICE / 64;  // tiles of 32 inputs in a piece
struct UpColumns {
    Columns<PIECE_STEPS> first;
    u32 second[HALVES][4 * PIECE_STEPS];
    uint4* spare;  // [PIECE_STEPS][32 lanes] of this warp, at this lane
};
__device__ __forceinline__ void put_step(u32* b, int t, uint4 v) {
    b[4 * t] = v.x, b[4 * t + 1] = v.y, b[4 * t + 2] = v.z, b[4 * t + 3] = v.w;
}

// c += the second piece: two steps at a time, or all of the first half would be back in registers.
__device__ __forceinline__ void multiply_second(float (&c)[HALVES][4], const UpColumns& x, const char* piece) {
    constexpr int AT_ONCE = HALVES == 1 ? PIECE_STEPS : 2;
#pragma unroll
    for (int t = 0; t < PIECE_STEPS; t += AT_ONCE) {
        Columns<AT_ONCE> some;
#pragma unroll
        for (int h = 0; h < HALVES; ++h)
#pragma unroll
            for (int i = 0; i < 4 * AT_ONCE; ++i) some.b[h][i] = x.second[h][4 * t + i];
        if constexpr (HALVES > 1) {
            asm volatile("" ::: "memory");
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) put_step(some.b[0], i, x.spare[32 * (t + i)]);
        }
        multiply_fp8(c, some, piece + 512 * t);
    }
}

constexpr int SPARE_BYTES = HALVES == 1 ? 0 : WARPS * PIECE_STEPS * 512;
constexpr int UP_FACTORS_AT = STAGE_BYTES - 64, SPARE_AT = UP_FACTORS_AT - SPARE_BYTES;
// Tasks whose sums the stage's memory holds at once.
constexpr int UP_ROOM = SPARE_AT / (SUMS_FLOATS * 4), UP_AT_ONCE = UP_ROOM < OUT_TASKS ? UP_ROOM : OUT_TASKS;
static_assert(UP_AT_ONCE >= 1 && UP_AT_ONCE * ROWS * 8 <= THREADS, "a thread finishes one pair at a time");

// What a lane has of a row's slice: 8 numbers of each 32, and the exponents of 24 tiles of 16.
struct RawSlice {
    uint4 numbers[2 * PIECE_STEPS];
    uint2 exponents[3];
};

// Ask for a row's slice; SPARED: its second piece goes to `spare`.
template <bool SPARED>
__device__ __forceinline__ void load_raw(const LayerArgs& a, int row, RawSlice& x, uint4* spare) {
    const u16* from = a.mid_normed + row * HIDDEN + warp_id() * UP_SLICE + 8 * (lane_id() & 3);
    const uint2* exponents = (const uint2*)(a.mid_exponents + row * OUT_TILES + warp_id() * (UP_SLICE / 16));
#pragma unroll
    for (int i = 0; i < 3; ++i) x.exponents[i] = row < ROWS ? __ldcg(exponents + i) : make_uint2(0, 0);
#pragma unroll
    for (int t = 0; t < 2 * PIECE_STEPS; ++t) {
        if (SPARED && t >= PIECE_STEPS) copy_async_16(spare + 32 * (t - PIECE_STEPS), from + 32 * t, true);
        else x.numbers[t] = row < ROWS ? load_l2((const void*)(from + 32 * t)) : make_uint4(0, 0, 0, 0);
    }
}

// The largest of a slice's exponents: all its tiles are brought to that power of two.
__device__ __forceinline__ int top_of(const uint2 (&x)[3]) {
    u32 most = __vmaxu4(__vmaxu4(__vmaxu4(x[0].x, x[0].y), __vmaxu4(x[1].x, x[1].y)), __vmaxu4(x[2].x, x[2].y));
    return max(max((int)(most & 255), (int)(most >> 8 & 255)), max((int)(most >> 16 & 255), (int)(most >> 24)));
}
__device__ __forceinline__ uint4 brought_to(int top, const uint2 (&x)[3], int t, uint4 v) {
    u32 word = t / 2 % 2 ? x[t / 4].y : x[t / 4].x;
    // Lanes 2 and 3 of a quad have numbers of the second tile of 16.
    int own = word >> (16 * (t & 1) + 4 * (lane_id() & 2)) & 255;
    float factor = __uint_as_float((u32)max(127 + own - top, 0) << 23);
    u32 both = to_f16x2(factor, factor);
    return make_uint4(times_f16x2(v.x, both), times_f16x2(v.y, both), times_f16x2(v.z, both), times_f16x2(v.w, both));
}

template <bool SPARED>
__device__ __forceinline__ void keep_slice(RawSlice& x, int h, UpColumns& to) {
    // Not earlier: what follows from the exponents alone would fill registers while numbers travel.
#pragma unroll
    for (int i = 0; i < 3; ++i) asm volatile("" : "+r"(x.exponents[i].x), "+r"(x.exponents[i].y));
    int top = top_of(x.exponents);
#pragma unroll
    for (int t = 0; t < PIECE_STEPS; ++t) {
        int later = PIECE_STEPS + t;
        put_step(to.first.b[h], t, brought_to(top, x.exponents, t, x.numbers[t]));
        uint4 v = brought_to(top, x.exponents, later, SPARED ? to.spare[32 * t] : x.numbers[later]);
        if (SPARED) to.spare[32 * t] = v;
        else put_step(to.second[h], t, v);
    }
    float back = FP8_BACK * __uint_as_float((u32)top << 23);
#pragma unroll
    for (int j = 0; j < 2; ++j) to.first.back[h][j] = __shfl_sync(~0u, back, 8 * (lane_id() & 3) + 4 * j);
}

// Load the warp's columns, keep the norm's factors of rows, then ask for more weights.
__device__ __forceinline__ void load_up(const LayerArgs& a, Stream& s, int& next, UpColumns& x, char* smem) {
    RawSlice raw[HALVES];
    x.spare = (uint4*)(smem + SPARE_AT) + warp_id() * (PIECE_STEPS * 32) + lane_id();
    int row = lane_id() >> 2;
    load_raw<HALVES == 2>(a, row, raw[0], x.spare);
    if constexpr (HALVES == 2) load_raw<false>(a, 8 + row, raw[1], nullptr);
    MidSquares squares(a, min(warp_id(), ROWS - 1));
    fill_dense_up(a, s, next);
    if constexpr (HALVES == 2) {
        keep_slice<false>(raw[1], 1, x);
        copies_done();
    }
    keep_slice<HALVES == 2>(raw[0], 0, x);
    float factor = squares.factor();
    if (lane_id() == 0 && warp_id() < ROWS) ((float*)(smem + UP_FACTORS_AT))[warp_id()] = factor;
}

__device__ __forceinline__ void multiply_dense_up(const LayerArgs& a, Stream& s, int& next, UpColumns& x, float* sums) {
    float c[HALVES][4] = {};
    multiply_fp8(c, x.first, s.take());
    s.release();
    fill_dense_up(a, s, next);
    multiply_second(c, x, s.take());
    s.release();
    fill_dense_up(a, s, next);
#pragma unroll
    for (int h = 0; h < HALVES; ++h) leave_sums(sums_of_warp(sums, s.warp), c[h], h, x.first.back[h][0], x.first.back[h][1], ROWS);
}

// One pair of gate and up of a row, of `now` tiles from the block's tile `done` on. Behind the sums' barrier.
struct DensePair {
    int at, row, pair, output;  // output: the gate's number
    bool mine;
    float gate_scale, up_scale;
    __device__ __forceinline__ DensePair(const LayerArgs& a, int done, int now) {
        pair = threadIdx.x % 8, row = threadIdx.x / 8 % ROWS, at = threadIdx.x / (8 * ROWS);
        mine = at < now;
        output = 16 * (OUT_TASKS * blockIdx.x + done + at) + pair;
        gate_scale = mine ? __ldg(a.up_scale + output) : 0.0f;
        up_scale = mine ? __ldg(a.up_scale + output + 8) : 0.0f;
    }
    __device__ __forceinline__ void finish(const LayerArgs& a, const float* sums, float factor) const {
        if (!mine) return;
        const float* own = sums + at * SUMS_FLOATS;
        float gate = factor * (gate_scale * sum_warps(own, row, pair)), up = factor * (up_scale * sum_warps(own, row, 8 + pair));
        a.mids[row * DENSE_SIZE + output / 16 * 8 + pair] = to_f16(MIDS_SCALE * swiglu(gate, up));
    }
};

__device__ __forceinline__ void run_dense_up(const LayerArgs& a, Stream& s, int& next, char* smem) {
    mark(a, 30);
    if (blockIdx.x >= OUT_BLOCKS) return;
    float *sums = (float*)smem, *factors = (float*)(smem + UP_FACTORS_AT);
    UpColumns x;
    load_up(a, s, next, x, smem);
    mark(a, 31);
#pragma unroll 1
    for (int done = 0; done < OUT_TASKS; done += UP_AT_ONCE) {
        int now = min(UP_AT_ONCE, OUT_TASKS - done);
        DensePair pair(a, done, now);
        if (done) __syncthreads();
#pragma unroll 1
        for (int i = 0; i < now; ++i) multiply_dense_up(a, s, next, x, sums + i * SUMS_FLOATS);
        __syncthreads();
        pair.finish(a, sums, factors[pair.row]);
    }
    mark(a, 35);
}

// ---- down -----------------------------------------------------------------------------------------

static_assert(4 * OUT_TASKS * SUMS_FLOATS <= STAGE_BYTES, "down's sums fit the stage's memory");

__device__ __forceinline__ void load_mids(const LayerArgs& a, Columns<DOWN_SLICE / 32>& x) {
    const u16* from = a.mids + warp_id() * DOWN_SLICE + 8 * (lane_id() & 3);
#pragma unroll
    for (int h = 0; h < HALVES; ++h) {
        int row = 8 * h + (lane_id() >> 2);
#pragma unroll
        for (int t = 0; t < DOWN_SLICE / 32; ++t) {
            uint4 v = make_uint4(0, 0, 0, 0);
            if (row < ROWS) v = load_l2((const void*)(from + row * DENSE_SIZE + 32 * t));
            u32* b = &x.b[h][4 * t];
            b[0] = v.x, b[1] = v.y, b[2] = v.z, b[3] = v.w;
        }
        x.back[h][0] = x.back[h][1] = FP8_BACK / MIDS_SCALE;
    }
}

// What `down` needs besides sums: there since the output projection.
struct DownAhead {
    Output outputs[OUT_OUTPUTS];
    float scale[OUT_OUTPUTS];
    __device__ __forceinline__ explicit DownAhead(const LayerArgs& a) {
        fetch_outputs(a, a.mid, outputs);
#pragma unroll
        for (int n = 0; n < OUT_OUTPUTS; ++n) scale[n] = outputs[n].mine ? __ldg(a.down_scale + outputs[n].feature) : 0.0f;
    }
};

__device__ __forceinline__ void run_dense_down(const LayerArgs& a, Stream& s, int& next, const DownAhead& known, char* smem) {
    mark(a, 40);
    if (blockIdx.x >= OUT_BLOCKS) return;
    float *sums = (float*)smem, *own = sums_of_warp(sums, s.warp);
    Columns<DOWN_SLICE / 32> x;
    load_mids(a, x);
    fill_dense_down(a, s, next);
    mark(a, 41);
    multiply_out_tiles(s, x, own);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < OUT_OUTPUTS; ++n) {
        const Output& to = known.outputs[n];
        if (!to.mine) continue;
        float part = known.scale[n] * sum_warps(sums + to.at * SUMS_FLOATS, to.row, to.out);
        a.stream_out[to.row * HIDDEN + to.feature] = to.live ? add_ranks(to.residual, part) : 0.0f;
    }
    mark(a, 42);
}
