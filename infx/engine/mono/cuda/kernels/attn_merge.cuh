// Partitions of a row merged in their order: attention's output of a head.
#pragma once
#include "attn_split.cuh"

// The lane's four numbers of a line's share, as loaded and as they are.
struct ShareWords {
    u32 of[HALF_LINES ? 2 : 4];
};
__device__ __forceinline__ ShareWords load_share(const float* line) {
    ShareWords x;
    if constexpr (HALF_LINES) {
        const uint2 v = load_l2_u32x2(line + 2 * lane_id());
        x.of[0] = v.x, x.of[1] = v.y;
    } else {
        const uint4 v = load_l2((const void*)(line + 4 * lane_id()));
        x.of[0] = v.x, x.of[1] = v.y, x.of[2] = v.z, x.of[3] = v.w;
    }
    return x;
}
__device__ __forceinline__ float4 share_of(const ShareWords& x) {
    if constexpr (HALF_LINES)
        return make_float4(low_f16(x.of[0]), low_f16(x.of[0] >> 16), low_f16(x.of[1]), low_f16(x.of[1] >> 16));
    else
        return make_float4(__uint_as_float(x.of[0]), __uint_as_float(x.of[1]), __uint_as_float(x.of[2]),
                           __uint_as_float(x.of[3]));
}

// x = attention's output of `head` of `row`, numbers 4 lane ... 4 lane + 3; 0 for a pad.
__device__ __forceinline__ float4 merge_head(const LayerArgs& a, int row, int head) {
    // One load of both, so that no second trip hangs on the first: lane 0 the id, others the position.
    const int known = __ldg((lane_id() ? a.positions : a.batch_ids) + row);
    const float* lines = a.partials + ((long)row * PARTITIONS * HEADS + head) * LINE;
    float4 parts[PARTITIONS], ends[PARTITIONS];
#pragma unroll
    for (int i = 0; i < PARTITIONS; i++) {
        const float* line = lines + i * (HEADS * LINE);
        parts[i] = share_of(load_share(line));
        ends[i] = load_l2(line + SHARE);
    }
    // All lines are asked for in one trip, with what says how many count; others hold anything.
    const int id = __shfl_sync(ALL_LANES, known, 0), position = __shfl_sync(ALL_LANES, known, 1);
    const int count = id < 0 ? 0 : (seen_keys(position) + PARTITION - 1) / PARTITION;
    float best = minus_infinity(), total = 0;
#pragma unroll
    for (int i = 0; i < PARTITIONS; i++) best = i < count ? fmaxf(best, ends[i].x) : best;
    float4 sum = {};
#pragma unroll
    for (int i = 0; i < PARTITIONS; i++) {
        if (i >= count) break;
        const float size = exp2_of(ends[i].x - best), factor = size * ends[i].z;
        sum.x += factor * parts[i].x, sum.y += factor * parts[i].y;
        sum.z += factor * parts[i].z, sum.w += factor * parts[i].w;
        total += size * ends[i].y;
    }
    const float share = count ? 1.0f / total : 0.0f;
    return make_float4(share * sum.x, share * sum.y, share * sum.z, share * sum.w);
}

// Keep a head's output in f16, times the power of two that brings its largest number to 2^14.
__device__ __forceinline__ void keep_attended(float4 x, u16* to, float* back) {
    const float most = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
    float inverse;
    const float scale = f16_scale(warp_max(most), inverse);
    const uint2 pair = {to_f16x2(scale * x.x, scale * x.y), to_f16x2(scale * x.z, scale * x.w)};
    *(uint2*)(to + 4 * lane_id()) = pair;
    if (lane_id() == 0) *back = inverse;
}

// Write attention's output of the warp's head.
__device__ __forceinline__ void keep_merged(const LayerArgs& a, int row, float4 merged) {
    const int head = warp_id();
    *(float4*)(a.merged + ((long)head * ROWS + row) * DIM + 4 * lane_id()) = merged;
    const int place = head * ROWS + row;
    keep_attended(merged, a.attended + place * DIM, a.attended_back + place);
}

// All heads of a row, a warp each.
__device__ __forceinline__ void stage_merge(const LayerArgs& a, int row) {
    keep_merged(a, row, merge_head(a, row, warp_id()));
}

// Behind a partition of a row: whoever finishes a row's last one merges them all. The order of the
// sum is that of the partitions, whoever adds them, and no stage comes between split and merge.
__device__ __forceinline__ void finish_task(const LayerArgs& a, const StepRows& s, int task,
                                            char* smem) {
    const int row = task / PARTITIONS, partition = task % PARTITIONS;
    if (__shfl_sync(ALL_LANES, s.id, row) < 0) {
        if (partition == 0) stage_merge(a, row);
        return;
    }
    const int seen = seen_keys(__shfl_sync(ALL_LANES, s.position, row));
    const int count = (seen + PARTITION - 1) / PARTITION;
    if (partition >= count) return;
    int& done = reinterpret_cast<SplitShared*>(smem)->done;
    __syncthreads();
    if (threadIdx.x == 0) {
        done = count_up(a.merge_counts + row, 1) + 1;
        if (done == count) a.merge_counts[row] = 0;
    }
    __syncthreads();
    if (done == count) stage_merge(a, row);
}

__device__ __forceinline__ void stage_attend(const LayerArgs& a, const StepRows& s, int task,
                                             char* smem, Split how = STAGED_BEFORE) {
    stage_split(a, s, task, smem, how);
    finish_task(a, s, task, smem);
}
