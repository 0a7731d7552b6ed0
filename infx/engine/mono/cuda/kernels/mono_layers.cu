// The mono arm, several layers a launch (not measured yet): one behind the other in the code, since in a
// loop a layer spills 0.4 to 2 KB a thread, and here 10 to 50 bytes.
#define IDS_IN_REGISTERS
#include "mono.cuh"

#ifndef LAYERS
#define LAYERS 4
#endif

struct Layers {
    LayerArgs of[LAYERS];
};

extern __shared__ __align__(128) char smem[];

// Who runs, where nobody can know that it is always the same.
struct Ids {
    u32 thread[THREADS], block;
};

template <int FROM>
__device__ __forceinline__ void run_layers(const Layers& layers, Ids& ids, u32 token) {
    asm volatile("ld.volatile.shared.u32 own_thread, [%0];" ::"r"(shared_address(ids.thread + threadIdx.x)) : "memory");
    asm volatile("ld.volatile.shared.u32 own_block, [%0];" ::"r"(shared_address(&ids.block)) : "memory");
    Stream s;
    s.open(smem);
    Places places;
    places.open(smem);
    const LayerArgs& a = layers.of[FROM];
    run_layer(a, s, places, [&] {
        if constexpr (FROM == 0) after_previous();
        else grid_wait(a, token, AFTER_DOWN);
    }, smem);
    if constexpr (FROM + 1 < LAYERS) {
        token = grid_arrive(a);
        s.close();
        places.close();
        run_layers<FROM + 1>(layers, ids, token);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) mono_layers(const __grid_constant__ Layers layers) {
    __shared__ Ids ids;
    ids.thread[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) ids.block = blockIdx.x;
    __syncthreads();
    asm volatile(".reg .u32 own_thread, own_block;");
    run_layers<0>(layers, ids, 0);
}
