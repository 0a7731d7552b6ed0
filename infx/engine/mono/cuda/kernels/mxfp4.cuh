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
#include "fp8.cuh"

constexpr int PIECE_TILES = 6, PIECE_SLICE = 64 * PIECE_TILES;

// A piece's columns: the numbers of 8 rows that a lane meets.
struct PieceColumns {
    u32 b[8 * PIECE_TILES];
};

constexpr u32 NUMBER = 0x81C081C0u;  // sign and three bits of a number in each half

__device__ __forceinline__ u32 rotated(u32 v, int left) { return __funnelshift_l(v, v, left); }

// c += 16 outputs x 32 of K in two words, times 8 columns; `upper` and `lower`: the scales of outputs g and g + 8.
// Three numbers a half word are a mask away, turned or not; the bits that two words have left make one more each.
__device__ __forceinline__ void multiply_words(float (&c)[4], const u32* b, u32 v, u32 w, u32 upper, u32 lower) {
    u32 rest = (v & 0x06030603u) | ((w << 2) & 0x180C180Cu);
    mma_bf16(c, times_bf16x2(v & NUMBER, upper), times_bf16x2((v << 4) & NUMBER, lower),
             times_bf16x2(rotated(v, 10) & NUMBER, upper), times_bf16x2((rest << 6) & NUMBER, lower), b[0], b[1]);
    mma_bf16(c, times_bf16x2(w & NUMBER, upper), times_bf16x2((w << 4) & NUMBER, lower),
             times_bf16x2(rotated(w, 10) & NUMBER, upper), times_bf16x2(rotated(rest, 12) & NUMBER, lower), b[2], b[3]);
}

// c += 16 outputs x 64 of K, times 8 columns. `scales`: a nibble of output g, then of g + 8; 15 is 1.
__device__ __forceinline__ void multiply_mxfp4(float (&c)[4], const u32* b, uint4 w, u32 scales) {
    constexpr u32 ONCE = 0x00800080u, LEAST = 238 * ONCE;  // exponents of 2^(126 - 15) in bf16
    u32 upper = (scales & 15) * ONCE + LEAST, lower = (scales & 240) * (ONCE / 16) + LEAST;
    multiply_words(c, b, w.x, w.y, upper, lower);
    multiply_words(c, b + 4, w.z, w.w, upper, lower);
}

// c = a piece times its columns: two sums, of the even and of the odd tiles, then one.
__device__ __forceinline__ void multiply_piece(float (&c)[4], const PieceColumns& x, const char* piece) {
    int lane = lane_id(), g = lane >> 2;
    const u8* scales = (const u8*)(piece + 512 * PIECE_TILES) + 16 * ((lane & 3) >> 1) + 2 * g;
    u32 tops = ((const u16*)(piece + 512 * PIECE_TILES + 16 * PIECE_TILES))[g];
    float d[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = 0;
    uint4 w[2] = {load_tile(piece, 0), load_tile(piece, 1)};
    u32 scale[2] = {scales[0], scales[1]};
#pragma unroll
    for (int t = 0; t < PIECE_TILES; t += 2) {
        uint4 now[2] = {w[0], w[1]};
        u32 own[2] = {scale[0], scale[1]};
        if (t + 2 < PIECE_TILES) {
            w[0] = load_tile(piece, t + 2), w[1] = load_tile(piece, t + 3);
            scale[0] = scales[16 * t + 32], scale[1] = scales[16 * t + 33];
        }
        asm volatile("" ::: "memory");  // One pair of tiles ahead, not all: registers.
        multiply_mxfp4(c, x.b + 8 * t, now[0], own[0]);
        multiply_mxfp4(d, x.b + 8 * t + 8, now[1], own[1]);
    }
    float upper = __uint_as_float((tops & 255) << 23), lower = __uint_as_float(tops >> 8 << 23);
    c[0] = upper * (c[0] + d[0]), c[1] = upper * (c[1] + d[1]);
    c[2] = lower * (c[2] + d[2]), c[3] = lower * (c[3] + d[3]);
}
