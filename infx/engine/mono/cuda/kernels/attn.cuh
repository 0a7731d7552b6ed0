// The attention half of a layer between its two projections, three stages of one build:
//
//   scores   heads normed, turned and kept in caches; index scores      (attn_head, attn_score)
//   split    choice of blocks, then softmax over 256 keys a task        (attn_select, attn_split)
//   merge    partitions in their order                                  (attn_merge)
#pragma once
#include "attn_merge.cuh"
#include "attn_score.cuh"

static_assert(sizeof(ScoreShared) <= STAGE_BYTES && sizeof(SplitShared) <= STAGE_BYTES, "");
