// The projections: e4m3 weights with a scale an output, activations in f16.
//
// A task is 16 outputs; a warp owns a slice of K and keeps its slice of every row as the columns of
// matrix instructions, in registers, while the weights of one task after another pass by. Sums of a
// task go through shared memory, slices in ascending order.
//
// A row's slice is first scaled by the power of two that brings its largest number to 2^14, so
// nothing overflows, and back after the sum. A weight's seven bits under its sign, moved to where f16
// has them, are the weight times 2^-8 (subnormals too): two numbers share a half word so that a mask
// cuts out one and two shifts the other (packing.py): 5 instructions for four. The conversion
// instruction runs at 16 a clock and SM: it cost more than memory.
#pragma once
#include "stream.cuh"

// Where a warp's sums lie: [warp][row of the step][16 outputs, padded to 20 against bank conflicts].
constexpr int OUT_PITCH = 20;
constexpr int SUMS_FLOATS = WARPS * ROWS * OUT_PITCH;

constexpr float FP8_BACK = 256.0f;  // what a weight's bits lack as f16

// Columns of K of one half (8 rows): `TILES` tiles of 32; 4 registers a tile.
template <int TILES>
struct Columns {
    u32 b[HALVES][4 * TILES];
    float back[HALVES][2];  // what takes the sums of this lane's two columns back to their scale
};

// Make the columns of half `h` of a lane's numbers: 8 of each tile, in the order of `Columns`.
template <int TILES>
__device__ __forceinline__ void make_columns(Columns<TILES>& c, int h, const float (&x)[8 * TILES]) {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < 8 * TILES; ++i) largest = fmaxf(largest, fabsf(x[i]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    float back, scale = f16_scale(largest, back);
#pragma unroll
    for (int i = 0; i < 4 * TILES; ++i) c.b[h][i] = to_f16x2(scale * x[2 * i], scale * x[2 * i + 1]);
    c.back[h][0] = FP8_BACK * __shfl_sync(~0u, back, 8 * (lane_id() & 3));
    c.back[h][1] = FP8_BACK * __shfl_sync(~0u, back, 8 * (lane_id() & 3) + 4);
}

// c += 16 outputs x 32 TILES of K in `piece`, with the columns.
template <int TILES>
__device__ __forceinline__ void multiply_fp8(float (&c)[HALVES][4], const Columns<TILES>& x, const char* piece) {
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
        uint4 w = load_tile(piece, t);
        u32 words[4] = {w.x, w.y, w.z, w.w}, upper[4], lower[4];  // outputs g and g + 8 at two k each
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            upper[j] = words[j] & 0xBF80BF80u;
            lower[j] = ((words[j] << 1) & 0x80008000u) | ((words[j] << 7) & 0x3F803F80u);
        }
#pragma unroll
        for (int h = 0; h < HALVES; ++h) {
            const u32* b = &x.b[h][4 * t];
            mma_f16(c[h], upper[0], lower[0], upper[1], lower[1], b[0], b[1]);
            mma_f16(c[h], upper[2], lower[2], upper[3], lower[3], b[2], b[3]);
        }
    }
}

// Where warp `warp` leaves its sums of a task: [row][OUT_PITCH], `SUM_ROWS` rows have room.
template <int SUM_ROWS = ROWS>
__device__ __forceinline__ float* sums_of_warp(float* sums, int warp) { return sums + warp * (SUM_ROWS * OUT_PITCH); }

// Leave the sums of half `h` of the rows at `own`.
__device__ __forceinline__ void leave_sums(float* own, const float (&c)[4], int h, float back0, float back1, int rows) {
    int lane = lane_id(), row = 8 * h + 2 * (lane & 3);
    float* to = own + row * OUT_PITCH + (lane >> 2);
    if (row < rows) to[0] = c[0] * back0, to[8] = c[2] * back0;
    if (row + 1 < rows) to[OUT_PITCH] = c[1] * back1, to[OUT_PITCH + 8] = c[3] * back1;
}

// Return the sum of a row and output over the block's warps, ascending.
template <int SUM_ROWS = ROWS>
__device__ __forceinline__ float sum_warps(const float* sums, int row, int out) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) total += sums[(w * SUM_ROWS + row) * OUT_PITCH + out];
    return total;
}

// The same of two outputs that lie together.
template <int SUM_ROWS = ROWS>
__device__ __forceinline__ float2 sum_two(const float* sums, int row, int out) {
    float2 total = make_float2(0, 0);
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        const float2 own = *(const float2*)(sums + (w * SUM_ROWS + row) * OUT_PITCH + out);
        total.x += own.x, total.y += own.y;
    }
    return total;
}

