// The attention half as kernels of their own: the same stages as in mono.
#include "attn.cuh"

extern __shared__ __align__(128) char smem[];

#define KERNEL(name)                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) \
        name(const __grid_constant__ LayerArgs a)

KERNEL(unfused_scores) {
    mark(a, 44);
    ScoreAhead ahead;
    fetch_scores(a, ahead);
    after_previous();
    stage_scores(a, ahead, smem);
}

// Split and merge as one kernel, and as two: where the output projection merges for itself split stands
// alone, and a check merges beside it what it compares.
KERNEL(unfused_attend) {
    const StepRows s = step_rows(a);
    fetch_split(a, s, blockIdx.x, smem);
    after_previous();
    stage_attend(a, s, blockIdx.x, smem);
}

KERNEL(unfused_split) {
    mark(a, 50);
    const StepRows s = step_rows(a);
    fetch_split(a, s, blockIdx.x, smem);
    after_previous();
    stage_split(a, s, blockIdx.x, smem);
}

KERNEL(unfused_merge) {
    after_previous();
    stage_merge(a, blockIdx.x);
}
