// The ring that weights arrive in: each warp has its own, so no warp waits for another's bytes.
//
// Lane 0 asks the copy engine for a contiguous piece (packing.py lays out what one warp eats at a
// time), an mbarrier a slot says when it is there. The ring outlives a stage: what the next stage
// will read is asked for as soon as the block has arrived, before it waits for anybody.
#pragma once
#include "common.cuh"

constexpr int RING_SLOTS = 3;  // two on their way while one is read
constexpr int SLOT_BYTES = 3200;  // 16 outputs x 384 inputs of MXFP4 with their scales, whole lines
constexpr int RING_BYTES = WARPS * RING_SLOTS * SLOT_BYTES;
constexpr int PLACES_AT = STAGE_BYTES + RING_BYTES + WARPS * RING_SLOTS * 8;  // experts.cuh
constexpr int PLACES_BYTES = 64;
constexpr int SHARED_BYTES = PLACES_AT + PLACES_BYTES;

// A piece that does not come (an address that is wrong) ends the kernel instead of hanging it.
constexpr int MOST_TRIES = 1 << 22;

// What createpolicy.fractional.L2::evict_first returns for all of an access: weights leave L2 first,
// so that code, activations and norms stay.
constexpr u64 EVICT_FIRST = 0x12F0000000000000ull;

__device__ __forceinline__ void open_barrier(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive_at(u32 barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
    u32 done = 0;
    for (int tries = 0; !done; ++tries) {
        if (tries > MOST_TRIES) __trap();
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    }
}

// One lane of the warp, the same each time.
__device__ __forceinline__ bool elected() {
    u32 own;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(own));
    return own;
}

struct Stream {
    int warp;
    char* data;              // the warp's slots
    u32 arrived;             // shared address of their mbarriers
    int room, put_at, at;    // free slots; the slot to fill next, the slot to read next
    u32 parity;              // of the slots from `at` on

    // Each warp readies its own; no other thread ever touches it.
    __device__ __forceinline__ void open(char* smem) {
        warp = uniform_warp();
        data = smem + STAGE_BYTES + warp * (RING_SLOTS * SLOT_BYTES);
        arrived = shared_address(smem + STAGE_BYTES + RING_BYTES) + warp * (RING_SLOTS * 8);
        room = RING_SLOTS;
        put_at = at = 0;
        parity = 0;
        if (lane_id() < RING_SLOTS) open_barrier(arrived + 8 * lane_id(), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        __syncwarp();
    }

    __device__ __forceinline__ void ask(int slot, const u8* from, u32 bytes) const {
        if (!elected()) return;
        u32 bar = arrived + 8 * slot;
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                     ::"r"(shared_address(data) + SLOT_BYTES * slot), "l"(from), "r"(bytes), "r"(bar), "l"(EVICT_FIRST) : "memory");
    }
    __device__ __forceinline__ void put(const u8* from, u32 bytes) {
        ask(put_at, from, bytes);
        put_at = put_at + 1 == RING_SLOTS ? 0 : put_at + 1;
        --room;
    }

    // Ask for the pieces `next` ... `count` - 1 of a stage, `piece(i)` says where i lies, while there is room.
    template <class Piece>
    __device__ __forceinline__ void fill(int& next, int count, u32 bytes, const Piece& piece) {
#pragma unroll 1
        while (room && next < count) put(piece(next++), bytes);
    }

    // Give back the first piece, and ask for another in its place where there is `more`: all slots are full then.
    __device__ __forceinline__ void replace(bool more, const u8* from, u32 bytes) {
        __syncwarp();
        const int next = at + 1 == RING_SLOTS ? 0 : at + 1;
        if (more) {
            ask(at, from, bytes);
            put_at = next;
        }
        room += !more;
        at = next;
        if (next == 0) parity ^= 1;
    }
    // Return the first piece that was not given back, once it is there; or its shared address.
    __device__ __forceinline__ const char* take() {
        wait_for(arrived + 8 * at, parity);
        return data + SLOT_BYTES * at;
    }
    __device__ __forceinline__ u32 take_at() { return shared_address(take()); }

    // Give back the first piece: all lanes have read it.
    __device__ __forceinline__ void release() {
        __syncwarp();
        if (++at == RING_SLOTS) at = 0, parity ^= 1;
        ++room;
    }
};

// The `i`-th 16 bytes of this lane in a piece: a tile of a matrix instruction is 512 bytes of a warp.
__device__ __forceinline__ uint4 load_tile(const char* piece, int tile) {
    return *(const uint4*)(piece + 512 * tile + 16 * lane_id());
}
