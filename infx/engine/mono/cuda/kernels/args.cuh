// What every kernel of a layer gets, by value: addresses, all on the device. Regions are row-major.
// `infx/engine/mono/cuda/arguments.py` packs this struct field by field: keep both in one order.
#pragma once
#include "shape.cuh"

struct LayerArgs {
    // The step, int32. A pad has batch id -1: its row of every result is 0 and it reads no expert.
    const int* batch_ids;  // [ROWS]
    const int* positions;  // [ROWS]
    const int* slots;      // [ROWS] where the row's own token goes: page * BLOCK + token of the page
    const int* pages;      // [ROWS][page_stride] pages of the row's request
    const float* rotary;   // [ROWS][ROTARY] cosines of the 32 pairs, then sines

    // The residual stream, float32 [ROWS][HIDDEN].
    const float* stream_in;
    float* stream_out;

    // Norm weights, kept as 1 + w, float32.
    const float* attention_norm;  // [HIDDEN]
    const float* mlp_norm;        // [HIDDEN]
    const float* head_norm;       // [QKV_HEADS - 1][DIM]

    // Weights in the order in which warps read them (packing.py), scales of outputs float32.
    const u8* qkv;             // e4m3 [QKV_PARTS][warp][QKV / 16][1536 bytes]
    const float* qkv_scale;    // [QKV]
    const u8* o;               // e4m3 [warp][HIDDEN / 16][2048 bytes]
    const float* o_scale;      // [HIDDEN]
    const u8* router;          // bf16 [ROUTER_PARTS][EXPERTS / 16][warp][1536 bytes]
    const float* router_bias;  // [EXPERTS]
    const u8* up;              // mxfp4 [EXPERTS + 1][warp][96][3200 bytes], the shared one last
    const u8* down;            // mxfp4 [EXPERTS + 1][2][384][3200 bytes]

    // Caches: [page][token of the page][...], one kv head.
    u8* keys;
    u8* values;
    u8* index_keys;
    float* key_scales;    // fp8: [page][BLOCK]
    float* value_scales;  // fp8: [page][BLOCK]

    // Scratch, float32 unless said.
    float* qkv_sums;       // [QKV_PARTS][ROWS][QKV] of x (1 + w), before the norm's factor, scaled
    float* qkv_squares;    // [QKV_PARTS][ROWS] sums of x^2
    float* queries;        // [HEADS][ROWS][DIM] normed and turned
    float* scores;         // [ROWS][REACH_PAGES]
    int* chosen;           // [ROWS][TOPK_BLOCKS] ascending, -1: none
    float* partials;       // [ROWS][PARTITIONS][HEADS][DIM + 4]: a share, max, sum of p, weight (attn_split);
                           // over all keys: [ROWS][REACH_PARTITIONS + REACH_GROUPS] such (attn_full)
    float* merged;         // [HEADS][ROWS][DIM] as float32: what a judge looks at
    float* mid;            // [ROWS][HIDDEN] the stream after attention
    u16* mid_normed;       // bf16 [ROWS][HIDDEN]: mid (1 + w), before the norm's factor
    float* mid_squares;    // [OUT_BLOCKS][ROWS] sums of mid^2 of a block's tiles
    float* logit_sums;     // [ROUTER_PARTS][ROWS][EXPERTS] before the norm's factor
    u16* mids;             // bf16 [ROWS][SLOTS][EXPERT_SIZE] after the swiglu
    float* routing;        // [ROWS][2 TOPK] chosen experts, then their weights; -1: a pad
    u8* deal;              // a Deal (route.cuh): what the unfused `up` tells the unfused `down`

    // Hand-offs (sync.cuh): a barrier word, and what a wait that gave up says (0: none did).
    u32* barrier;
    u32* give_up;  // [4]: 1, wait, block, the word seen

    int page_stride;

    u8* index_scales;  // mxfp4: [page][BLOCK][4]; those of keys and values lie likewise
    u32* merge_counts;  // [ROWS] partitions of a row that are done; 0 before the first launch;
                        // over all keys: [ROWS][1 + REACH_GROUPS] groups, then each group's partitions
    long long* trace;  // [BLOCKS][MARKS] clocks, where a build is made with TRACE
    u16* attended;         // f16 [HEADS][ROWS][DIM]: merged, times a power of two a row and head
    float* attended_back;  // [HEADS][ROWS] its inverse

    // A dense MLP (dense.cuh) has `up` as e4m3 [warp][DENSE_TILES][6144 bytes], `down` as
    // e4m3 [warp][OUT_TILES][3072 bytes], `mids` as f16 [ROWS][DENSE_SIZE] times 1024, and
    // `mid_normed` as f16 times a power of two a row and tile of the stream.
    const float* up_scale;    // [2 DENSE_SIZE] by tile: of 8 gates, then of their 8 ups
    const float* down_scale;  // [HIDDEN]
    u8* mid_exponents;        // [ROWS][OUT_TILES] of the inverse of that power, as a float has it
};
