// Device code on a CPU: a block of 512 threads as fibers, its warps in lockstep where they exchange.
//
// What is checked is what kernels compute; not how fast, and no order of memory between blocks, which
// run one after another. Kernels that wait for other blocks cannot run here.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __noinline__
#define __global__
#define __grid_constant__
#define __restrict__
#define __align__(n)
#define __shared__
#define __launch_bounds__(...)
using std::max;
using std::min;

struct int2 { int x, y; };
struct uint2 { uint32_t x, y; };
struct uint4 { uint32_t x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct dim3 { int x = 0, y = 0, z = 0; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

#ifndef LAST_FIRST
#define LAST_FIRST 0  // 1: threads run in descending order
#endif
constexpr int EMULATED_THREADS = 512, EMULATED_SHARED = 73 * 1024;  // a stage, and barriers behind it
struct Meeting_point { int count = 0; unsigned generation = 0; };
struct Fiber { ucontext_t context; jmp_buf at; std::vector<char> stack; bool begun = false, ended = false; dim3 thread; };
struct Warp { Meeting_point point; uint64_t words[32][8]; };
struct Machine {
    jmp_buf main;
    std::vector<Fiber> fibers{EMULATED_THREADS};
    Warp warps[EMULATED_THREADS / 32];
    Meeting_point block;
    int current = 0;
    long waits = 0;  // of this run of a block
    long long clock = 0;
    bool late = false;   // a kernel that waits for words looks too early for one of four, every other time
    unsigned looks = 0;  // at such
};
inline Machine machine;
inline dim3 blockIdx, gridDim, blockDim{EMULATED_THREADS, 1, 1};
extern char smem[];
#define threadIdx (machine.fibers[machine.current].thread)

// Contexts begin fibers; jumps, which ask the kernel for nothing, go between them.
inline void yield() {
    if (!_setjmp(machine.fibers[machine.current].at)) _longjmp(machine.main, 1);
}
inline void go_on(Fiber& fiber) {
    if (_setjmp(machine.main)) return;
    if (fiber.begun) _longjmp(fiber.at, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}
inline void meet(Meeting_point& point, int wanted) {
    const unsigned generation = point.generation;
    if (++point.count == wanted) {
        point.count = 0;
        point.generation++;
        return;
    }
    while (point.generation == generation) yield();
}
inline void __syncthreads() { meet(machine.block, EMULATED_THREADS); }
inline void __syncwarp() { meet(machine.warps[threadIdx.x / 32].point, 32); }

// Every lane of the warp hands in WORDS words and may read all lanes' before the next exchange.
template <int WORDS, class Use>
inline auto exchange(const uint64_t (&own)[WORDS], Use use) {
    Warp& warp = machine.warps[threadIdx.x / 32];
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < WORDS; i++) warp.words[lane][i] = own[i];
    meet(warp.point, 32);
    auto result = use(warp.words, lane);
    meet(warp.point, 32);
    return result;
}
template <class T>
inline uint64_t word_of(T x) {
    uint64_t word = 0;
    memcpy(&word, &x, sizeof x);
    return word;
}
template <class T>
inline T from_lane(T x, int (*source)(int, int), int argument) {
    const uint64_t own[1] = {word_of(x)};
    return exchange(own, [&](auto& words, int lane) {
        const int other = source(lane, argument);
        T out;
        memcpy(&out, &words[other < 0 || other > 31 ? lane : other][0], sizeof out);
        return out;
    });
}
template <class T>
inline T __shfl_xor_sync(unsigned, T x, int far) {
    return from_lane(x, [](int lane, int n) { return lane ^ n; }, far);
}
template <class T>
inline T __shfl_up_sync(unsigned, T x, int far) {
    return from_lane(x, [](int lane, int n) { return lane - n; }, far);
}
template <class T>
inline T __shfl_down_sync(unsigned, T x, int far) {
    return from_lane(x, [](int lane, int n) { return lane + n; }, far);
}
template <class T>
inline T __shfl_sync(unsigned, T x, int from) {
    return from_lane(x, [](int, int n) { return n & 31; }, from);
}
inline unsigned __ballot_sync(unsigned, bool x) {
    const uint64_t own[1] = {x};
    return exchange(own, [](auto& words, int) {
        unsigned out = 0;
        for (int i = 0; i < 32; i++) out |= (unsigned)words[i][0] << i;
        return out;
    });
}
inline uint32_t __reduce_max_sync(unsigned, uint32_t x) {
    const uint64_t own[1] = {x};
    return exchange(own, [](auto& words, int) {
        uint64_t most = 0;
        for (int i = 0; i < 32; i++) most = max(most, words[i][0]);
        return (uint32_t)most;
    });
}
inline bool __any_sync(unsigned all, bool x) { return __ballot_sync(all, x) != 0; }

inline float __uint_as_float(uint32_t x) { float f; memcpy(&f, &x, 4); return f; }
inline uint32_t __float_as_uint(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
inline float __int_as_float(int x) { return __uint_as_float(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline void atomicOr(uint32_t* p, uint32_t bits) { *p |= bits; }
inline int atomicAdd(int* p, int n) { *p += n; return *p - n; }
template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++)
        out |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return out;
}

template <class Of>
inline uint32_t by_byte(uint32_t a, uint32_t b, Of of) {
    uint32_t out = 0;
    for (int i = 0; i < 32; i += 8) out |= (uint32_t)(of(a >> i & 255, b >> i & 255) & 255) << i;
    return out;
}
inline uint32_t __vmaxu4(uint32_t a, uint32_t b) { return by_byte(a, b, [](int x, int y) { return max(x, y); }); }
inline uint32_t __vcmpeq4(uint32_t a, uint32_t b) { return by_byte(a, b, [](int x, int y) { return x == y ? 255 : 0; }); }
inline long long clock64() { return machine.clock += 1 << 27; }  // time passes where it is asked for
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, int left) {
    return (((uint64_t)high << 32 | low) << (left & 31)) >> 32;
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline unsigned atomicCAS(uint32_t* p, uint32_t seen, uint32_t to) { const uint32_t was = *p; if (was == seen) *p = to; return was; }

// ---- the vocabulary of common.cuh and attn_ptx.cuh -------------------------------------------
#include "args.cuh"

inline int lane_id() { return threadIdx.x & 31; }
// Also of what is no shared memory, as a ring's slots: the way from `smem`, which may be negative.
inline u32 shared_address(const void* p) { return (u32)((const char*)p - smem); }
inline char* at_shared(u32 address) { return smem + (int)address; }
inline int warp_id() { return threadIdx.x >> 5; }
inline int uniform_warp() { return warp_id(); }
template <class To, class From>
inline To loaded(const From* p) { To v; memcpy(&v, p, sizeof v); return v; }
inline float4 load_l2(const float* p) { return loaded<float4>(p); }
inline uint4 load_shared_16(u32 at) { return loaded<uint4>(at_shared(at)); }
inline uint2 load_shared_8(u32 at) { return loaded<uint2>(at_shared(at)); }
inline void store_shared(u32 at, float x) { memcpy(at_shared(at), &x, sizeof x); }
inline u32 chosen_bits(u32 mask, u32 yes, u32 no) { return (mask & yes) | (~mask & no); }
inline const LayerArgs* running_args;
inline bool lies_in(const void* p, const void* all, size_t bytes) { return p >= all && p < (const char*)all + bytes; }
inline uint4 looked_at(const void* p) {
    uint4 v = loaded<uint4>((const char*)p);
    const LayerArgs& a = *running_args;
    const bool mail = lies_in(p, a.mids, ROWS * SLOTS * EXPERT_SIZE * 2) || lies_in(p, a.logit_sums, ROUTER_PARTS * ROWS * EXPERTS * 4);
    if (machine.late && mail && ++machine.looks % 2) v.z = ~0u;
    return v;
}
inline uint4 load_l2(const void* p) { return looked_at(p); }
inline float4 as_floats(uint4 v) { return loaded<float4>(&v); }
inline float load_l2_one(const float* p) { return *p; }
inline uint2 load_l2_u32x2(const void* p) { return loaded<uint2>((const char*)p); }
inline void store_two(void* p, u32 x, u32 y) { const u32 v[2] = {x, y}; memcpy(p, v, sizeof v); }
inline void store_four(float* p, float4 v) { memcpy(p, &v, sizeof v); }
inline void copy_async_16(void* to, const void* from, bool there) {
    if (there) memcpy(to, from, 16); else memset(to, 0, 16);
}
inline void copy_async_4(void* to, const void* from, bool there) {
    if (there) memcpy(to, from, 4); else memset(to, 0, 4);
}
inline void copies_done() {}
inline void copy_16(u32 to, const void* from) { const uint4 v = looked_at(from); memcpy(at_shared(to), &v, 16); }
inline void relax() {
    if (++machine.waits > 20000000) abort();  // nobody writes what is waited for
    yield();
}
inline u32 count_up(u32* p, u32 n) { return *p += n, *p - n; }
inline void prefetch_l2(const void*) {}
inline uint4 load_once(const void* p) { return load_l2(p); }
inline void send_word(void* p, u32 x) { memcpy(p, &x, sizeof x); }
inline uint4 load_mail(const void* p) { return looked_at(p); }
inline float await_word(const LayerArgs&, const float* p) { return *p; }

inline u16 to_f16(float x) { const _Float16 half = x; u16 v; memcpy(&v, &half, 2); return v; }
inline float f16(u16 x) { _Float16 half; memcpy(&half, &x, 2); return half; }
inline u16 to_bf16(float x) {
    const u32 bits = __float_as_uint(x);
    return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline float bf16(u16 x) { return __uint_as_float((u32)x << 16); }
inline u32 to_f16x2(float low, float high) { return to_f16(low) | (u32)to_f16(high) << 16; }
inline u32 to_bf16x2(float low, float high) { return to_bf16(low) | (u32)to_bf16(high) << 16; }
inline float low_bf16(u32 v) { return bf16(v & 0xffff); }
inline float high_bf16(u32 v) { return bf16(v >> 16); }
inline float low_f16(u32 v) { return f16(v & 0xffff); }
inline float e4m3(u8 code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const float size = (code & 127) == 127 ? NAN
                       : exponent          ? std::ldexp(8.0f + mantissa, exponent - 10)
                                           : std::ldexp((float)mantissa, -9);
    return code & 128 ? -size : size;
}
inline u8 to_e4m3(float x) {
    if (x != x) return 0x7f;
    const float size = std::min(std::fabs(x), 448.0f);
    u8 best = 0;
    for (int code = 1; code < 127; code++) {
        const float off = std::fabs(e4m3(code) - size), least = std::fabs(e4m3(best) - size);
        if (off < least || (off == least && code % 2 == 0)) best = code;
    }
    return best | (std::signbit(x) ? 128 : 0);
}
inline u16 to_e4m3x2(float low, float high) { return to_e4m3(low) | to_e4m3(high) << 8; }
inline u32 e4m3_to_f16x2(u16 pair) { return to_f16x2(e4m3(pair & 255), e4m3(pair >> 8)); }
inline u32 times_bf16x2(u32 a, u32 b) {
    return to_bf16x2(low_bf16(a) * low_bf16(b), high_bf16(a) * high_bf16(b));
}
inline u32 times_f16x2(u32 a, u32 b) {
    return to_f16x2(low_f16(a) * low_f16(b), f16(a >> 16) * f16(b >> 16));
}
template <float (*NUMBER)(u16)>
inline void emulated_mma(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    const uint64_t own[6] = {a0, a1, a2, a3, b0, b1};
    exchange(own, [&](auto& words, int lane) {
        for (int n = 0; n < 4; n++) {
            const int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
            double sum = c[n];
            for (int k = 0; k < 16; k++) {
                const int quad = k % 8 / 2, shift = k % 2 * 16;
                const u32 x = words[row % 8 * 4 + quad][k / 8 * 2 + row / 8];
                const u32 y = words[column * 4 + quad][4 + k / 8];
                sum += (double)NUMBER(x >> shift) * NUMBER(y >> shift);
            }
            c[n] = sum;
        }
        return 0;
    });
}
inline void mma_f16(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    emulated_mma<f16>(c, a0, a1, a2, a3, b0, b1);
}
inline void mma_bf16(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    emulated_mma<bf16>(c, a0, a1, a2, a3, b0, b1);
}
inline float norm_factor(float squares, float size) {
    return 1.0f / std::sqrt(squares / size + NORM_EPS);
}
inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
inline float warp_sum(float x) {
    for (int lanes = 16; lanes; lanes >>= 1) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}
inline float warp_max(float x) {
    for (int lanes = 16; lanes; lanes >>= 1) x = std::fmax(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
}
inline float f16_scale(float largest, float& back) {
    const int exponent = min(max((int)(__float_as_uint(largest) >> 23), 15), 254);
    back = __uint_as_float((u32)(exponent - 14) << 23);
    return __uint_as_float((u32)(268 - exponent) << 23);
}
constexpr u32 ALL_LANES = 0xffffffffu;
inline float minus_infinity() { return -INFINITY; }
inline void after_previous() {}
inline void mark(const LayerArgs&, int) {}
inline float max_nan(float a, float b) { return a != a || b != b ? NAN : std::max(a, b); }
inline float exp2_of(float x) { return std::exp2(x); }

// ---- running a kernel ------------------------------------------------------------------------
typedef void (*Kernel)(LayerArgs);
inline Kernel running;
alignas(128) char smem[EMULATED_SHARED];
inline void run_fiber() {
    running(*running_args);
    machine.fibers[machine.current].ended = true;
    yield();
}
inline void run_block(Kernel kernel, const LayerArgs& a) {
    running = kernel, running_args = &a, machine.waits = 0, machine.late = false;
    memset(smem, 0xff, EMULATED_SHARED);  // poison: NaN
    for (int i = 0; i < EMULATED_THREADS; i++) {
        Fiber& fiber = machine.fibers[i];
        fiber.stack.resize(64 * 1024);
        fiber.begun = fiber.ended = false;
        fiber.thread = {i, 0, 0};
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool left = true; left;) {
        left = false;
        for (int turn = 0; turn < EMULATED_THREADS; turn++) {
            const int i = LAST_FIRST ? EMULATED_THREADS - 1 - turn : turn;
            if (machine.fibers[i].ended) continue;
            machine.current = i;
            go_on(machine.fibers[i]);
            left |= !machine.fibers[i].ended;
        }
    }
}
