// The experts' first matrices: gates and ups of 8 pairs a task, then the swiglu.
#pragma once
#include "follow.cuh"

static_assert(PIECE_SLICE * WARPS == HIDDEN, "a warp's slice of K is a piece");
static_assert(UP_TILES <= BLOCKS, "the shared expert's tasks are one round");

__device__ __forceinline__ bool has_shared_tile() { return block_id() < UP_TILES; }

// A block's tasks of the chosen experts: union index * UP_TILES + tile. Blocks 0 to 95 have a task of
// the shared expert each (known before the routing); the others get one more of the chosen. Those from
// `fixed_tasks` on are tickets.
struct UpRange {
    int first, end;
    __device__ __forceinline__ explicit UpRange(int chosen) : first(edge(block_id(), chosen)), end(edge(block_id() + 1, chosen)) {}
    static __device__ __forceinline__ int edge(int block, int chosen) {
        int all = DEALT ? block * (fixed_tasks(chosen) + UP_TILES) : block * (chosen + 1) * UP_TILES;
        return max(0, all / BLOCKS - min(block, UP_TILES));
    }
};

#if DEALT_TASKS
// A block's k-th task of those that nobody was known to have. A warp asks for it when it begins the task
// TICKETS_AHEAD before, and tells the block once it has multiplied that: the answer travels meanwhile.
constexpr int TICKETS_AHEAD = 5, NO_TASK = 0xffff;  // two are in the ring behind the one that is multiplied
static_assert(MOST_CHOSEN * UP_TILES < NO_TASK && TICKETS_AHEAD <= WARPS, "a ticket is a half word");

struct UpTickets {
    int fixed, all;  // the first task that is one, and behind the last
    int asked;       // the ticket that this warp asked for and has not told of; -1: none
    u32 answer;
    __device__ __forceinline__ explicit UpTickets(int chosen) : fixed(fixed_tasks(chosen)), all(chosen * UP_TILES), asked(-1) {}
    __device__ __forceinline__ void ask(const LayerArgs& a, int k) {
        if (warp_id() != k % WARPS) return;
        asked = k;
        // All blocks ask TICKETS_AHEAD times for nothing: behind the last to ask the next launch begins at 0.
        if (lane_id() == 0) answer = next_at_l2(a.up_counts + MOST_CHOSEN + 1, TICKETS_AHEAD * BLOCKS + all - fixed - 1);
    }
    __device__ __forceinline__ void tell(Deal& deal) {
        if (asked < 0) return;
        int task = fixed + (int)answer;
        if (lane_id() == 0) *(volatile u32*)(deal.ticket + asked % TICKETS) = asked << 16 | (task < all ? task : NO_TASK);
        asked = -1;
    }
    // Return the task of ticket `k`: NO_TASK behind the last, -1 if nobody told yet.
    static __device__ __forceinline__ int seen(const Deal& deal, int k) {
        u32 word = *(const volatile u32*)(deal.ticket + k % TICKETS);
        return (int)(word >> 16) == k ? (int)(word & 0xffff) : -1;
    }
    static __device__ __forceinline__ int await(const Deal& deal, int k) {
        int task;
        for (int tries = 0; (task = seen(deal, k)) < 0; ++tries, relax())
            if (tries > MOST_TRIES) __trap();
        __syncwarp();
        return task;
    }
};
#endif

__device__ __forceinline__ const u8* up_piece(const LayerArgs& a, const Stream& s, int expert, int tile) {
    return a.up + ((size_t)(expert * WARPS + s.warp) * UP_TILES + tile) * SLOT_BYTES;
}
__device__ __forceinline__ void fill_up_shared(const LayerArgs& a, Stream& s) {
    if (has_shared_tile()) s.put(up_piece(a, s, EXPERTS, block_id()), SLOT_BYTES);
}

