// The mono arm: a layer inside one persistent kernel. Between two stages a block arrives, asks for
// the weights of what it does next, works on what it already may, and waits.
#pragma once
#include "mxfp4.cuh"
#include "sync.cuh"

// Which wait gave up, in its record.
enum Wait { AFTER_QKV = 1, AFTER_SCORES, AFTER_ATTENTION, AFTER_O, AFTER_ROUTER, AFTER_UP };

#if ATTENTION
#include "attn_mono.cuh"
#endif

// Nothing of the next stage is asked for before the arrival: its release waits for what is under way.
__device__ __forceinline__ void run_layer(const LayerArgs& a, Stream& s, char* smem) {
    int asked = 0;
#if ATTENTION
    prepare_attention(a);
#endif
    Qkv().fill(a, s, asked);
    run_qkv(a, s, asked, smem);
#if ATTENTION
    u32 token = attend(a, s, smem);
#else
    u32 token = grid_arrive(a);
    int filled = 0;
    fill_o(a, s, filled);
#endif
    grid_wait(a, token, AFTER_ATTENTION);

    run_o(a, s, smem);
    token = grid_arrive(a);
    int router = 0, shared = 0;
    fill_router(a, s, router);
    fill_up_shared(a, s, shared);
    mark(a, 14);
    grid_wait(a, token, AFTER_O);

    run_router(a, s, smem);
    token = grid_arrive(a);
    mark(a, 29);
    deal_shared(a, smem);
    const Deal& deal = deal_of(smem);
    grid_wait(a, token, AFTER_ROUTER);

    mark(a, 28);
    deal_experts(a, smem);
    mark(a, 32);
    UpFeed up(a, deal);
    up.fill(a, deal, s);
    PieceColumns x;
    x.of = -1;
    // The shared expert's weights are there, the chosen ones' are on their way.
    run_up_shared(a, s, x, smem);
    up.fill(a, deal, s);
    run_up(a, s, x, up, smem);
    token = grid_arrive(a);
    DownFeed down(deal);
    down.fill(a, deal, s);
    mark(a, 36);
    grid_wait(a, token, AFTER_UP);

    run_down(a, s, down, smem);
}
