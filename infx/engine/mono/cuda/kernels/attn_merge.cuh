// Partitions of a row merged in their order: attention's output of a head.
#pragma once
#include "attn_split.cuh"

// x = attention's output of `head` of `row`, numbers 4 lane ... 4 lane + 3; 0 for a pad.
__device__ __forceinline__ float4 merge_head(const LayerArgs& a, int row, int head) {
    if (__ldg(a.batch_ids + row) < 0) return make_float4(0, 0, 0, 0);
    const int count = (seen_keys(__ldg(a.positions + row)) + PARTITION - 1) / PARTITION;
    const float* lines = a.partials + ((long)row * PARTITIONS * HEADS + head) * LINE;
    float4 parts[PARTITIONS];
    float2 ends[PARTITIONS];
#pragma unroll
    for (int i = 0; i < PARTITIONS; i++) {
        // Behind the last partition it is read again, and counts nothing.
        const float* line = lines + min(i, count - 1) * (HEADS * LINE);
        parts[i] = load_l2(line + 4 * lane_id());
        ends[i] = __ldcg((const float2*)(line + DIM));
    }
    float best = ends[0].x, total = 0;
#pragma unroll
    for (int i = 1; i < PARTITIONS; i++) best = fmaxf(best, ends[i].x);
    float4 sum = {};
#pragma unroll
    for (int i = 0; i < PARTITIONS; i++) {
        const float factor = i < count ? exp2_of(ends[i].x - best) : 0.0f;
        sum.x += factor * parts[i].x, sum.y += factor * parts[i].y;
        sum.z += factor * parts[i].z, sum.w += factor * parts[i].w;
        total += factor * ends[i].y;
    }
    const float share = 1.0f / total;
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

// One partition of a row; whoever finishes a row's last one merges them all. The order of the sum
// is that of the partitions, whoever adds them, and no stage comes between split and merge.
__device__ __forceinline__ void stage_attend(const LayerArgs& a, const StepRows& s, int task,
                                             char* smem) {
    stage_split(a, s, task, smem);
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
