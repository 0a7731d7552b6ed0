// Full attention: the softmax of all heads over all keys that a row sees, in partitions of 256.
//
// One stage from the fused projection's sums to attention's output. A task is a partition of a row:
// the pages 2p and 2p + 1 of its table. A block has tasks that lie together, so it makes a row's
// queries once, in shared memory; the partition that holds tokens of this very step makes their keys
// and values itself, from the projection (each block that wants one writes the same bytes).
//
// Partitions are merged in their order, 32 of them (8,192 keys) a group, then groups in theirs: the
// block that ends a group's last one merges it, the block that ends a row's last group the groups. What
// is added in which order follows from the row's position alone. One block reads 0.3 MB a group; of all
// partitions of 131,072 keys it would read 4.3.
#pragma once
#include "attn_head.cuh"
#include "attn_merge.cuh"

constexpr int GROUP = 32;
constexpr int REACH_PARTITIONS = REACH_PAGES * BLOCK / PARTITION;
constexpr int REACH_GROUPS = (REACH_PARTITIONS + GROUP - 1) / GROUP;
constexpr int ROW_LINES = REACH_PARTITIONS + REACH_GROUPS;  // a row's partials: partitions, then groups
static_assert(GROUP <= 32 && REACH_GROUPS <= 32, "a lane has the end of a line");
static_assert(sizeof(SplitShared) <= STAGE_BYTES, "");

struct FullRows {
    int id, position;  // lane r: of row r; id -1 for a pad and past the last row
    int count, first;  // lane r: its partitions, and the first of its tasks
    int tasks;         // of the step
};
__device__ __forceinline__ FullRows full_rows(const LayerArgs& a) {
    const int lane = lane_id();
    FullRows s;
    s.id = lane < ROWS ? __ldg(a.batch_ids + lane) : -1;
    s.position = lane < ROWS ? __ldg(a.positions + lane) : 0;
    s.count = s.id < 0 ? 0 : s.position / PARTITION + 1;
    int end = s.count;
#pragma unroll
    for (int far = 1; far < ROWS; far *= 2) {
        const int other = __shfl_up_sync(ALL_LANES, end, far);
        if (lane >= far) end += other;
    }
    s.first = end - s.count;
    s.tasks = __shfl_sync(ALL_LANES, end, ROWS - 1);
    return s;
}

struct FullTask {
    int row, partition, keys;
    int2 pages;
    u32 fresh;  // rows of this step, of the same request and not behind `row`, whose token is among the keys
};
__device__ __forceinline__ FullTask full_task(const LayerArgs& a, const FullRows& s, int task) {
    FullTask t;
    const int since = task - s.first;
    t.row = __ffs(__ballot_sync(ALL_LANES, since >= 0 && since < s.count)) - 1;
    t.partition = __shfl_sync(ALL_LANES, since, t.row);
    const int position = __shfl_sync(ALL_LANES, s.position, t.row);
    t.keys = min(PARTITION, position + 1 - t.partition * PARTITION);
    const int* pages = a.pages + (long)t.row * a.page_stride + 2 * t.partition;
    t.pages.x = __ldg(pages);
    t.pages.y = t.keys > BLOCK ? __ldg(pages + 1) : t.pages.x;
    const bool own = s.id == __shfl_sync(ALL_LANES, s.id, t.row) && s.position <= position;
    t.fresh = __ballot_sync(ALL_LANES, own && s.position / PARTITION == t.partition);
    return t;
}

// Make and keep the keys and values of the rows in `fresh`, a warp a head.
__device__ __forceinline__ void make_fresh(const LayerArgs& a, u32 fresh) {
    const int count = 2 * __popc(fresh);
#pragma unroll 1
    for (int item = warp_id(); item < count; item += WARPS) {
        u32 rows = fresh;
        for (int i = 0; i < item / 2; i++) rows &= rows - 1;
        const int row = __ffs(rows) - 1;
        const bool key = item % 2 == 0;
        float x[4];
        make_head(a, key ? K_HEAD : V_HEAD, row, x);
        keep_own(a, key ? K_HEAD : V_HEAD, __ldg(a.slots + row), x);
    }
    __syncthreads();
}

