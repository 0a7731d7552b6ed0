// The mono arm: a layer inside one persistent kernel. Between two stages a block arrives, asks for
// the weights of what it does next, works on what it already may, and waits.
#pragma once
#include "attn_mono.cuh"
#include "down.cuh"
#include "up.cuh"

// Weights of the next stage are asked for behind the arrival, whose release waits for what is under way;
// only o's (attn_mono.cuh) and the shared expert's first piece go ahead of it, where memory has nothing else
// to do. And what a stage waits for first is asked for before what it needs later: memory answers in order.
// `behind_last` waits for the layer before.
template <class Wait>
__device__ __forceinline__ void run_layer(const LayerArgs& a, Stream& s, Places& places, const Wait& behind_last, char* smem) {
    ask_qkv(a, s);
    prepare_attention(a);
    behind_last();
    run_qkv(a, s, smem);
    empty_totals(a);
    empty_counts(a);
    u32 token = attend(a, s, smem);
    const OutputAhead known(a);
    grid_wait(a, token, AFTER_ATTENTION);

    run_o(a, s, known, smem);
    token = grid_arrive(a);
    PieceColumns x;
    RouteAhead routing;
#if LOGITS_IN_O
    fill_up_shared(a, s);
    if (warp_id() == WARPS - 1) deal_live(a, deal_of(smem));
    mark(a, 29);
    grid_wait(a, token, AFTER_O);
    routing.fetch(a);
    load_up_shared(a, x, smem);
#else
    int router = 0;
    fill_router(a, s, router);
    mark(a, 14);
    grid_wait(a, token, AFTER_O);

    run_router(a, s, smem, [&] { fill_up_shared(a, s); });
    token = grid_arrive(a);
    mark(a, 29);
    deal_shared(a, smem);
    load_up_shared(a, x, smem);
    grid_wait(a, token, AFTER_ROUTER);
#endif

    mark(a, 28);
    deal_experts(a, routing, smem);
    mark(a, 32);
    Ahead ahead(smem);
    ask_up(a, ahead, smem);
    const Deal& deal = deal_of(smem);
    UpFeed up(a, deal, s);
    up.fill(a, deal, s);
#if FOLLOW
    run_up(a, s, places, x, ahead, up, Counted(), smem);
    __syncthreads();  // down's sums lie where up's places were
#else
    run_up(a, s, places, x, ahead, up, Uncounted(), smem);
    token = grid_arrive(a);
#endif
    DownFeed down(a, deal, s);
    down.fill(a, deal, s);
    Output outputs[OUT_OUTPUTS];
    fetch_outputs(a, a.mid, outputs);
    mark(a, 36);
#if FOLLOW
    run_down(a, s, down, outputs, Following(), smem);
#else
    grid_wait(a, token, AFTER_UP);

    run_down(a, s, down, outputs, Behind(), smem);
#endif
}
