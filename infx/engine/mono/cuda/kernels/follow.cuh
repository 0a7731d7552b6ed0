// Down behind up by experts, inside one kernel: an expert's numbers are there once all tasks of `up` that
// make them were counted, so a block that is done with its share of `up` waits for no block that is not.
#pragma once
#include "experts.cuh"
#include "sync.cuh"

#ifndef FOLLOW
#define FOLLOW 0  // 1 (not measured yet): mono has no barrier between up and down
#endif

constexpr int UP_TILES = EXPERT_SIZE / 8;  // 96 tasks an expert and 8 rows: 8 gates, then their 8 ups

// The tasks of `up` of the chosen experts that a block is known to have before: all but DEALT a block.
__device__ __forceinline__ int fixed_tasks(int chosen) { return max(0, chosen * UP_TILES - DEALT * BLOCKS); }

// The order that down takes experts in: the shared one first, then the union.
__device__ __forceinline__ int turn_of(int index) { return index == MOST_CHOSEN ? 0 : index + 1; }

// All counts begin at nothing: before any block has routed, after all of the last layer.
__device__ __forceinline__ void empty_counts(const LayerArgs& a) {
    if ((FOLLOW || DEALT) && block_id() == 0 && thread_id() <= MOST_CHOSEN + 1) a.up_counts[thread_id()] = 0;
}

// What `up` does once a warp has written a task's numbers, and what `down` does before it reads an expert's.
struct Counted {
    __device__ __forceinline__ void operator()(const LayerArgs& a, int index) const {
        if (lane_id() == 0) count_at_l2(a.up_counts + turn_of(index));
    }
};
struct Uncounted {
    __device__ __forceinline__ void operator()(const LayerArgs&, int) const {}
};

struct Following {
    int known;  // the experts of so many first turns are there
    __device__ __forceinline__ Following() : known(0) {}

    // Return whether the expert is there by now. All lanes call it.
    __device__ __forceinline__ bool there(const LayerArgs& a, const Deal& deal, int index) {
        if (turn_of(index) < known) return true;
        int turn = known + lane_id();
        bool done = turn <= deal.chosen;
        if (done) {
            u32 wanted = UP_TILES * ((deal.count[turn ? turn - 1 : MOST_CHOSEN] + 7) / 8);
            done = load_acquire(a.up_counts + turn) >= wanted;
        }
        u32 missing = ~__ballot_sync(~0u, done);
        known += missing ? __ffs(missing) - 1 : 32;
        __syncwarp();
        return turn_of(index) < known;
    }
    __device__ __forceinline__ void await(const LayerArgs& a, const Deal& deal, int index) {
        if (there(a, deal, index)) return;
        long long start = clock64();
        for (u32 polls = 1; !there(a, deal, index); ++polls, relax()) {
            bool stop = !(polls & 255) && lane_id() == 0 && in_vain(a.give_up, FOR_EXPERT, known, start);
            if (__any_sync(~0u, stop)) return;
        }
    }
};
struct Behind {  // a barrier, or the end of a kernel
    __device__ __forceinline__ bool there(const LayerArgs&, const Deal&, int) const { return true; }
    __device__ __forceinline__ void await(const LayerArgs&, const Deal&, int) const {}
};
