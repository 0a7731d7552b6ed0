// The output projection: attention's output, a head a warp, then ranks and residual.
#pragma once
#include "attn.cuh"
#include "fp8.cuh"
#include "sync.cuh"

// Up to so many rows the projection merges partitions itself: 34 KB of L2 a row and block with fp8
// caches, else 66. No gain at two rows (docs/mono.md). Attention over all keys merges its own.
constexpr int FOLDED_ROWS = 1;
constexpr bool FOLDED = LAYER_KIND != DENSE && ROWS <= FOLDED_ROWS;

__device__ __forceinline__ int out_tiles_of_block() { return blockIdx.x < OUT_BLOCKS ? OUT_TASKS : 0; }
// Outputs of the block's tiles that a thread writes.
constexpr int OUT_OUTPUTS = (OUT_TASKS * ROWS * 16 + THREADS - 1) / THREADS;

// Return residual + the sum over ranks, in rank order: here of RANKS equal parts.
__device__ __forceinline__ float add_ranks(float residual, float own) {
    float total = own;
#pragma unroll
    for (int rank = 1; rank < RANKS; ++rank) total += own;
    return residual + total;
}

// Ask for no more than `most` of the block's pieces.
__device__ __forceinline__ void fill_o(const LayerArgs& a, Stream& s, int& next, int most = OUT_TASKS) {
    s.fill(next, min(out_tiles_of_block(), next + most), 2048, [&](int i) {
        return a.o + (s.warp * OUT_TILES + OUT_TASKS * blockIdx.x + i) * 2048;
    });
}

// One of a thread's outputs, and what is known of it before the sum: fetched before the stage.
struct Output {
    int at, row, out, feature;  // its tile of the block, row of the step, output of the tile
    bool mine, live;
    float residual;
    __device__ __forceinline__ void fetch(const LayerArgs& a, const float* stream, int n) {
        int i = threadIdx.x + n * THREADS;
        out = i % 16, row = i / 16 % ROWS, at = i / (16 * ROWS);
        mine = at < out_tiles_of_block();
        feature = 16 * (OUT_TASKS * blockIdx.x + at) + out;
        residual = mine ? load_l2_one(stream + row * HIDDEN + feature) : 0.0f;
        live = mine && __ldg(a.batch_ids + row) >= 0;
    }
};
__device__ __forceinline__ void fetch_outputs(const LayerArgs& a, const float* stream, Output (&outputs)[OUT_OUTPUTS]) {
#pragma unroll
    for (int n = 0; n < OUT_OUTPUTS; ++n) outputs[n].fetch(a, stream, n);
}

// What the output projection needs besides sums.
struct OutputAhead {
    Output outputs[OUT_OUTPUTS];
    float scale[OUT_OUTPUTS], norm[OUT_OUTPUTS];
    __device__ __forceinline__ explicit OutputAhead(const LayerArgs& a) {
        fetch_outputs(a, a.stream_in, outputs);
#pragma unroll
        for (int n = 0; n < OUT_OUTPUTS; ++n) {
            scale[n] = outputs[n].mine ? __ldg(a.o_scale + outputs[n].feature) : 0.0f;
            norm[n] = outputs[n].mine ? __ldg(a.mlp_norm + outputs[n].feature) : 0.0f;
        }
    }
};

// Load a head a warp: merged by the stage before, or here. 8 numbers of a tile of 32 are 16 bytes.
__device__ __forceinline__ void load_attended(const LayerArgs& a, Columns<DIM / 32>& x, char* shared) {
    int lane = lane_id(), head = warp_id();
    const u16* numbers = a.attended + head * ROWS * DIM;
    const float* back = a.attended_back + head * ROWS;
    if (FOLDED) {
        u16* own = (u16*)shared + head * ROWS * DIM;
        float* own_back = (float*)(shared + WARPS * ROWS * DIM * 2) + head * ROWS;
        for (int row = 0; row < ROWS; ++row) keep_attended(merge_head(a, row, head), own + row * DIM, own_back + row);
        __syncwarp();
        numbers = own, back = own_back;
    }
#pragma unroll
    for (int h = 0; h < HALVES; ++h) {
        int row = 8 * h + (lane >> 2);
#pragma unroll
        for (int t = 0; t < DIM / 32; ++t) {
            uint4 v = make_uint4(0, 0, 0, 0);
            const u16* from = numbers + row * DIM + 32 * t + 8 * (lane & 3);
            if (row < ROWS) v = FOLDED ? *(const uint4*)from : load_l2((const void*)from);
            x.b[h][4 * t] = v.x, x.b[h][4 * t + 1] = v.y, x.b[h][4 * t + 2] = v.z, x.b[h][4 * t + 3] = v.w;
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            int column = 8 * h + 2 * (lane & 3) + j;
            const float* from = back + min(column, ROWS - 1);
            x.back[h][j] = FP8_BACK * (FOLDED ? *from : load_l2_one(from));
        }
    }
    if (FOLDED) __syncthreads();
}

