// Rows of a step: a lane of each warp holds one row, and where the tasks of its request begin.
//
// Rows of one request stand together; the first of them leads. Ids and positions are the step's:
// nothing writes them in a launch, so they may come through L1.
#pragma once
#include "attn_cache.cuh"

struct StepRows {
    int id;        // lane r: the batch id of row r, -1 for a pad and past the last row
    int position;  // lane r
    int slot;      // lane r: where its token goes
    int last;      // lane r: the last position of its request, where it leads one
    int chunks;    // lane r: pairs of pages of its request if it leads one, else 0
    int first;     // lane r: the first score task of its request
    int tasks;     // score tasks of the step
};

__device__ __forceinline__ StepRows step_rows(const LayerArgs& a) {
    const int lane = lane_id();
    StepRows s;
    s.id = lane < ROWS ? __ldg(a.batch_ids + lane) : -1;
    s.position = lane < ROWS ? __ldg(a.positions + lane) : 0;
    s.slot = lane < ROWS ? __ldg(a.slots + lane) : 0;
    const int before = __shfl_up_sync(ALL_LANES, s.id, 1);
    const bool leads = s.id >= 0 && (lane == 0 || before != s.id);
    // The leader gets the largest position of the rows behind it that are of its request.
    s.last = s.position;
#pragma unroll
    for (int far = 1; far < ROWS; far *= 2) {
        const int id = __shfl_down_sync(ALL_LANES, s.id, far);
        const int last = __shfl_down_sync(ALL_LANES, s.last, far);
        if (lane + far < 32 && id == s.id) s.last = max(s.last, last);
    }
    s.chunks = leads ? s.last / (2 * BLOCK) + 1 : 0;
    int end = s.chunks;
#pragma unroll
    for (int far = 1; far < ROWS; far *= 2) {
        const int other = __shfl_up_sync(ALL_LANES, end, far);
        if (lane >= far) end += other;
    }
    s.first = end - s.chunks;
    s.tasks = __shfl_sync(ALL_LANES, end, ROWS - 1);
    return s;
}

// Whether no two rows are of one request: then a row sees no token of the step but its own.
__device__ __forceinline__ bool rows_alone(const StepRows& s) {
    return ROWS == 1 || !__any_sync(ALL_LANES, s.id >= 0 && s.chunks == 0);
}

// The leader of the request that score task `task` belongs to, and its chunk.
__device__ __forceinline__ int leader_of(const StepRows& s, int task, int& chunk) {
    const int since = task - s.first;
    const int leader = __ffs(__ballot_sync(ALL_LANES, since >= 0 && since < s.chunks)) - 1;
    chunk = __shfl_sync(ALL_LANES, since, leader);
    return leader;
}

// Whether this block has one of the tasks first ... first + count - 1 of a stage.
__device__ __forceinline__ bool owns_some(int first, int count) {
    const int ahead = ((int)blockIdx.x - first % BLOCKS + BLOCKS) % BLOCKS;
    return ahead < count;
}
