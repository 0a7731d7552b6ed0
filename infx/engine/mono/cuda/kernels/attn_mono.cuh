// The attention half inside of mono: from the fused projection's sums to what the output projection
// reads.
//
// Where rows are alone (one of a request each, as without drafts) no barrier stands between scores
// and split. A score says itself that it is there: words are EMPTY before, which no score is. Split
// makes the row's queries itself, and its key and value where they are among the task's keys, while
// the scores are on their way. So nothing but the scores comes from other blocks, and a mailbox costs
// one trip through L2 where a barrier and the loads behind it cost three.
//
// The output projection's weights, 98 KB a block, fill the queues of L2 for 3 us: what anybody reads
// meanwhile comes that much later. Blocks with a split task ask for them when their keys and values
// are there, the others a slot at a time.
//
// Split tasks begin at the last block, score tasks at the first: at few rows they are not the same
// blocks. A block walks its score tasks before it waits for anybody's scores, so no wait is for ever.
#pragma once
#include "attn.cuh"
#include "output.cuh"

constexpr int DIRECT_ROWS = 2;  // up to so many rows split waits for scores themselves: at 16 that lost 1 us
constexpr int O_PAUSE = 1000;   // cycles between two slots of o's weights that a block without a split task asks for

// What attention wants of a launch before its projection is done: mailboxes are emptied, what the step
// says comes close. Whoever writes a mailbox waits for all blocks first. A dependent launch empties none
// that the layer before still reads: BLOCKS are as many as SMs and a block fills one, so the first that
// runs has the place of one that ended, and all of that layer arrived behind `up` before.
__device__ __forceinline__ void prepare_attention(const LayerArgs& a) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; ROWS <= DIRECT_ROWS && i < ROWS * REACH_PAGES; i += BLOCKS * THREADS)
        reinterpret_cast<u32*>(a.scores)[i] = EMPTY;
    constexpr int LINE_INTS = 32;
    const int row = warp_id(), lane = lane_id();
    if (row < ROWS && lane * LINE_INTS < a.page_stride) touch(a.pages + (long)row * a.page_stride + lane * LINE_INTS);
    if (row == WARPS - 1 && lane < 3) touch(lane == 0 ? a.batch_ids : lane == 1 ? a.positions : a.slots);
}

__device__ __forceinline__ void pause(int cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}

// Ask for what is left of the output projection's weights; `slowly`: a slot at a time.
__device__ __forceinline__ void fill_rest_of_o(const LayerArgs& a, Stream& s, int asked, bool slowly) {
#pragma unroll 1
    for (int slot = 0; slot < OUT_TASKS && asked < out_tiles_of_block(); slot++) {
        if (slowly) pause(O_PAUSE);
        fill_o(a, s, asked, slowly ? 1 : OUT_TASKS);
    }
}

// Scores, and what comes between them and split; return how split may begin.
__device__ __forceinline__ Split run_scores(const LayerArgs& a, ScoreAhead& ahead, bool direct, char* smem) {
    stage_scores(a, ahead, smem, !direct);
    if (direct) {
        __syncthreads();  // split's shared memory is that of scores
        return DIRECT;
    }
    grid_wait(a, grid_arrive(a), AFTER_SCORES);
    mark(a, 50);
    return STAGED_BEFORE;
}

// Return the token of the last arrival: whoever reads attention's output waits for it.
__device__ __forceinline__ u32 attend(const LayerArgs& a, Stream& s, char* smem) {
    const u32 token = grid_arrive(a);
    ScoreAhead ahead;
    fetch_scores(a, ahead);
    mark(a, 44);
    const StepRows& rows = ahead.rows;
    const int task = BLOCKS - 1 - (int)blockIdx.x;
    const bool splits = task < SPLIT_TASKS, direct = ROWS <= DIRECT_ROWS && rows_alone(rows);
    int asked = 0;
    grid_wait(a, token, AFTER_QKV);
    mark(a, 45);
    const Split how = run_scores(a, ahead, direct, smem);
    if (splits) {
        fetch_split(a, rows, task, smem);
        stage_split(a, rows, task, smem, how, [&] { fill_o(a, s, asked); });
    }
    if (splits && !FOLDED) finish_task(a, rows, task, smem);
    mark(a, 59);
    const u32 last = grid_arrive(a);
    fill_rest_of_o(a, s, asked, !splits);
    return last;
}
