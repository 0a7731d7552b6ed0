// Hand-offs between the stages of one persistent kernel: arrive, prefetch, wait.
//
// One word for all blocks. An arrival adds 1, block 0's adds 2^31 - (BLOCKS - 1): when all are there
// the top bit has flipped and the rest is as before, so the word needs no reset and no epoch, and a
// replayed graph goes on where the last replay ended. Arrive is the one place that publishes what
// the block wrote. Wait is bounded: after GIVE_UP_CYCLES it records who waited where, and every
// later wait of every block returns at once, so a kernel with a lost arrival ends (wrongly, and
// the record says so) instead of hanging.
#pragma once
#include "args.cuh"

constexpr long long GIVE_UP_CYCLES = 400000000;  // about 0.2 s

// Which wait gave up, in its record: one behind a stage, or one for a word of another block's scores.
enum Wait { AFTER_QKV = 1, AFTER_SCORES, AFTER_ATTENTION, AFTER_O, AFTER_ROUTER, AFTER_UP, FOR_SCORE, FOR_LOGITS, FOR_MIDS };

__device__ __forceinline__ u32 load_acquire(const u32* p) {
    u32 v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Publish what the block wrote. All threads call it; the token is good in thread 0.
__device__ __forceinline__ u32 grid_arrive(const LayerArgs& a) {
    u32 token = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 step = blockIdx.x == 0 ? 0x80000000u - (BLOCKS - 1) : 1u;
        asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;"
                     : "=r"(token) : "l"(a.barrier), "r"(step) : "memory");
    }
    return token;
}

// Return whether a wait since `start` is over in vain: the first to say so is recorded. `stage` names the wait.
static __device__ __noinline__ bool in_vain(u32* give_up, int stage, u32 seen, long long start) {
    if (*(volatile u32*)give_up) return true;
    if (clock64() - start <= GIVE_UP_CYCLES) return false;
    if (atomicCAS(give_up, 0u, 1u) == 0u) give_up[1] = stage, give_up[2] = blockIdx.x, give_up[3] = seen;
    return true;
}

// Return when all blocks have arrived. All threads call it. `stage` names the wait in the record.
__device__ __forceinline__ void grid_wait(const LayerArgs& a, u32 token, int stage) {
    if (threadIdx.x == 0) {
        long long start = clock64();
        u32 seen, polls = 0;
        while (!(((seen = load_acquire(a.barrier)) ^ token) >> 31))
            if (!(++polls & 255) && in_vain(a.give_up, stage, seen, start)) break;
    }
    __syncthreads();
}