__device__ __forceinline__ void make_row_queries(const LayerArgs& a, int row, SplitShared& shared) {
    float x[4];
    make_head(a, warp_id(), row, x);
    put_query(warp_id(), x, shared);
}

// Whether keys and values of the next task are asked for while one is worked on: bf16 has no registers
// left for them.
constexpr bool FULL_AHEAD = KV_KIND != BF16;

// What a block may fetch before the projection is done: keys and values of its first task, unless
// they are of this step.
struct FullAhead {
    FullRows rows;
    FullTask now;
    int task, end;  // the block's
    bool there;     // keys and values of `now` are asked for
    Keys keys;
    Values values;
};
__device__ __forceinline__ void load_partition(const LayerArgs& a, const FullTask& t, SplitShared& shared,
                                               Keys& keys, Values& values) {
    load_keys(a, t.pages, t.keys, keys);
    load_values(a, t.pages, t.keys, shared.values, values);
    load_scales(a, t.pages, t.keys, keys);
}
__device__ __forceinline__ void fetch_full(const LayerArgs& a, FullAhead& ahead, char* smem) {
    ahead.rows = full_rows(a);
    const int tasks = ahead.rows.tasks, block = blockIdx.x;
    ahead.task = block * tasks / BLOCKS, ahead.end = (block + 1) * tasks / BLOCKS;
    ahead.now = {};
    ahead.there = false;
    if (ahead.task == ahead.end) return;
    ahead.now = full_task(a, ahead.rows, ahead.task);
    ahead.there = FULL_AHEAD && !ahead.now.fresh;
    if (ahead.there)
        load_partition(a, ahead.now, *reinterpret_cast<SplitShared*>(smem), ahead.keys, ahead.values);
}

// ---- merging ---------------------------------------------------------------------------------

struct Merged {
    float4 sum;  // numbers 4 lane ... 4 lane + 3 of sum p v
    float best, total;
    __device__ __forceinline__ float4 mean() const {
        const float share = 1.0f / total;
        return make_float4(share * sum.x, share * sum.y, share * sum.z, share * sum.w);
    }
};

// The lines `lines` and those behind it, `count` of them and 32 at most, in their order; HEADS lines
// apart.
__device__ __forceinline__ Merged merge_lines(const float* lines, int count) {
    constexpr int AT_ONCE = 8, APART = HEADS * LINE;
    const int lane = lane_id();
    float4 end = make_float4(minus_infinity(), 0.0f, 0.0f, 0.0f);
    if (lane < count) end = load_l2(lines + lane * APART + SHARE);
    Merged m = {};
    float factor = 0, total = 0;
#pragma unroll 1
    for (int first = 0; first < count; first += AT_ONCE) {
        ShareWords parts[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) parts[i] = load_share(lines + min(first + i, count - 1) * APART);
        if (first == 0) {
            m.best = warp_max(end.x);
            const float size = exp2_of(end.x - m.best);
            factor = size * end.z, total = size * end.y;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (first + i >= count) break;  // behind the last line it is read again
            const float f = __shfl_sync(ALL_LANES, factor, first + i);
            const float4 part = share_of(parts[i]);
            m.sum.x += f * part.x, m.sum.y += f * part.y, m.sum.z += f * part.z, m.sum.w += f * part.w;
            m.total += __shfl_sync(ALL_LANES, total, first + i);
        }
    }
    return m;
}

// Write what was merged as a line.
__device__ __forceinline__ void write_merged(const Merged& m, float* line) {
    float4 mean = m.mean();
    float weight = m.total;
    if (HALF_LINES) {
        float back;
        const float most = fmaxf(fmaxf(fabsf(mean.x), fabsf(mean.y)), fmaxf(fabsf(mean.z), fabsf(mean.w)));
        const float scale = f16_scale(warp_max(most), back);
        weight *= back;
        store_two(line + 2 * lane_id(), to_f16x2(scale * mean.x, scale * mean.y), to_f16x2(scale * mean.z, scale * mean.w));
    } else {
        store_four(line + 4 * lane_id(), mean);
    }
    if (lane_id() == 0) store_four(line + SHARE, make_float4(m.best, m.total, weight, 0.0f));
}

