// Loads, conversions, matrix instructions and reductions: the vocabulary of all stages.
// Plain PTX, no headers: compiles alike with nvcc and NVRTC.
#pragma once
#include "args.cuh"

__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp_id() { return threadIdx.x >> 5; }
// The same, and the compiler knows that it is the warp's: addresses made from it are uniform. All
// lanes must call it together.
__device__ __forceinline__ int uniform_warp() { return __shfl_sync(~0u, threadIdx.x >> 5, 0); }

// What other blocks wrote in this launch is read from L2: an L1 line may be older.
__device__ __forceinline__ float4 load_l2(const float* p) {
    float4 v;
    asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ uint4 load_l2(const void* p) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ float4 as_floats(uint4 v) {
    return make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
}
__device__ __forceinline__ float load_l2_one(const float* p) {
    float v;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}
// Words that another block waits for, and a look at some (mail.cuh).
__device__ __forceinline__ void send_word(void* p, u32 x) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
__device__ __forceinline__ uint4 load_mail(const void* p) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}
// What no one writes in this launch and no one reads twice.
__device__ __forceinline__ uint4 load_once(const void* p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
__device__ __forceinline__ void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
__device__ __forceinline__ u32 shared_address(const void* p) {
    return (u32)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ uint4 load_shared_16(u32 at) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at) : "memory");
    return v;
}
__device__ __forceinline__ uint2 load_shared_8(u32 at) {
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at) : "memory");
    return v;
}
__device__ __forceinline__ void store_shared(u32 at, float x) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}
// Copy 16 bytes to shared memory without waiting; wait for the thread's own copies.
__device__ __forceinline__ void copy_16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Return the bits of `yes` where `mask` has ones, of `no` elsewhere: one instruction.
__device__ __forceinline__ u32 chosen_bits(u32 mask, u32 yes, u32 no) {
    u32 v;
    asm("lop3.b32 %0, %1, %2, %3, 0xE2;" : "=r"(v) : "r"(yes), "r"(mask), "r"(no));
    return v;
}

// Two numbers in one register, the first in the low half.
__device__ __forceinline__ u32 to_f16x2(float low, float high) {
    u32 v;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
__device__ __forceinline__ u32 to_bf16x2(float low, float high) {
    u32 v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
__device__ __forceinline__ float low_bf16(u32 v) { return __uint_as_float(v << 16); }
__device__ __forceinline__ float high_bf16(u32 v) { return __uint_as_float(v & 0xffff0000u); }
__device__ __forceinline__ u16 to_bf16(float x) {
    u16 v;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v) : "f"(x));
    return v;
}
// Two e4m3 bytes to f16x2 (exact), and two floats to e4m3 (nearest even, beyond 448 to 448).
__device__ __forceinline__ u32 e4m3_to_f16x2(u16 pair) {
    u32 v;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(v) : "h"(pair));
    return v;
}
__device__ __forceinline__ u16 to_e4m3x2(float low, float high) {
    u16 v;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(high), "f"(low));
    return v;
}
__device__ __forceinline__ u32 times_f16x2(u32 a, u32 b) {
    u32 v;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}
__device__ __forceinline__ u16 to_f16(float x) { return (u16)to_f16x2(x, 0.0f); }
__device__ __forceinline__ u32 times_bf16x2(u32 a, u32 b) {
    u32 v;
    asm("mul.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

// Return the power of two that brings numbers of which `largest` is the largest to 2^14.
__device__ __forceinline__ float f16_scale(float largest, float& back) {
    int exponent = min(max((int)(__float_as_uint(largest) >> 23), 15), 254);
    back = __uint_as_float((u32)(exponent - 14) << 23);
    return __uint_as_float((u32)(268 - exponent) << 23);
}

// c += A b: A 16 x 16 in four registers (row g = lane / 4 and g + 8; pairs of K of q = lane % 4),
// b 16 x 8 in two (column g), c 16 x 8 (rows g and g + 8, columns 2q and 2q + 1).
__device__ __forceinline__ void mma_f16(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bf16(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Over a warp, by halving: lane 0 and all others get the same bits.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int lanes = 16; lanes; lanes >>= 1) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int lanes = 16; lanes; lanes >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
}

__device__ __forceinline__ float norm_factor(float squares, float size) {
    return 1.0f / sqrtf(squares / size + NORM_EPS);
}
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// A kernel that was launched as a dependent (PDL) may do what comes before this ahead of time.
__device__ __forceinline__ void after_previous() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// When a block passed a point: for builds that look where time goes.
#if TRACE
constexpr int MARKS = 64;
__device__ __forceinline__ void mark(const LayerArgs& a, int point) {
    if (threadIdx.x == 0) a.trace[blockIdx.x * MARKS + point] = clock64();
}
#else
__device__ __forceinline__ void mark(const LayerArgs&, int) {}
#endif
