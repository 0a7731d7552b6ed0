// Paged caches: how a warp keeps a vector of 128 numbers, how lanes read tokens as MMA operands.
//
// bf16 has no scale. fp8 is e4m3: keys and values have a float scale a token and head, applied to
// scores and to probabilities; index keys have none. mxfp4 has an e8m0 byte for each 32 numbers,
// applied to the operand. An operand of fp8 is f16 (exact), of bf16 and mxfp4 bf16 (exact).
#pragma once
#include "attn_ptx.cuh"

// What keys and values, and index keys, are kept as.
enum CacheKind { BF16 = 0, FP8 = 1, MXFP4 = 2 };
#ifndef KV_KIND
#define KV_KIND FP8
#endif
#ifndef INDEX_KIND
#define INDEX_KIND FP8
#endif

constexpr int MX_GROUP = 32;
// Operands of mxfp4 are kept 2^-63 of their size and meet queries of 2^63 times theirs, so that one
// multiplication makes both the bias of the codes and the scale, for all scales up to 2^64.
constexpr float MXFP4_UP = 9223372036854775808.0f;

// Operands: f16 for fp8, bf16 for the others.
template <int KIND>
__device__ __forceinline__ u32 pack(float low, float high) {
    return KIND == FP8 ? to_f16x2(low, high) : to_bf16x2(low, high);
}
// What an operand holds of x.
template <int KIND>
__device__ __forceinline__ float held(float x) {
    return KIND == FP8 ? low_f16(to_f16x2(x, 0.0f)) : low_bf16(to_bf16x2(x, 0.0f));
}
template <int KIND>
__device__ __forceinline__ void mma(float (&c)[4], uint4 a, u32 b0, u32 b1) {
    if (KIND == FP8)
        mma_f16(c, a.x, a.y, a.z, a.w, b0, b1);
    else
        mma_bf16(c, a.x, a.y, a.z, a.w, b0, b1);
}

// ---- keeping a vector: lane l of a warp has the numbers l, l + 32, l + 64, l + 96 --------------

__device__ __forceinline__ float warp_max_nan(float x) {
#pragma unroll
    for (int far = 16; far; far /= 2) x = max_nan(x, __shfl_xor_sync(ALL_LANES, x, far));
    return x;
}

// The upper half onto the lower until one is left (the order of sums of the plan and of quant.py).
__device__ __forceinline__ float warp_halving(float x) {
#pragma unroll
    for (int far = 16; far; far /= 2) x = __fadd_rn(x, __shfl_xor_sync(ALL_LANES, x, far));
    return x;
}

__device__ __forceinline__ float magnitude(int code) {
    if (code < 2) return 0.5f * code;
    return __uint_as_float(((code >> 1) + 126) << 23 | (code & 1) << 22);
}

__device__ __forceinline__ int nearest_e2m1(float size) {
    return (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) + (size > 2.5f) +
           (size >= 3.5f) + (size > 5.0f);
}

// The code of |x| where a group's scale is 2^(exponent - 127), and its squared error.
__device__ __forceinline__ int mxfp4_code(float size, int exponent, float& error) {
    const int code = nearest_e2m1(size * __uint_as_float((254 - exponent) << 23));
    const float off = __fsub_rn(magnitude(code) * __uint_as_float(exponent << 23), size);
    error = __fmul_rn(off, off);
    return code;
}

// Keep the group of 32 numbers x, a lane each: 16 bytes of codes and the byte of its scale.
__device__ __forceinline__ void put_mxfp4_group(float x, int lane, u8* codes, u8* scale) {
    const float size = fabsf(x);
    const float most = max_nan(warp_max_nan(size), 0x1p-120f);
    const int exponent = __float_as_uint(most) >> 23 & 255;
    float errors[2];
    int code[2] = {}, chosen = 0;
    if (exponent < 255) {
        code[0] = mxfp4_code(size, exponent - 2, errors[0]);
        code[1] = mxfp4_code(size, exponent - 1, errors[1]);
        chosen = warp_halving(errors[1]) < warp_halving(errors[0]);
    }
    const u32 nibble = (chosen ? code[1] : code[0]) | __float_as_uint(x) >> 28 & 8;
    const u32 next = __shfl_down_sync(ALL_LANES, nibble, 1);
    if (lane % 2 == 0) codes[lane / 2] = nibble | next << 4;
    if (lane == 0) *scale = exponent < 255 ? exponent - 2 + chosen : 255;
}

