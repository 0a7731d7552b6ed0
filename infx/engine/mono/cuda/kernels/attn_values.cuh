// Values of a partition as operands of p v: what a lane has of 64 keys and 32 dimensions.
//
// fp8 and mxfp4 travel to shared memory 16 bytes at a time while keys are scored (a lane wants 4 or
// 2 bytes of each of 16 keys: straight from memory that is 16 requests for a request's worth of
// lines). bf16 would not fit, and goes straight to registers.
#pragma once
#include "attn_cache.cuh"

constexpr int VALUE_BYTES = bytes_of_token<KV_KIND>(), PAGE_BYTES = BLOCK * VALUE_BYTES;
constexpr int VALUE_STRIDE = VALUE_BYTES + 16;  // the four lanes of a quad read other banks
constexpr bool STAGED = KV_KIND != BF16;
struct ValueShared {
    u8 numbers[STAGED ? PARTITION : 1][VALUE_STRIDE];
    u8 scales[KV_KIND == MXFP4 ? PARTITION : 1][4];
};

// Keys 16 step + 2q, + 1, + 8, + 9 of the warp's 64, as a matrix instruction has them.
__device__ __forceinline__ int value_key(int step, int number) {
    return 64 * (warp_id() / 4) + 16 * step + lane_id() % 4 * 2 + number / 2 * 8 + number % 2;
}
// Dimensions first ... first + 3 are the lane's.
__device__ __forceinline__ int value_dim() { return 32 * (warp_id() % 4) + lane_id() / 4 * 4; }

// A lane's numbers of 16 keys where they are not staged.
struct Values {
    u32 words[STAGED ? 1 : 4][4][2];
};

// Ask for the values of the two pages; keys from `count` on are taken to be 0.
__device__ __forceinline__ void load_values(const LayerArgs& a, int2 pages, int count,
                                            ValueShared& shared, Values& values) {
    const u8* first = a.values + (long)pages.x * PAGE_BYTES;
    const u8* second = a.values + (long)pages.y * PAGE_BYTES;
    if constexpr (STAGED) {
        constexpr int CHUNKS = VALUE_BYTES / 16, ROUND = THREADS / CHUNKS;  // keys of a round
        const int own = threadIdx.x / CHUNKS, at = threadIdx.x % CHUNKS * 16;
#pragma unroll
        for (int key = 0; key < PARTITION; key += ROUND) {
            const u8* page = (key < BLOCK ? first : second) + key % BLOCK * VALUE_BYTES;
            copy_async_16(&shared.numbers[key + own][at], page + own * VALUE_BYTES + at,
                          key + own < count);
        }
        if (KV_KIND == MXFP4 && threadIdx.x < PARTITION) {
            const int key = threadIdx.x;
            const long place = (long)(key < BLOCK ? pages.x : pages.y) * BLOCK + key % BLOCK;
            copy_async_4(shared.scales[key], (const u8*)a.value_scales + place * 4, key < count);
        }
    } else {
        const u8* page = (warp_id() < 8 ? first : second) + 2 * value_dim();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int key = value_key(i / 4, i % 4);
            uint2 v = {0, 0};  // behind `count` its bytes may be anything, NaN too
            if (key < count) v = load_l2_u32x2(page + key % BLOCK * VALUE_BYTES);
            values.words[i / 4][i % 4][0] = v.x, values.words[i / 4][i % 4][1] = v.y;
        }
    }
}

// The operands of a step: [dim][half], two keys each; odd dimensions want BITS_BACK.
__device__ __forceinline__ void value_operands(const ValueShared& shared, const Values& values,
                                               int step, u32 (&operands)[4][2]) {
    u32 words[4][2], factors[4] = {};
#pragma unroll
    for (int n = 0; n < 4; n++) {
        const int key = value_key(step, n);
        if constexpr (KV_KIND == BF16) {
            words[n][0] = values.words[step][n][0], words[n][1] = values.words[step][n][1];
        } else if constexpr (KV_KIND == FP8) {
            words[n][0] = *(const u32*)&shared.numbers[key][value_dim()];
        } else {
            words[n][0] = *(const u16*)&shared.numbers[key][value_dim() / 2];
            factors[n] = mxfp4_factor(shared.scales[key][value_dim() / 32]);
        }
    }
#pragma unroll
    for (int dim = 0; dim < 4; dim++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32(&x)[2] = words[2 * half], (&y)[2] = words[2 * half + 1];
            u32& out = operands[dim][half];
            if constexpr (KV_KIND == BF16)
                out = __byte_perm(x[dim / 2], y[dim / 2], dim % 2 ? 0x7632 : 0x5410);
            else if constexpr (KV_KIND == FP8)
                out = dim % 2 ? upper_codes_to_f16x2(__byte_perm(x[0], y[0], (dim | (dim + 4) << 8) << 4))
                              : e4m3_to_f16x2(__byte_perm(x[0], y[0], dim | (dim + 4) << 4));
            else
                out = mxfp4_pair(x[0] | y[0] << 16, dim,
                                 factors[2 * half] | factors[2 * half + 1] << 16);
        }
}