// ---- qkv: x (1 + w) of the residual stream times the fused projection, a part of K a block -------

constexpr int QKV_TILES = QKV / 16, QKV_BLOCKS = BLOCKS / QKV_PARTS;
constexpr int QKV_TASKS = (QKV_TILES + QKV_BLOCKS - 1) / QKV_BLOCKS;  // 5, of some blocks 4
constexpr int QKV_SLICE = HIDDEN / QKV_PARTS / WARPS;                 // 96
// Tasks whose sums the stage's memory holds at once, and outputs of those that a thread writes.
constexpr int SUMS_ROOM = (STAGE_BYTES - 1024) / (SUMS_FLOATS * 4);
constexpr int QKV_AT_ONCE = SUMS_ROOM < QKV_TASKS ? SUMS_ROOM : QKV_TASKS;
constexpr int QKV_OUTPUTS = (QKV_AT_ONCE * ROWS * 16 + THREADS - 1) / THREADS;

struct Qkv {
    int part, first, count;  // the block's part of K and its tiles
    __device__ __forceinline__ Qkv() : part(blockIdx.x % QKV_PARTS) {
        int block = blockIdx.x / QKV_PARTS;
        first = block * QKV_TILES / QKV_BLOCKS;
        count = block < QKV_BLOCKS ? (block + 1) * QKV_TILES / QKV_BLOCKS - first : 0;
    }
    // A piece is two tiles; the last may be one. Up to tile `until`.
    __device__ __forceinline__ void fill(const LayerArgs& a, Stream& s, int& next, int until = QKV_TASKS) const {
        const u8* from = a.qkv + ((part * WARPS + s.warp) * QKV_TILES + first) * 1536;
#pragma unroll 1
        while (s.room && next < min(count, until)) {
            s.put(from + 1536 * next, next + 1 < count ? 3072 : 1536);
            next += 2;
        }
    }
};