// Count `n` more of `wanted`, behind what the block wrote. Return whether that was the last of them;
// the counter is 0 again then. All threads call it.
__device__ __forceinline__ bool count_last(u32* counter, int n, int wanted, SplitShared& shared) {
    __syncthreads();
    if (threadIdx.x == 0) {
        shared.done = count_up(counter, n) + n;
        if (shared.done == wanted) *counter = 0;
    }
    __syncthreads();
    return shared.done == wanted;
}

// `n` partitions of a row's group are written: merge what is complete with that.
__device__ __forceinline__ void finish_group(const LayerArgs& a, const FullRows& s, int row, int group, int n,
                                             SplitShared& shared) {
    const int count = __shfl_sync(ALL_LANES, s.count, row), groups = (count + GROUP - 1) / GROUP;
    const int head = warp_id();
    int size = min(GROUP, count - group * GROUP);
    u32* counts = a.merge_counts + row * (1 + REACH_GROUPS);
    if (!count_last(counts + 1 + group, n, size, shared)) return;
    const float* lines = a.partials + (((long)row * ROW_LINES + group * GROUP) * HEADS + head) * LINE;
    Merged m;
    // Twice at most, with one copy of the code: the group's partitions, then the row's groups.
    for (int level = 0;; level++) {
        m = merge_lines(lines, size);
        if (level || groups == 1) break;
        float* merged = a.partials + (((long)row * ROW_LINES + REACH_PARTITIONS) * HEADS + head) * LINE;
        write_merged(m, merged + group * HEADS * LINE);
        if (!count_last(counts, 1, groups, shared)) return;
        lines = merged, size = groups;
    }
    keep_merged(a, row, m.mean());
}

// ---- the stage -------------------------------------------------------------------------------

// A pad's output is 0; the last blocks write it, which have the least to do.
__device__ __forceinline__ void clear_pads(const LayerArgs& a, const FullRows& s) {
    const int row = BLOCKS - 1 - blockIdx.x;
    if (row < ROWS && __shfl_sync(ALL_LANES, s.id, row) < 0) keep_merged(a, row, make_float4(0, 0, 0, 0));
}

// `landed` is called once keys and values of the block's last task are there: memory has nothing more
// to do for this block then.
template <class Landed = Nothing>
__device__ __forceinline__ void stage_full(const LayerArgs& a, FullAhead& ahead, char* smem,
                                           const Landed& landed = Landed()) {
    SplitShared& shared = *reinterpret_cast<SplitShared*>(smem);
    const FullRows& s = ahead.rows;
    FullTask now = ahead.now;
    Keys& keys = ahead.keys;
    Values& values = ahead.values;
    bool there = ahead.there;
    int row = -1, written = 0;  // whose queries are made; partitions of the group that are not counted yet
    mark(a, 20);
    clear_pads(a, s);
#pragma unroll 1
    for (int task = ahead.task; task < ahead.end; task++) {
        if (now.row != row) make_row_queries(a, row = now.row, shared);
        if (!there) {
            make_fresh(a, now.fresh);
            load_partition(a, now, shared, keys, values);
        }
        const bool last = task + 1 == ahead.end;
        const FullTask next = full_task(a, s, last ? task : task + 1);
        const bool ends = last || next.row != now.row || next.partition % GROUP == 0;  // the block's part of a group
        __syncthreads();
        float scores[4], scores8[4], mixed[4][4] = {};
        score_keys(keys, now.keys, shared, scores, scores8);
        __syncthreads();
        const float up = keep_probabilities(keys, shared, scores, scores8);
        there = FULL_AHEAD && !last && !next.fresh;
        if (there) load_keys(a, next.pages, next.keys, keys), load_scales(a, next.pages, next.keys, keys);
        copies_done();
        __syncthreads();
        if (last) landed();
        mix_values(values, shared, mixed);
        write_lines(mixed, up, shared, a.partials + ((long)now.row * ROW_LINES + now.partition) * HEADS * LINE);
        __syncthreads();  // the next values take the place of the sums
        if (there) load_values(a, next.pages, next.keys, shared.values, values);
        written++;
        if (ends) {
            finish_group(a, s, now.row, now.partition / GROUP, written, shared);
            written = 0;
        }
        now = next;
    }
    mark(a, 27);
}
