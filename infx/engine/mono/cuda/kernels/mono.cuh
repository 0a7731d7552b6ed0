// The mono arm: a layer inside one persistent kernel. Between two stages a block arrives, asks for
// the weights of what it does next, works on what it already may, and waits.
#pragma once
#include "attn_mono.cuh"
#include "down.cuh"
#include "up.cuh"

// Weights of the next stage are asked for behind the arrival, whose release waits for what is under way;
// only o's (attn_mono.cuh) and the shared expert's first piece go ahead of it, where memory has nothing else
// to do. And what a stage waits for first is asked for before what it needs later: memory answers in order.
// By mail (mail.cuh) nothing is released behind the router and behind up: down's weights follow up's at once.
__device__ __forceinline__ void run_layer(const LayerArgs& a, Stream& s, Places& places, char* smem) {
    ask_qkv(a, s);
    prepare_attention(a);
    after_previous();
    empty_mail(a);
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
    if (BY_MAIL) __syncthreads();
    else token = grid_arrive(a);
    mark(a, 29);
    deal_shared(a, smem);
    PieceColumns x;
    load_up_shared(a, x, smem);
    if (!BY_MAIL) grid_wait(a, token, AFTER_ROUTER);

    mark(a, 28);
    deal_experts<BY_MAIL>(a, smem);
    mark(a, 32);
    Ahead ahead(smem);
    ask_up(a, ahead, smem);
    const Deal& deal = deal_of(smem);
    UpFeed up(a, deal, s);
    up.fill(a, deal, s);
    DownFeed down(a, deal, s);
    if (BY_MAIL && !up.left) down.fill(a, deal, s);
    run_up(a, s, places, x, ahead, up, down, smem);
    if (BY_MAIL) __syncthreads();
    else token = grid_arrive(a);
    down.fill(a, deal, s);
    Output outputs[OUT_OUTPUTS];
    fetch_outputs(a, a.mid, outputs);
    mark(a, 36);
    if (!BY_MAIL) grid_wait(a, token, AFTER_UP);

    run_down<BY_MAIL>(a, s, down, outputs, smem);
}
