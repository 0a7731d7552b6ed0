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
// A piece is 16 outputs x 384 of K: six such tiles, then eight bytes for g and half of q: a byte a tile, which
// is a nibble for the scale of output g and one for that of g + 8, and their slices' exponents.
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
    u32 rest = chosen_bits(0x06030603u, v, w << 2);
    mma_bf16(c, times_bf16x2(v & NUMBER, upper), times_bf16x2((v << 4) & NUMBER, lower),
             times_bf16x2(rotated(v, 10) & NUMBER, upper), times_bf16x2((rest << 6) & NUMBER, lower), b[0], b[1]);
    mma_bf16(c, times_bf16x2(w & NUMBER, upper), times_bf16x2((w << 4) & NUMBER, lower),
             times_bf16x2(rotated(w, 10) & NUMBER, upper), times_bf16x2(rotated(rest, 12) & NUMBER, lower), b[2], b[3]);
}

// The scales of a lane's tiles: of outputs g, then of g + 8. A nibble of 15 is 1.
struct Scales {
    u32 upper[2], lower[2];  // a byte a tile
    u32 tops;                // what is common: two bytes
    __device__ __forceinline__ explicit Scales(uint2 ends) : tops(ends.y >> 16) {
        upper[0] = ends.x & 0x0F0F0F0Fu, upper[1] = ends.y & 0x0F0F0F0Fu;
        lower[0] = (ends.x >> 4) & 0x0F0F0F0Fu, lower[1] = (ends.y >> 4) & 0x0F0F0F0Fu;
    }
    // A tile's as bf16, twice: times 2^126, which its numbers lack.
    static __device__ __forceinline__ u32 of(const u32 (&bytes)[2], int tile) {
        constexpr u32 ONCE = 0x00800080u, LEAST = 238 * ONCE;  // exponents of 2^(126 - 15)
        return __byte_perm(bytes[tile / 4], 0, 0x4440 | tile % 4) * ONCE + LEAST;
    }
};

// c += 16 outputs x 64 of K, times 8 columns.
__device__ __forceinline__ void multiply_mxfp4(float (&c)[4], const u32* b, uint4 w, u32 upper, u32 lower) {
    multiply_words(c, b, w.x, w.y, upper, lower);
    multiply_words(c, b + 4, w.z, w.w, upper, lower);
}

// Where a lane finds its share of a piece: kept in a register while pieces pass.
struct PieceLane {
    u32 words, ends;
    __device__ __forceinline__ PieceLane() : words(16 * lane_id()), ends(512 * PIECE_TILES + 8 * ((lane_id() & 2) * 4 + (lane_id() >> 2))) {
        asm volatile("" : "+r"(words), "+r"(ends));
    }
};

// c = a piece times its columns: two sums, of the even and of the odd tiles, then one. `piece` is a shared address.
__device__ __forceinline__ void multiply_piece(float (&c)[4], const PieceColumns& x, u32 piece, const PieceLane& lane) {
    const u32 words = piece + lane.words;
    const Scales scales(load_shared_8(piece + lane.ends));
    float d[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = 0;
    uint4 w[2] = {load_shared_16(words), load_shared_16(words + 512)};
#pragma unroll
    for (int t = 0; t < PIECE_TILES; t += 2) {
        uint4 now[2] = {w[0], w[1]};
        if (t + 2 < PIECE_TILES) w[0] = load_shared_16(words + 512 * t + 1024), w[1] = load_shared_16(words + 512 * t + 1536);
        // One pair of tiles ahead, not all: registers.
        multiply_mxfp4(c, x.b + 8 * t, now[0], Scales::of(scales.upper, t), Scales::of(scales.lower, t));
        multiply_mxfp4(d, x.b + 8 * t + 8, now[1], Scales::of(scales.upper, t + 1), Scales::of(scales.lower, t + 1));
    }
    float upper = __uint_as_float((scales.tops & 255) << 23), lower = __uint_as_float(scales.tops >> 8 << 23);
    c[0] = upper * (c[0] + d[0]), c[1] = upper * (c[1] + d[1]);
    c[2] = lower * (c[2] + d[2]), c[3] = lower * (c[3] + d[3]);
}