// Keep a vector at `place` of a cache. SCALED: fp8 with a scale of its own (keys and values).
template <int KIND, bool SCALED>
__device__ __forceinline__ void put_vector(const float (&x)[4], int lane, u8* numbers,
                                           void* scales, long place) {
    if (KIND == BF16) {
        u16* out = reinterpret_cast<u16*>(numbers) + place * DIM + lane;
#pragma unroll
        for (int j = 0; j < 4; j++) out[j * MX_GROUP] = x[j] == x[j] ? to_bf16(x[j]) : 0x7fc0;
    } else if (KIND == FP8) {
        float scale = 1.0f;
        if (SCALED) {
            const float most = max_nan(max_nan(fabsf(x[0]), fabsf(x[1])),
                                       max_nan(fabsf(x[2]), fabsf(x[3])));
            const float kept = __fdiv_rn(warp_max_nan(most), 448.0f);
            if (lane == 0) static_cast<float*>(scales)[place] = kept;
            scale = kept == 0.0f ? 1.0f : kept;
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            numbers[place * DIM + j * MX_GROUP + lane] =
                to_e4m3x2(SCALED ? __fdiv_rn(x[j], scale) : x[j], 0.0f);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
            put_mxfp4_group(x[j], lane, numbers + place * (DIM / 2) + j * (MX_GROUP / 2),
                            static_cast<u8*>(scales) + place * 4 + j);
    }
}

// ---- reading keys: of a token, lane q = lane % 4 of a quad has 32 of its 128 numbers -----------

template <int KIND>
struct Words {
    static constexpr int COUNT = KIND == BF16 ? 16 : KIND == FP8 ? 8 : 4;
};

// Where number 32 j + lane of a vector is met: as element e (0 to 3: two registers of two) of quad
// lane q in MMA number i of 8. A quad's loads of 16 bytes are contiguous; an mxfp4 lane has one
// scale a token. Lane and j stand apart, so that an address is one sum and a constant.
struct Meeting {
    int i, q, e;
};
template <int KIND>
__device__ __forceinline__ Meeting meeting_of(int j, int lane) {
    if (KIND == BF16) return {2 * j + lane % 8 / 4, lane / 8, lane % 4};
    if (KIND == FP8) return {j / 2 * 4 + lane % 16 / 4, j % 2 * 2 + lane / 16, lane % 4};
    return {lane / 8 * 2 + lane % 4 / 2, j, lane % 2 * 2 + lane % 8 / 4};
}

template <int KIND>
__device__ __forceinline__ constexpr int bytes_of_token() {
    return KIND == BF16 ? 2 * DIM : KIND == FP8 ? DIM : DIM / 2;
}

// Load a lane's words of a token whose numbers are at `token`, from L2: this layer wrote some.
template <int KIND>
__device__ __forceinline__ void load_words(u32 (&words)[Words<KIND>::COUNT], const u8* token) {
#pragma unroll
    for (int c = 0; c < Words<KIND>::COUNT / 4; c++) {
        const uint4 v = load_l2((const void*)(token + 64 * c + 16 * (lane_id() % 4)));
        words[4 * c] = v.x, words[4 * c + 1] = v.y, words[4 * c + 2] = v.z, words[4 * c + 3] = v.w;
    }
}

// The factor of mxfp4 operands as bf16: 2^(scale - 64), NaN for NaN.
__device__ __forceinline__ u32 mxfp4_factor(u32 scale) {
    return scale == 255 ? 0x7fc0u : min(scale + 63u, 254u) << 7;
}

// Numbers i and i + 4 of the eight codes in a word, as bf16, by the factors of both.
__device__ __forceinline__ u32 mxfp4_pair(u32 word, int i, u32 factors) {
    const u32 sign = word << (12 - 4 * i);
    const u32 size = i < 2 ? word << (6 - 4 * i) : word >> (4 * i - 6);
    return times_bf16x2((sign & 0x80008000u) | (size & 0x01c001c0u), factors);
}

// fp8: every other operand is made with integer instructions, which run beside the few conversions of
// a clock. A code's seven bits under its sign, moved to where f16 has them, are 2^-8 of the number
// (subnormals too), so sums of such operands are kept apart. NaN becomes 480: a vector of NaN shows in
// its scale or in the other operands.
template <int KIND>
constexpr float BITS_BACK = KIND == FP8 ? 256.0f : 1.0f;

// The codes in the upper bytes of both halves as f16 times 2^-8.
__device__ __forceinline__ u32 upper_codes_to_f16x2(u32 codes) {
    return (codes & 0x80008000u) | (codes >> 1 & 0x3f803f80u);
}

// The two operand registers of MMA number i, a constant once loops are unrolled; where i is odd they
// want BITS_BACK.
template <int KIND>
__device__ __forceinline__ void operand(const u32 (&words)[Words<KIND>::COUNT], u32 factors, int i,
                                        u32& first, u32& second) {
    if constexpr (KIND == BF16) {
        first = words[2 * i], second = words[2 * i + 1];
    } else if constexpr (KIND == FP8) {
        if (i % 2) {
            first = upper_codes_to_f16x2(__byte_perm(words[i], 0, 0x1404));
            second = upper_codes_to_f16x2(__byte_perm(words[i], 0, 0x3424));
        } else {
            first = e4m3_to_f16x2(words[i]), second = e4m3_to_f16x2(words[i] >> 16);
        }
    } else {
        first = mxfp4_pair(words[i / 2], 2 * (i % 2), factors);
        second = mxfp4_pair(words[i / 2], 2 * (i % 2) + 1, factors);
    }
}
