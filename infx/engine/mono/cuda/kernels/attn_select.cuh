// The choice of blocks, exact: a block is chosen when fewer than 16 others stand before it.
//
// A key is a score in an order of integers, then the number of the block, lower ones first: no two
// keys are equal, and a rank is a count of larger keys. Up to 128 blocks (16K tokens) all are
// counted against all. Above, slices of 8 blocks hand in their best; what is below the 16th of
// those is below 16 blocks, so at most 15 whole slices and one block are left to be counted (121
// blocks; some 20 where scores are spread evenly). Who is left is a set, and ranks do not depend on
// where in the list a key stands.
#pragma once
#include "attn_rows.cuh"

constexpr int COUNTED = 128, SLICE = 8;
static_assert(REACH_PAGES <= 2 * THREADS && REACH_PAGES <= SLICE * COUNTED, "");
struct SelectShared {
    u64 keys[COUNTED];  // 0 behind the last one
    u64 best[COUNTED];  // of each slice
    u64 least;          // the 16th of those
    int left;
    alignas(16) u32 chosen[32];  // a bit a block
    int pages[REACH_PAGES];  // the row's table
};

// What may be there before scores are: the row's table of pages. No other thread needs it at once.
__device__ __forceinline__ void fetch_pages(const LayerArgs& a, int row, int own,
                                            SelectShared& shared) {
    const int t = threadIdx.x;
    const int* pages = a.pages + (long)row * a.page_stride + t;
    if (t <= own) copy_async_4(&shared.pages[t], pages, true);
    if (t + THREADS <= own) copy_async_4(&shared.pages[t + THREADS], pages + THREADS, true);
    if (t < COUNTED) shared.keys[t] = 0;
    // Up to 16 blocks are chosen unseen.
    if (t < 32) shared.chosen[t] = t == 0 && own < TOPK_BLOCKS ? (2u << own) - 1 : 0;
    if (t == 0) shared.left = 0;
}

__device__ __forceinline__ u64 key_of(float score, int block) {
    if (score != score) score = minus_infinity();
    if (score == 0.0f) score = 0.0f;  // -0 and 0 are one score
    const u32 bits = __float_as_uint(score);
    const u32 ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (u64)ordered << 32 | (0xffffffffu - block);
}

// How many of `count` keys, zeros up to a multiple of 16, are larger than `key`: four threads a
// key.
__device__ __forceinline__ int larger(const u64* keys, int count, u64 key) {
    int before = 0;
#pragma unroll 1
    for (int j = threadIdx.x % 4; j < count; j += 16)
#pragma unroll
        for (int n = 0; n < 16; n += 4) before += keys[j + n] > key;
    before += __shfl_xor_sync(ALL_LANES, before, 1);
    return before + __shfl_xor_sync(ALL_LANES, before, 2);
}

__device__ __forceinline__ u64 best_of_slice(u64 key) {
#pragma unroll
    for (int far = 1; far < SLICE; far *= 2) {
        const u64 other = __shfl_xor_sync(ALL_LANES, key, far);
        key = other > key ? other : key;
    }
    return key;
}

// Leave in shared.keys what is not behind 16 others for sure; return how many. `low` and `high` are
// the thread's keys.
__device__ __forceinline__ int leave_best(SelectShared& shared, u64 low, u64 high) {
    const int t = threadIdx.x;
    const u64 best = best_of_slice(low), later = best_of_slice(high);
    if (t % SLICE == 0) {
        shared.best[t / SLICE] = best;
        shared.best[COUNTED / 2 + t / SLICE] = later;
    }
    __syncthreads();
    const u64 own = shared.best[t / 4];
    if (larger(shared.best, COUNTED, own) == TOPK_BLOCKS - 1 && t % 4 == 0) shared.least = own;
    __syncthreads();
    const u64 least = shared.least;
    if (low >= least) shared.keys[atomicAdd(&shared.left, 1)] = low;
    if (high >= least) shared.keys[atomicAdd(&shared.left, 1)] = high;
    __syncthreads();
    return shared.left;
}

// The thread's scores of a row: of blocks t and t + THREADS. `awaited`: they may not be there yet.
__device__ __forceinline__ float2 load_scores(const LayerArgs& a, int row, int own, bool awaited) {
    const float* scores = a.scores + (long)row * REACH_PAGES + threadIdx.x;
    float2 x = {0, 0};
    if (own < TOPK_BLOCKS) return x;
    if (threadIdx.x < own) x.x = awaited ? await_word(a, scores) : load_l2_one(scores);
    if (threadIdx.x + THREADS < own)
        x.y = awaited ? await_word(a, scores + THREADS) : load_l2_one(scores + THREADS);
    return x;
}

