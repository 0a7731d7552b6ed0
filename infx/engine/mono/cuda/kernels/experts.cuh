// What both stages of the experts share: whose rows a warp multiplies with, and where sums meet.
//
// A warp's slice of K is a piece (mxfp4.cuh) of one output tile after another; the rows that chose
// the expert stand in its registers meanwhile. Those of the expert after it travel to shared memory
// in time: a load that is only asked for when it is needed waits behind all the weights under way.
#pragma once
#include "mail.cuh"
#include "mxfp4.cuh"
#include "route.cuh"

// Rows of an expert that are fetched ahead; for more, which is rare, a warp waits.
constexpr int AHEAD_ROWS = ROWS < 2 ? ROWS : 2;
constexpr int SLICE_BYTES = 2 * PIECE_SLICE;  // of one row
constexpr int AHEAD_AT = DEAL_AT - WARPS * AHEAD_ROWS * SLICE_BYTES;

struct Ahead {
    char* rows;  // the warp's [AHEAD_ROWS][PIECE_SLICE]
    int of;      // the expert, as index of the union, whose rows are there or on their way; -1: none's

    __device__ __forceinline__ explicit Ahead(char* smem) : rows(smem + AHEAD_AT + warp_id() * (AHEAD_ROWS * SLICE_BYTES)), of(-1) {}

    // Ask for the rows of expert `index`: `from(pair)` is where a row's numbers begin.
    template <class From>
    __device__ __forceinline__ void ask(const Deal& deal, int index, const From& from) {
        constexpr int CHUNKS = SLICE_BYTES / 16;
        int count = deal.count[index];
        of = -1;
        if (count > AHEAD_ROWS) return;
        __syncwarp();  // All lanes have read what was there.
#pragma unroll 1
        for (int i = lane_id(); i < count * CHUNKS; i += 32)
            copy_16(shared_address(rows + 16 * i), from(deal.pair[index][i / CHUNKS]) + 8 * (i % CHUNKS));
        of = index;
    }
};

// Load the columns of half `h` (8 rows) of expert `index`; `MAIL`: words that may not be there yet.
template <bool MAIL, class From>
__device__ __forceinline__ void load_columns(const LayerArgs& a, const Deal& deal, PieceColumns& x, const Ahead& ahead, int index, int h, const From& from) {
    int at = 8 * h + (lane_id() >> 2), q = lane_id() & 3;
    bool mine = at < deal.count[index], there = ahead.of == index;
    if (there) {
        copies_done();
        __syncwarp();
    }
    const char* kept = ahead.rows + at * SLICE_BYTES + 32 * q;
    const u16* row = mine && !there ? from(deal.pair[index][at]) + 16 * q : nullptr;
    if constexpr (MAIL) {
        uint4 v[2 * PIECE_TILES] = {};
        if (mine && there)
#pragma unroll
            for (int i = 0; i < 2 * PIECE_TILES; ++i) v[i] = *(const uint4*)(kept + 128 * (i / 2) + 16 * (i % 2));
        if (mine) {
            row = from(deal.pair[index][at]) + 16 * q;
            const auto place = [&](int i) { return row + 64 * (i / 2) + 8 * (i % 2); };
            if (!there)
#pragma unroll
                for (int i = 0; i < 2 * PIECE_TILES; ++i) v[i] = load_mail(place(i));
            await_mail(a, v, FOR_MIDS, place);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 2 * PIECE_TILES; ++i) x.b[4 * i] = v[i].x, x.b[4 * i + 1] = v[i].y, x.b[4 * i + 2] = v[i].z, x.b[4 * i + 3] = v[i].w;
    } else {
#pragma unroll
        for (int i = 0; i < 2 * PIECE_TILES; ++i) {
            uint4 v = make_uint4(0, 0, 0, 0);
            if (mine) v = there ? *(const uint4*)(kept + 128 * (i / 2) + 16 * (i % 2)) : load_l2((const void*)(row + 64 * (i / 2) + 8 * (i % 2)));
            x.b[4 * i] = v.x, x.b[4 * i + 1] = v.y, x.b[4 * i + 2] = v.z, x.b[4 * i + 3] = v.w;
        }
    }
}

// Where the warps' sums of a task of 8 rows meet: warps run ahead of each other by as many tasks as
// there are places. A task's finisher sums it two tasks later, when others have left theirs too.
constexpr int PLACES = 4, FINISH_BEHIND = 2;
constexpr int PLACE_ROWS = ROWS < 8 ? ROWS : 8, PLACE_FLOATS = WARPS * PLACE_ROWS * OUT_PITCH;
static_assert(2 * 8 * PLACES <= PLACES_BYTES, "two mbarriers a place fit");
static_assert(4 * PLACES * PLACE_FLOATS <= AHEAD_AT, "places and rows ahead fit the stage's memory");

struct Places {
    float* sums;     // of the first place: all warps'
    u32 own;         // shared address of this lane's there
    int row;         // the lane's first row of a half
    u32 left, free;  // shared addresses of an mbarrier a place
    u32 warp, count; // this warp, tasks whose sums it left

    __device__ __forceinline__ void open(char* smem) {
        sums = (float*)smem, warp = uniform_warp(), row = 2 * (lane_id() & 3);
        own = shared_address(sums_of_warp<PLACE_ROWS>(sums, warp) + row * OUT_PITCH + (lane_id() >> 2));
        asm volatile("" : "+r"(own), "+r"(row));
        left = shared_address(smem + PLACES_AT), free = left + 8 * PLACES;
        count = 0;
        if (threadIdx.x < PLACES) {
            open_barrier(left + 8 * threadIdx.x, WARPS);
            open_barrier(free + 8 * threadIdx.x, 1);
        }
    }
    // Leave the warp's sums of the next task: [warp][row of the half][outputs].
    __device__ __forceinline__ void leave(const float (&c)[4], int rows) {
        const u32 place = count % PLACES, turn = count / PLACES, to = own + place * (4 * PLACE_FLOATS);
        if (turn) wait_for(free + 8 * place, ~turn & 1);
        if (row < rows) store_shared(to, c[0]), store_shared(to + 4 * 8, c[2]);
        if (row + 1 < rows) store_shared(to + 4 * OUT_PITCH, c[1]), store_shared(to + 4 * (OUT_PITCH + 8), c[3]);
        __syncwarp();
        if (lane_id() == 0) arrive_at(left + 8 * place);
        ++count;
    }
    __device__ __forceinline__ bool finishes(u32 task) const { return task % WARPS == warp; }
    // Return the sums of task `task`, once all warps have left theirs.
    __device__ __forceinline__ const float* all(u32 task) const {
        wait_for(left + 8 * (task % PLACES), task / PLACES & 1);
        return sums + task % PLACES * PLACE_FLOATS;
    }
    // All lanes have read them.
    __device__ __forceinline__ void give_back(u32 task) const {
        __syncwarp();
        if (lane_id() == 0) arrive_at(free + 8 * (task % PLACES));
    }
};
