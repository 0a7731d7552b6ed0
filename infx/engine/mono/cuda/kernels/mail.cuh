// Words that say themselves that they are there: EMPTY before, which no result is. A block that waits for
// them needs no barrier, whose arrival waits for all that the block wrote and whose end is one trip more.
#pragma once
#include "common.cuh"
#include "sync.cuh"

constexpr u32 EMPTY = 0xffffffffu;

// Up to so many rows what `up` and the router leave are such words; scores where rows are alone, in attn_mono.cuh.
// At 16 that lost 0 to 1 us.
constexpr int MAIL_ROWS = 8;
constexpr bool BY_MAIL = !DENSE_MLP && ROWS <= MAIL_ROWS;

__device__ __forceinline__ u32 most_of(uint4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }

// Look again at what is missing of `v`, until nothing is; `from(i)` is where the i-th lies. A lane's own work; `stage`
// names the wait in the record.
template <int N, class From>
__device__ __forceinline__ void await_mail(const LayerArgs& a, uint4 (&v)[N], int stage, const From& from) {
    u32 most = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) most = max(most, most_of(v[i]));
    if (most != EMPTY) return;
    const long long start = clock64();
#pragma unroll 1
    for (u32 polls = 1; most == EMPTY; ++polls) {
        most = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (most_of(v[i]) == EMPTY) v[i] = load_mail(from(i));
            most = max(most, most_of(v[i]));
        }
        if (!(polls & 255) && in_vain(a.give_up, stage, most, start)) break;
    }
}

__device__ __forceinline__ void empty_words(void* p, int bytes) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < bytes / 16; i += BLOCKS * THREADS)
        ((uint4*)p)[i] = make_uint4(EMPTY, EMPTY, EMPTY, EMPTY);
}
// Behind the last layer's end, before this one's first barrier.
__device__ __forceinline__ void empty_mail(const LayerArgs& a) {
    if (!BY_MAIL) return;
    empty_words(a.mids, ROWS * SLOTS * EXPERT_SIZE * 2);
    empty_words(a.logit_sums, ROUTER_PARTS * ROWS * EXPERTS * 4);
}