// A block's key: the row's own block is chosen in any case, what is behind it has none.
__device__ __forceinline__ u64 key_of(float score, int block, int own) {
    return block > own ? 0 : key_of(block == own ? -minus_infinity() : score, block);
}

// Bits 0, 4, ... 28 of a word as bits 0, 1, ... 7.
__device__ __forceinline__ u32 every_fourth(u32 word) {
    word &= 0x11111111u;
    word = (word | word >> 3) & 0x03030303u;
    word = (word | word >> 6) & 0x000f000fu;
    return (word | word >> 12) & 0xff;
}

// Mark the blocks that `row` attends to. All threads call it, behind fetch_pages.
__device__ __forceinline__ void choose_blocks(float2 scores, int own, SelectShared& shared) {
    const int t = threadIdx.x, count = own + 1;
    if (count > TOPK_BLOCKS) {
        const u64 low = key_of(scores.x, t, own);
        int left = count;
        if (count <= COUNTED) {
            if (t < COUNTED) shared.keys[t] = low;
            __syncthreads();
        } else {
            left = leave_best(shared, low, key_of(scores.y, t + THREADS, own));
        }
        const u64 key = shared.keys[t / 4];
        const u32 block = 0xffffffffu - (u32)key;
        const bool chosen = larger(shared.keys, left, key) < TOPK_BLOCKS && t / 4 < left;
        if (count <= COUNTED) {
            // Keys stand in the order of blocks: a warp's eight are a byte.
            const u32 eight = every_fourth(__ballot_sync(ALL_LANES, chosen));
            if (t % 32 == 0) reinterpret_cast<u8*>(shared.chosen)[t / 32] = eight;
        } else if (chosen && t % 4 == 0) {
            atomicOr(&shared.chosen[block / 32], 1u << block % 32);
        }
    }
    copies_done();  // of the pages
    __syncthreads();
}

// The number of the set bit in `bits` before which `k` others stand; -1: there is none.
__device__ __forceinline__ int place_of(u32 bits, int k) {
    const u32 own = 1u << lane_id();
    return __ffs(__ballot_sync(ALL_LANES, (bits & own) && __popc(bits & (own - 1)) == k)) - 1;
}

// As `chosen_pair` where no more than COUNTED blocks are: four words, which all lanes look at.
__device__ __forceinline__ int2 chosen_pair_of_few(const SelectShared& shared, int k) {
    const uint4 v = *(const uint4*)shared.chosen;
    const u32 words[4] = {v.x, v.y, v.z, v.w};
    int found[2];
#pragma unroll
    for (int n = 0; n < 2; n++) {
        int before = 0, word = 0, skipped = 0;
        u32 bits = words[0];
#pragma unroll
        for (int w = 0; w < 3; w++) {
            before += __popc(words[w]);
            if (before <= k + n) bits = words[w + 1], word = w + 1, skipped = before;
        }
        const int place = place_of(bits, k + n - skipped);
        found[n] = place < 0 ? -1 : 32 * word + place;
    }
    return make_int2(found[0], found[1]);
}

// The chosen blocks number k and k + 1, ascending; -1 where there are fewer. A warp's work: first a
// lane has the bits of 32 blocks, then each lane one bit of the word that has the block.
__device__ __forceinline__ int2 chosen_pair(const SelectShared& shared, int k, int own) {
    if (own < COUNTED) return chosen_pair_of_few(shared, k);
    const int lane = lane_id();
    const u32 word = shared.chosen[lane];
    int end = __popc(word);
#pragma unroll
    for (int far = 1; far < 32; far *= 2) {
        const int other = __shfl_up_sync(ALL_LANES, end, far);
        if (lane >= far) end += other;
    }
    int found[2];
#pragma unroll
    for (int n = 0; n < 2; n++) {
        const int from = __ffs(__ballot_sync(ALL_LANES, end > k + n)) - 1;
        const u32 bits = __shfl_sync(ALL_LANES, word, from & 31);
        const int before = __shfl_sync(ALL_LANES, end, from & 31) - __popc(bits);
        const int place = place_of(bits, k + n - before);
        found[n] = from < 0 ? -1 : 32 * from + place;
    }
    return make_int2(found[0], found[1]);
}
