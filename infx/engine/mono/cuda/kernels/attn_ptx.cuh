// Instructions that attention alone needs, as PTX.
#pragma once
#include "common.cuh"
#include "mail.cuh"

constexpr u32 ALL_LANES = 0xffffffffu;

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }
__device__ __forceinline__ float low_f16(u32 pair) {
    float v;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(v) : "r"(pair));
    return v;
}
// A maximum that keeps NaN, as torch's amax does.
__device__ __forceinline__ float max_nan(float a, float b) {
    float v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
}
__device__ __forceinline__ float exp2_of(float x) {
    float v;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
    return v;
}
__device__ __forceinline__ uint2 load_l2_u32x2(const void* p) {
    uint2 v;
    asm volatile("ld.global.cg.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ void store_two(void* p, u32 x, u32 y) {
    asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(x), "r"(y) : "memory");
}
// As one store: left to itself the compiler may make four of it.
__device__ __forceinline__ void store_four(float* p, float4 v) {
    asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};"
                 ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
// Copy to shared memory without waiting, zeros if not `there` (the address must be good all the
// same).
__device__ __forceinline__ void copy_async_16(void* to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy_async_4(void* to, const void* from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 ::"r"(shared_address(to)), "l"(from), "r"(there ? 4 : 0) : "memory");
}
// Bring a line close before it is wanted.
__device__ __forceinline__ void touch(const void* p) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(p));
}
// Return a float that another block writes, once it is not EMPTY; wait no longer than `grid_wait`.
__device__ __forceinline__ float await_word(const LayerArgs& a, const float* p) {
    const long long start = clock64();
    u32 v;
    for (u32 polls = 1;; polls++) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
        if (v != EMPTY || (!(polls & 255) && in_vain(a.give_up, FOR_SCORE, v, start))) break;
    }
    return __uint_as_float(v);
}
// Add `n` to a counter, after what the block wrote (thread 0, behind a __syncthreads) and before what
// it will read; return what the counter held.
__device__ __forceinline__ u32 count_up(u32* p, u32 n) {
    u32 v;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(v) : "l"(p), "r"(n) : "memory");
    return v;
}
