// Attention over all keys as a kernel of its own: the same stage as in mono.
#include "attn_full.cuh"

extern __shared__ __align__(128) char smem[];

extern "C" __global__ void __launch_bounds__(THREADS, 1) unfused_full(const __grid_constant__ LayerArgs a) {
    FullAhead ahead;
    fetch_full(a, ahead, smem);
    after_previous();
    stage_full(a, ahead, smem);
}
