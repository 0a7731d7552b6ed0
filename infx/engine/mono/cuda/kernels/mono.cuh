// The mono arm: a layer inside one persistent kernel. Between two stages a block arrives, asks for
// the weights of what it does next, works on what it already may, and waits.
#pragma once
#include "down.cuh"
#include "sync.cuh"
#include "up.cuh"
#if ATTENTION
#include "attn.cuh"
#endif

// Which wait gave up, in its record.
enum Wait { AFTER_QKV = 1, AFTER_SCORES, AFTER_ATTENTION, AFTER_O, AFTER_ROUTER, AFTER_UP };

// The layer from the fused projection's sums to what the output projection reads: the token of the
// last arrival.
__device__ __forceinline__ u32 attend(const LayerArgs& a, Stream& s, char* smem) {
    int asked = 0;
    u32 token = grid_arrive(a);
#if ATTENTION
    ScoreAhead ahead;
    fetch_scores(a, ahead);
    mark(a, 4);
    grid_wait(a, token, AFTER_QKV);
    mark(a, 5);
    stage_scores(a, ahead, smem);
    mark(a, 6);
    token = grid_arrive(a);
    fetch_split(a, ahead.rows, blockIdx.x, smem);
    // What attention reads must not queue behind 98 KB of weights a block.
    if (blockIdx.x >= SPLIT_TASKS) fill_o(a, s, asked);
    grid_wait(a, token, AFTER_SCORES);
    mark(a, 7);
    if (blockIdx.x < SPLIT_TASKS) {
        if (ROWS <= FOLDED_ROWS) stage_split(a, ahead.rows, blockIdx.x, smem);
        else stage_attend(a, ahead.rows, blockIdx.x, smem);
    }
    mark(a, 8);
    token = grid_arrive(a);
#endif
    fill_o(a, s, asked);
    return token;
}

// Nothing of the next stage is asked for before the arrival: its release waits for what is under way.
// And what a stage waits for first is asked for before what it needs later: the memory answers in order.
__device__ __forceinline__ void run_layer(const LayerArgs& a, Stream& s, Places& places, char* smem) {
    run_qkv(a, s, smem);
    u32 token = attend(a, s, smem);
    const OutputAhead known(a);
    grid_wait(a, token, AFTER_ATTENTION);

    run_o(a, s, known, smem);
    token = grid_arrive(a);
    int router = 0;
    fill_router(a, s, router);
    mark(a, 14);
    grid_wait(a, token, AFTER_O);

    run_router(a, s, smem, [&] { fill_up_shared(a, s); });
    token = grid_arrive(a);
    mark(a, 29);
    deal_shared(a, smem);
    PieceColumns x;
    load_up_shared(a, x, smem);
    grid_wait(a, token, AFTER_ROUTER);

    mark(a, 28);
    deal_experts(a, smem);
    mark(a, 32);
    Ahead ahead(smem);
    ask_up(a, ahead, smem);
    const Deal& deal = deal_of(smem);
    UpFeed up(a, deal, s);
    up.fill(a, deal, s);
    run_up(a, s, places, x, ahead, up, smem);
    token = grid_arrive(a);
    DownFeed down(deal, s);
    down.fill(a, deal, s);
    Output outputs[OUT_OUTPUTS];
    fetch_outputs(a, a.mid, outputs);
    mark(a, 36);
    grid_wait(a, token, AFTER_UP);

    run_down(a, s, down, outputs, smem);
}