// What is asked for next of the chosen experts' pieces: tiles of an expert lie one behind the other.
struct UpFeed {
    const u8* from;
    int left, run, index;  // pieces still to ask for, of them with this expert, its index of the union
#if DEALT_TASKS
    int ticket = 0;  // the next one whose piece to ask for
#endif
    __device__ __forceinline__ UpFeed(const LayerArgs& a, const Deal& deal, const Stream& s) {
        UpRange range(deal.chosen);
        left = range.end - range.first, index = range.first / UP_TILES;
        int tile = range.first % UP_TILES;
        run = UP_TILES - tile;
        from = left ? up_piece(a, s, deal.list[index], tile) : nullptr;
    }
    __device__ __forceinline__ void fill(const LayerArgs& a, const Deal& deal, Stream& s) {
#pragma unroll 1
        while (s.room && left) {
            s.put(from, SLOT_BYTES);
            from += SLOT_BYTES, --left;
            if (--run || !left) continue;
            from = up_piece(a, s, deal.list[++index], 0), run = UP_TILES;
        }
        if constexpr (DEALT > 0) fill_dealt(a, deal, s);
    }
    __device__ __forceinline__ void fill_dealt(const LayerArgs& a, const Deal& deal, Stream& s) {
#if DEALT_TASKS
#pragma unroll 1
        while (s.room && !left) {
            int task = __shfl_sync(~0u, UpTickets::seen(deal, ticket), 0);
            if (task < 0) break;
            ++ticket;
            if (task != NO_TASK) s.put(up_piece(a, s, deal.list[task / UP_TILES], task % UP_TILES), SLOT_BYTES);
        }
#endif
    }
};

__device__ __forceinline__ float swiglu(float gate, float up) {
    gate = fminf(gate, SWIGLU_LIMIT);
    up = fminf(fmaxf(up, -SWIGLU_LIMIT), SWIGLU_LIMIT);
    float lit = gate * sigmoid(SWIGLU_ALPHA * gate);
    return lit + lit * up;
}

// Eight rows of an expert (index of the union) times one tile: what the block's warps sum together.
struct UpTask {
    u32 packed;  // one register: two of them are waiting to be finished
    __device__ __forceinline__ UpTask(int index, int tile, int half) : packed(index << 16 | tile << 8 | half) {}
    __device__ __forceinline__ int index() const { return packed >> 16; }
    __device__ __forceinline__ int tile() const { return packed >> 8 & 255; }
    __device__ __forceinline__ int half() const { return packed & 255; }
};

// Sum a task's slices and write its features between the matrices: one warp, 4 rows at a time.
__device__ __forceinline__ void finish_up(const LayerArgs& a, const Deal& deal, UpTask task, const float* sums) {
    int pair = lane_id() & 7, rows = min(8, deal.count[task.index()] - 8 * task.half());
#pragma unroll 1
    for (int at = lane_id() >> 3; at < rows; at += 4) {
        int who = deal.pair[task.index()][8 * task.half() + at];
        float factor = deal.factor[who / SLOTS];
        float gate = factor * sum_warps<PLACE_ROWS>(sums, at, pair), up = factor * sum_warps<PLACE_ROWS>(sums, at, 8 + pair);
        a.mids[who * EXPERT_SIZE + 8 * task.tile() + pair] = to_bf16(swiglu(gate, up));
    }
}

// Where the numbers of a (row, slot)'s row begin that this warp multiplies.
struct UpRows {
    const u16* first;
    __device__ __forceinline__ explicit UpRows(const LayerArgs& a) : first(a.mid_normed + warp_id() * PIECE_SLICE) {}
    __device__ __forceinline__ const u16* operator()(int pair) const { return first + pair / SLOTS * HIDDEN; }
};

// Load what a block's first task of `up` multiplies, where that is known before the routing: the
// shared expert's rows. One row: all experts'.
__device__ __forceinline__ void load_up_shared(const LayerArgs& a, PieceColumns& x, char* smem) {
    if (ROWS == 1 || has_shared_tile()) load_columns(deal_of(smem), x, Ahead(smem), MOST_CHOSEN, 0, UpRows(a));
}

