// The mono arm: a layer inside one persistent kernel. Between two stages a block arrives, asks for
// the weights of what it does next, works on what it already may, and waits.
#pragma once
#include "down.cuh"
#include "sync.cuh"
#include "up.cuh"

// Which wait gave up, in its record.
enum Wait { AFTER_QKV = 1, AFTER_SCORES, AFTER_ATTENTION, AFTER_O, AFTER_ROUTER, AFTER_UP };

#if ATTENTION
#include "attn_mono.cuh"
#endif

// Nothing of the next stage is asked for before the arrival: its release waits for what is under way.
// And what a stage waits for first is asked for before what it needs later: the memory answers in order.
__device__ __forceinline__ void run_layer(const LayerArgs& a, Stream& s, Places& places, char* smem) {
    ask_qkv(a, s);
#if ATTENTION
    prepare_attention(a);
#endif
    after_previous();
    run_qkv(a, s, smem);
#if ATTENTION
    u32 token = attend(a, s, smem);
#else
    u32 token = grid_arrive(a);
    int filled = 0;
    fill_o(a, s, filled);
#endif
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
    DownFeed down(a, deal, s);
    down.fill(a, deal, s);
    Output outputs[OUT_OUTPUTS];
    fetch_outputs(a, a.mid, outputs);
    mark(a, 36);
    grid_wait(a, token, AFTER_UP);

    run_down(a, s, down, outputs, smem);
}
