// Numbers of one tensor-parallel rank of MiniMax-M3 at TP4, and of the launch. A build may replace
// those between #ifndef (one build a width); everything else follows.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
typedef unsigned char u8;

#ifndef ROWS
#define ROWS 1  // rows of a step, pads included: 1 to 16
#endif
#ifndef BLOCKS
#define BLOCKS 132  // one block an SM of an H200
#endif

// The kind of layer, numbered as in infx/engine/mono/shape.py: M3's first layers attend to all keys
// and have a dense MLP, M3.1's choose blocks as the sparse ones do and have a dense MLP.
#define DENSE 0
#define SPARSE 1
#define SPARSE_DENSE 2
#ifndef LAYER_KIND
#define LAYER_KIND SPARSE
#endif
constexpr bool INDEXED = LAYER_KIND != DENSE, DENSE_MLP = LAYER_KIND != SPARSE;

constexpr int THREADS = 512, WARPS = 16;
constexpr int HIDDEN = 6144, HEADS = 16, DIM = 128, ROTARY = 64;
// Heads of the fused projection: 16 q, k, the indexer's q and k (where there is one), v; all but v
// are normed and turned.
constexpr int K_HEAD = 16, IQ_HEAD = 17, IK_HEAD = 18, V_HEAD = INDEXED ? 19 : 17, QKV_HEADS = V_HEAD + 1;
constexpr int QKV = QKV_HEADS * DIM;
constexpr int BLOCK = 128, TOPK_BLOCKS = 16, PARTITION = 256;
constexpr int REACH_PAGES = 1024;  // of the longest context: 131,072 tokens
constexpr int PARTITIONS = TOPK_BLOCKS * BLOCK / PARTITION;
constexpr int EXPERTS = 128, TOPK = 4, SLOTS = TOPK + 1, EXPERT_SIZE = 768, DENSE_SIZE = 3072;
constexpr int RANKS = 4;  // the all-reduce is a self-sum: each rank's part is taken to be this one's
constexpr float NORM_EPS = 1e-6f, ROUTED_SCALE = 2.0f, SWIGLU_ALPHA = 1.702f, SWIGLU_LIMIT = 7.0f;

// Cuts of sums. A part of K goes to another block, a slice of K to a warp of the block; both are
// weight coordinates and the same at every width, so a row's bits do not depend on the step.
constexpr int QKV_PARTS = 4, ROUTER_PARTS = 8;

// Tiles of 16 features of the residual stream: a block has three that lie together, four blocks none.
constexpr int OUT_TILES = HIDDEN / 16, OUT_TASKS = (OUT_TILES + BLOCKS - 1) / BLOCKS, OUT_BLOCKS = OUT_TILES / OUT_TASKS;
static_assert(OUT_BLOCKS * OUT_TASKS == OUT_TILES && OUT_BLOCKS <= BLOCKS, "tiles of the stream are dealt evenly");

// Columns of a matrix instruction are rows of the step: 8 at a time.
constexpr int HALVES = (ROWS + 7) / 8;

// Shared memory of a block: what a stage computes with, then the ring that weights arrive in
// (stream.cuh). Attention stages use the first alone: the ring may hold the next stage's weights.
constexpr int STAGE_BYTES = 72 * 1024;