// Ask for the rows of the block's first chosen expert: before its weights, or they come behind those.
__device__ __forceinline__ void ask_up(const LayerArgs& a, Ahead& ahead, char* smem) {
    const Deal& deal = deal_of(smem);
    UpRange range(deal.chosen);
    if (ROWS > 1 && range.first < range.end) ahead.ask(deal, range.first / UP_TILES, UpRows(a));
}

// The block's task of the shared expert, if it has one, then those of the chosen ones. `x` is from
// load_up_shared, `ahead` from ask_up; the shared weights were asked for before `feed`'s. `tell(a, index)`
// is called once a task's numbers of expert `index` are written.
template <class Tell>
__device__ __forceinline__ void run_up(const LayerArgs& a, Stream& s, Places& places, PieceColumns& x, Ahead& ahead, UpFeed& feed, const Tell& tell, char* smem) {
    Deal& deal = deal_of(smem);
    const UpRange range(deal.chosen);
    const int begin = places.count, last = (range.end - 1) / UP_TILES;
    int index = range.first / UP_TILES, tile = range.first % UP_TILES, loaded = 2 * MOST_CHOSEN;
    UpTask before(0, 0, 0), earlier(0, 0, 0);
#if DEALT_TASKS
    UpTickets tickets(deal.chosen);
    if (DEALT && warp_id() < TICKETS_AHEAD) tickets.ask(a, warp_id());
    if (DEALT && range.first - has_shared_tile() >= range.end) tickets.tell(deal);
    int asked = TICKETS_AHEAD;  // tickets that the block's warps ask for
#endif
    mark(a, 33);
#pragma unroll 1
    for (int task = range.first - has_shared_tile(); DEALT || task < range.end; ++task) {
        const bool shared = task < range.first;
#if DEALT_TASKS
        if (DEALT && task >= range.end) {
            // Warps ask in no order among themselves: behind a ticket for nothing there may be one for a task.
            if (task - range.end == asked) break;
            int own = UpTickets::await(deal, task - range.end);
            if (own == NO_TASK) continue;
            index = own / UP_TILES, tile = own % UP_TILES;
            tickets.ask(a, asked++);
            feed.fill(a, deal, s);
        }
#endif
        const int now = shared ? MOST_CHOSEN : index, rows = deal.count[now];
        const char* piece = s.take();
#pragma unroll 1
        for (int half = 0; 8 * half < rows; ++half) {
            if (ROWS > 1 && loaded != 2 * now + half) {
                load_columns(deal, x, ahead, now, half, UpRows(a));
                loaded = 2 * now + half;
                if (now < last && (!DEALT || task < range.end)) ahead.ask(deal, now + 1, UpRows(a));
            }
#if DEALT_TASKS
            if (DEALT && half == 0 && task + 1 >= range.end) {
                int seen = __shfl_sync(~0u, UpTickets::seen(deal, task + 1 - range.end), 0), next = seen / UP_TILES;
                if (seen >= 0 && seen != NO_TASK && next != now && next != ahead.of) ahead.ask(deal, next, UpRows(a));
            }
#endif
            float c[4];
            multiply_piece(c, x, piece);
#if DEALT_TASKS
            tickets.tell(deal);
#endif
            places.leave(c, rows - 8 * half);
            int done = places.count - 1 - FINISH_BEHIND;
            if (done >= begin && places.finishes(done)) {
                finish_up(a, deal, earlier, places.all(done));
                places.give_back(done);
                tell(a, earlier.index());
            }
            earlier = before, before = UpTask(now, shared ? block_id() : tile, half);
        }
#if DEALT_TASKS
        tickets.tell(deal);  // where the shared expert has no rows
#endif
        s.release();
        feed.fill(a, deal, s);
        if (!shared && ++tile == UP_TILES) tile = 0, ++index;
    }
    mark(a, 34);
#pragma unroll 1
    for (int task = max(begin, places.count - FINISH_BEHIND); task < places.count; ++task) {
        if (!places.finishes(task)) continue;
        const UpTask own = task == places.count - 1 ? before : earlier;
        finish_up(a, deal, own, places.all(task));
        places.give_back(task);
        tell(a, own.index());
    }
    mark(a, 35);
}