// Leave the warp's sums of squares where `sum_squares` finds them.
__device__ __forceinline__ void leave_squares(float* to, const float (&squares)[HALVES]) {
    int lane = lane_id();
#pragma unroll
    for (int h = 0; h < HALVES; ++h) {
        float sum = squares[h] + __shfl_xor_sync(~0u, squares[h], 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        int row = 8 * h + (lane >> 2);
        if ((lane & 3) == 0 && row < ROWS) to[warp_id() * ROWS + row] = sum;
    }
}

// Write the sums of squares of a part of K; the block of the part's first tile does.
__device__ __forceinline__ void write_squares(const LayerArgs& a, const Qkv& task, const float* squares) {
    if (task.first != 0 || threadIdx.x >= ROWS) return;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += squares[w * ROWS + threadIdx.x];
    a.qkv_squares[task.part * ROWS + threadIdx.x] = sum;
}

// Write the sums of tiles first ... first + count - 1.
__device__ __forceinline__ void write_qkv(const LayerArgs& a, int part, int first, int count, const float* sums) {
#pragma unroll
    for (int n = 0; n < QKV_OUTPUTS; ++n) {
        int i = threadIdx.x + n * THREADS, out = i % 16, row = i / 16 % ROWS, at = i / (16 * ROWS);
        if (at >= count) break;
        int feature = 16 * (first + at) + out;
        float scale = __ldg(a.qkv_scale + feature);
        a.qkv_sums[(part * ROWS + row) * QKV + feature] = sum_warps(sums + at * SUMS_FLOATS, row, out) * scale;
    }
}

// The warp's slice of all rows of the stream, as loaded: a lane's numbers are 4 and 4 of each 32.
struct StreamSlice {
    static constexpr int QUADS = QKV_SLICE / 16;
    float4 norm[QUADS], x[HALVES][QUADS];

    __device__ __forceinline__ void load(const LayerArgs& a, int first) {
        int lane = lane_id(), from = first + 8 * (lane & 3);
#pragma unroll
        for (int h = 0; h < HALVES; ++h)
#pragma unroll
            for (int i = 0; i < QUADS; ++i) {
                int row = 8 * h + (lane >> 2);
                x[h][i] = make_float4(0, 0, 0, 0);
                if (row < ROWS) x[h][i] = load_l2(a.stream_in + row * HIDDEN + from + 32 * (i / 2) + 4 * (i % 2));
            }
#pragma unroll
        for (int i = 0; i < QUADS; ++i) norm[i] = __ldg((const float4*)(a.attention_norm + from + 32 * (i / 2) + 4 * (i % 2)));
    }
    // Make its columns, and this lane's share of the squares.
    __device__ __forceinline__ void columns(Columns<QKV_SLICE / 32>& to, float (&squares)[HALVES]) const {
#pragma unroll
        for (int h = 0; h < HALVES; ++h) {
            float numbers[4 * QUADS];
            squares[h] = 0;
#pragma unroll
            for (int i = 0; i < QUADS; ++i) {
                float4 y = x[h][i], w = norm[i];
                squares[h] += y.x * y.x + y.y * y.y + y.z * y.z + y.w * y.w;
                numbers[4 * i] = y.x * w.x, numbers[4 * i + 1] = y.y * w.y;
                numbers[4 * i + 2] = y.z * w.z, numbers[4 * i + 3] = y.w * w.w;
            }
            make_columns(to, h, numbers);
        }
    }
};

// Bring to L2 what later stages read of small vectors: each would cost them a trip to memory.
__device__ __forceinline__ void prefetch_vectors(const LayerArgs& a) {
    constexpr int LINE_FLOATS = 32, HALF = HIDDEN / LINE_FLOATS, MLP = (DENSE_MLP ? 2 * DENSE_SIZE : EXPERTS) / LINE_FLOATS;
    int line = blockIdx.x + BLOCKS * (threadIdx.x - 32);
    const float* p = nullptr;
    if (threadIdx.x < 32) return;
    if (line < HALF) p = a.o_scale + line * LINE_FLOATS;
    else if ((line -= HALF) < HALF) p = a.mlp_norm + line * LINE_FLOATS;
    else if ((line -= HALF) < QKV / LINE_FLOATS) p = a.qkv_scale + line * LINE_FLOATS;
    else if ((line -= QKV / LINE_FLOATS) < (QKV_HEADS - 1) * DIM / LINE_FLOATS) p = a.head_norm + line * LINE_FLOATS;
    else if ((line -= (QKV_HEADS - 1) * DIM / LINE_FLOATS) < MLP) p = (DENSE_MLP ? a.up_scale : a.router_bias) + line * LINE_FLOATS;
    else if (DENSE_MLP && (line -= MLP) < HALF) p = a.down_scale + line * LINE_FLOATS;
    if (p) prefetch_l2(p);
}

// Ask for as much of the stage's weights as travels while a block waits for the stream: a piece a warp.
__device__ __forceinline__ void ask_qkv(const LayerArgs& a, Stream& s) {
    int next = 0;
    Qkv().fill(a, s, next, 2);
}

// The stage, after `ask_qkv`; the rest of its weights is asked for behind the stream, which would wait for it.
__device__ __forceinline__ void run_qkv(const LayerArgs& a, Stream& s, char* smem) {
    Qkv task;
    int next = min(2, task.count);
    float *sums = (float*)smem, *own = sums_of_warp(sums, s.warp), *all_squares = (float*)(smem + STAGE_BYTES - 1024);
    Columns<QKV_SLICE / 32> x;
    float squares[HALVES];
    mark(a, 0);
    {
        StreamSlice slice;
        slice.load(a, task.part * (HIDDEN / QKV_PARTS) + s.warp * QKV_SLICE);
        task.fill(a, s, next);
        prefetch_vectors(a);
        slice.columns(x, squares);
    }
    leave_squares(all_squares, squares);
    mark(a, 1);
    for (int done = 0; done < task.count; done += QKV_AT_ONCE) {
        int now = min(QKV_AT_ONCE, task.count - done);
#pragma unroll 1
        for (int i = 0; i < now; ++i) {
            float c[HALVES][4] = {};
            int second = (done + i) & 1;
            multiply_fp8(c, x, s.take() + 1536 * second);
            if (second || done + i + 1 == task.count) {
                s.release();
                task.fill(a, s, next);
            }
#pragma unroll
            for (int h = 0; h < HALVES; ++h) leave_sums(own + i * SUMS_FLOATS, c[h], h, x.back[h][0], x.back[h][1], ROWS);
        }
        __syncthreads();
        mark(a, 2);
        write_qkv(a, task.part, task.first + done, now, sums);
        if (done == 0) write_squares(a, task, all_squares);
        if (done + QKV_AT_ONCE < task.count) __syncthreads();
    }
    mark(a, 3);
}
