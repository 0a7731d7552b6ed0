// The mono arm of layers with a dense MLP: LAYER_KIND says whether they choose blocks.
#include "mono_dense.cuh"

extern __shared__ __align__(128) char smem[];

#if LAYER_KIND == DENSE
#define NAME mono_dense
#else
#define NAME mono_sparse_dense
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME(const __grid_constant__ LayerArgs a) {
    Stream s;
    s.open(smem);
    run_dense_layer(a, s, smem);
}
