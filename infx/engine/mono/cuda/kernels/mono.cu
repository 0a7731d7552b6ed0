#include "mono.cuh"

extern __shared__ __align__(128) char smem[];

extern "C" __global__ void __launch_bounds__(THREADS, 1) mono_layer(const __grid_constant__ LayerArgs a) {
    Stream s;
    s.open(smem);
    Places places;
    places.open(smem);
    run_layer(a, s, places, smem);
}
