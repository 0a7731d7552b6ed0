// The dense MLP as kernels of their own: the same stages as in mono.
#include "dense.cuh"

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS, 1) name(const __grid_constant__ LayerArgs a)

extern __shared__ __align__(128) char smem[];

KERNEL(unfused_dense_up) {
    Stream s;
    s.open(smem);
    int next = 0;
    fill_dense_up(a, s, next, DENSE_AHEAD);
    after_previous();
    run_dense_up(a, s, next, smem);
}

KERNEL(unfused_dense_down) {
    Stream s;
    s.open(smem);
    int next = 0;
    fill_dense_down(a, s, next, DENSE_AHEAD);
    after_previous();
    run_dense_down(a, s, next, DownAhead(a), smem);
}
