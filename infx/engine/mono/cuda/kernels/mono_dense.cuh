// A layer with a dense MLP inside one persistent kernel: M3's and M3.1's first ones. Hand-offs are
// those of mono.cuh.
#pragma once
#include "dense.cuh"
#include "mono.cuh"
#if LAYER_KIND == DENSE
#include "attn_full.cuh"

// From the fused projection's sums to what the output projection reads, over all keys: the token of the
// last arrival.
__device__ __forceinline__ u32 attend_full(const LayerArgs& a, Stream& s, char* smem) {
    u32 token = grid_arrive(a);
    FullAhead ahead;
    fetch_full(a, ahead, smem);
    mark(a, 44);
    grid_wait(a, token, AFTER_QKV);
    const bool works = ahead.task < ahead.end;
    int asked = 0;
    // As in attn_mono.cuh: o's weights must not stand before what others read.
    stage_full(a, ahead, smem, [&] { fill_o(a, s, asked); });
    token = grid_arrive(a);
    fill_rest_of_o(a, s, asked, !works);
    return token;
}
#endif

__device__ __forceinline__ void run_dense_layer(const LayerArgs& a, Stream& s, char* smem) {
    ask_qkv(a, s);
#if LAYER_KIND == DENSE
    after_previous();
    run_qkv(a, s, smem);
    u32 token = attend_full(a, s, smem);
#else
    prepare_attention(a);
    after_previous();
    run_qkv(a, s, smem);
    u32 token = attend(a, s, smem);
#endif
    const OutputAhead known(a);
    grid_wait(a, token, AFTER_ATTENTION);

    run_o(a, s, known, smem);
    token = grid_arrive(a);
    int up = 0;
    fill_dense_up(a, s, up, DENSE_AHEAD);
    mark(a, 14);
    grid_wait(a, token, AFTER_O);

    run_dense_up(a, s, up, smem);
    token = grid_arrive(a);
    int down = 0;
    fill_dense_down(a, s, down, DENSE_AHEAD);
    const DownAhead own(a);
    mark(a, 36);
    grid_wait(a, token, AFTER_UP);

    run_dense_down(a, s, down, own, smem);
}
