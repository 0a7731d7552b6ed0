// The ring of stream.cuh without its copy engine: a piece is copied when it is waited for, and a slot
// is poisoned when it is asked to be filled, so reading what was given back, or too early, shows.
#pragma once
#include "emulated.h"

constexpr int RING_SLOTS = 3, SLOT_BYTES = 3200, PLACES_BYTES = 64, PLACES_AT = EMULATED_SHARED - PLACES_BYTES;
struct Barrier { int arrivals, left; u32 phase; };
inline Barrier barriers[PLACES_BYTES / 8];
inline Barrier& barrier_at(u32 address) { return barriers[(address - PLACES_AT) / 8]; }
inline void open_barrier(u32 barrier, int arrivals) { barrier_at(barrier) = {arrivals, arrivals, 0}; }
inline void arrive_at(u32 barrier) {
    Barrier& b = barrier_at(barrier);
    if (--b.left == 0) b.left = b.arrivals, ++b.phase;
}
inline void wait_for(u32 barrier, u32 parity) {
    while ((barrier_at(barrier).phase & 1) == parity) relax();
}
struct Slot {
    unsigned put = 0, arrived = 0;  // how many pieces it was asked to hold, and held
    const u8* from;
    u32 bytes;
    alignas(128) char data[SLOT_BYTES];
};
inline Slot slots[WARPS][RING_SLOTS];

struct Stream {
    int warp, room, put_at, at;
    unsigned taken;  // pieces that the slots from `at` on have held before
    void open(char*) {
        warp = warp_id(), room = RING_SLOTS, put_at = at = 0, taken = 0;
        if (lane_id() == 0)
            for (Slot& slot : slots[warp]) slot.put = slot.arrived = 0;
        __syncwarp();
    }
    void put(const u8* from, u32 bytes) {
        if ((uintptr_t)from % 16 || bytes % 16 || bytes > SLOT_BYTES || room < 1) abort();
        if (lane_id() == 0) {
            Slot& slot = slots[warp][put_at];
            slot.put++, slot.from = from, slot.bytes = bytes;
            memset(slot.data, 0xff, SLOT_BYTES);
        }
        put_at = (put_at + 1) % RING_SLOTS;
        --room;
    }
    template <class Piece>
    void fill(int& next, int count, u32 bytes, const Piece& piece) {
        while (room && next < count) put(piece(next++), bytes);
    }
    const char* take() {
        Slot& slot = slots[warp][at];
        while (slot.put == taken) yield();
        if (slot.arrived < slot.put) memcpy(slot.data, slot.from, slot.bytes), slot.arrived = slot.put;
        return slot.data;
    }
    u32 take_at() { return shared_address(take()); }
    void release() {
        __syncwarp();
        if (++at == RING_SLOTS) at = 0, taken++;
        ++room;
    }
    void replace(bool more, const u8* from, u32 bytes) {
        release();
        if (more && room > 1) abort();  // not all slots were full: the real one would overtake a free one
        if (more) put(from, bytes);
    }
};
inline uint4 load_tile(const char* piece, int tile) { return loaded<uint4>(piece + 512 * tile + 16 * lane_id()); }