// Over the 16 lanes that have a row's outputs of a tile.
__device__ __forceinline__ float tile_max(float x) {
#pragma unroll
    for (int lanes = 8; lanes; lanes >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
}

// Write one number of the MLP's input: bf16, or for a dense MLP f16 with a power of two a tile, which
// as f16 has three bits more in the same bytes.
__device__ __forceinline__ void write_normed(const LayerArgs& a, const Output& to, float x) {
    int place = to.row * HIDDEN + to.feature;
    if (!DENSE_MLP) {
        if (to.mine) a.mid_normed[place] = to_bf16(x);
        return;
    }
    float back, scale = f16_scale(tile_max(fabsf(x)), back);
    if (!to.mine) return;
    a.mid_normed[place] = to_f16(scale * x);
    if (to.out == 0) a.mid_exponents[place / 16] = __float_as_uint(back) >> 23;
}

// Write the stream after attention, in float32 and as the MLP's input, and the sums of its squares.
__device__ __forceinline__ void write_mid(const LayerArgs& a, const Output& to, float own, float scale, float norm, float* squares) {
    float mid = to.live ? add_ranks(to.residual, own * scale) : 0.0f;
    if (to.mine) a.mid[to.row * HIDDEN + to.feature] = mid;
    write_normed(a, to, mid * norm);
    float square = mid * mid;
#pragma unroll
    for (int lanes = 8; lanes; lanes >>= 1) square += __shfl_xor_sync(~0u, square, lanes);
    if (to.out == 0 && to.mine) squares[to.at * ROWS + to.row] = square;
}

// Multiply the block's tiles, whose weights were all asked for, and leave the warp's sums of each: `own` is its place among the first's.
template <int TILES>
__device__ __forceinline__ void multiply_out_tiles(Stream& s, const Columns<TILES>& x, float* own) {
#pragma unroll 1
    for (int i = 0; i < OUT_TASKS; ++i) {
        float c[HALVES][4] = {};
        multiply_fp8(c, x, s.take());
        s.release();
#pragma unroll
        for (int h = 0; h < HALVES; ++h) leave_sums(own + i * SUMS_FLOATS, c[h], h, x.back[h][0], x.back[h][1], ROWS);
    }
}

__device__ __forceinline__ void run_o(const LayerArgs& a, Stream& s, const OutputAhead& known, char* smem) {
    float *sums = (float*)smem, *own = sums_of_warp(sums, s.warp);
    Columns<DIM / 32> x;
    mark(a, 10);
    load_attended(a, x, smem);
    mark(a, 11);
    if (blockIdx.x >= OUT_BLOCKS) return;
    multiply_out_tiles(s, x, own);
    mark(a, 12);
    float* squares = sums + OUT_TASKS * SUMS_FLOATS;  // [task][row]
    __syncthreads();
#pragma unroll
    for (int n = 0; n < OUT_OUTPUTS; ++n) {
        const Output& to = known.outputs[n];
        write_mid(a, to, to.mine ? sum_warps(sums + to.at * SUMS_FLOATS, to.row, to.out) : 0.0f, known.scale[n], known.norm[n], squares);
    }
    __syncthreads();
    if (threadIdx.x < ROWS) {
        float total = 0;
#pragma unroll
        for (int i = 0; i < OUT_TASKS; ++i) total += squares[i * ROWS + threadIdx.x];
        a.mid_squares[blockIdx.x * ROWS + threadIdx.x] = total;
    }
    mark(a, 13);
}
static_assert(4 * (OUT_TASKS * SUMS_FLOATS + OUT_TASKS * ROWS) <= STAGE_BYTES, "o's sums fit the stage's memory");
