// The unfused arm: a kernel a stage, the same device functions as mono's. Each asks for the weights that it
// knows of before it waits for the kernel before it, which is at once unless it was launched as a dependent.
//
// A dependent kernel may run before kernels ahead of it ended, but no kernel of a layer except `qkv` before
// the layer before has: there is a block of `qkv` for each SM, it fills it, and it ends behind its wait. So
// old tokens of caches (attn.cu, full.cu) and the residual stream (`o`) are read before a kernel's own wait.
#include "down.cuh"
#include "up.cuh"

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS, 1) name(const __grid_constant__ LayerArgs a)

extern __shared__ __align__(128) char smem[];

// `up` routes in every block; one tells `down` what it found.
__device__ __forceinline__ void store_deal(const LayerArgs& a, const Deal& deal) {
    for (int i = threadIdx.x; i < (int)sizeof(Deal) / 4; i += THREADS) ((u32*)a.deal)[i] = ((const u32*)&deal)[i];
}
__device__ __forceinline__ void load_deal(const LayerArgs& a, Deal& deal) {
    for (int i = threadIdx.x; i < (int)sizeof(Deal) / 4; i += THREADS) ((u32*)&deal)[i] = __ldcg((const u32*)a.deal + i);
}

KERNEL(unfused_qkv) {
    Stream s;
    s.open(smem);
    ask_qkv(a, s);
    after_previous();
    run_qkv(a, s, smem);
}

KERNEL(unfused_o) {
    Stream s;
    s.open(smem);
    int next = 0;
    fill_o(a, s, next);
    const OutputAhead known(a);
    after_previous();
    run_o(a, s, known, smem);
}

KERNEL(unfused_router) {
    Stream s;
    s.open(smem);
    int next = 0;
    fill_router(a, s, next);
    after_previous();
    run_router(a, s, smem, [] {});
}

KERNEL(unfused_up) {
    Stream s;
    s.open(smem);
    Places places;
    places.open(smem);
    fill_up_shared(a, s);
    after_previous();
    mark(a, 29);
    deal_shared(a, smem);
    PieceColumns x;
    load_up_shared(a, x, smem);
    deal_experts<false>(a, smem);
    mark(a, 32);
    Ahead ahead(smem);
    ask_up(a, ahead, smem);
    const Deal& deal = deal_of(smem);
    UpFeed feed(a, deal, s);
    feed.fill(a, deal, s);
    Feedless last;
    run_up(a, s, places, x, ahead, feed, last, smem);
    if (blockIdx.x == 0) store_deal(a, deal);
}

KERNEL(unfused_down) {
    Stream s;
    s.open(smem);
    Output outputs[OUT_OUTPUTS];
    after_previous();
    Deal& deal = deal_of(smem);
    load_deal(a, deal);
    fetch_outputs(a, a.mid, outputs);
    __syncthreads();
    DownFeed feed(a, deal, s);
    feed.fill(a, deal, s);
    run_down<false>(a, s, feed, outputs, smem);
}

// What a pure read of the same bytes takes: every warp of 264 blocks sums 16 bytes a lane.
extern "C" __global__ void __launch_bounds__(1024, 1) read_only(const u8* from, u64 bytes, u32* out) {
    u32 sum = 0;
    const uint4* p = (const uint4*)from;
    u64 count = bytes / 16, step = (u64)gridDim.x * blockDim.x, i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 7 * step < count; i += 8 * step) {
        uint4 v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] = load_once(p + i + j * step);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    for (; i < count; i += step) {
        uint4 v = load_once(p + i);
        sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x12345678u) out[0] = sum;
}
