// Exact float32 products: fused multiply-adds on the CUDA cores, never TF32. Persistent, tiles claimed one by one, cp.async
// pipeline. This file only wires the parts; launched by src/cuda/gemm.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/load/simt_pipeline.cuh"
#include "cuda/device/mma/simt_tile.cuh"

namespace ggm::cuda {

// All steps of K of one tile. The work that makes the next step ready lies between the products of this one, and the barrier
// before the last k, whose values are in registers by then. `fours` as in SimtTile. `meanwhile` runs while the first copies are
// under way.
//
// NOTE: the instructions of one step should stay below 32 KB, 2,048 of them: a loop of nothing but multiply-adds issued 1.00 a
// cycle with 18 KB and 0.95 with 37 KB (H200, two warps a scheduler). Here steps of 16 are as fast as steps of 8, because they
// have half as many barriers, but leave no register free.
template <bool fast, bool scaled, int fours, int kernel, Order a_order, Order b_order, typename Meanwhile>
__device__ __forceinline__ void simt_main_loop(const GemmCall& call, const TileInputs& inputs, SimtShared<kernel>& shared,
                                               int tile_k, SimtTile<kernel, a_order, b_order>& thread_tile,
                                               const Meanwhile& meanwhile) {
  constexpr TileShape shape = kShape<kernel>;
  using Steps = SimtPipeline<fast, scaled, kernel, a_order, b_order>;
  constexpr int kIssue = shape.k - 2;  // before the k that this is
  static_assert(Steps::kParts <= kIssue, "copies of another step overwrite chunks that are not arranged yet");
  Steps steps(call, inputs, shared);

  steps.start(meanwhile);
  thread_tile.template begin<fours>(steps.a(0), steps.b(0));
  unsigned step = 0;  // modulo the stages
  const std::int64_t padded = (std::int64_t{tile_k} + kSimtPadding - 1) / kSimtPadding * kSimtPadding;
#pragma unroll 1
  for (int left = static_cast<int>(padded / shape.k); left > 0; --left) {
    const unsigned next = (step + 1) % Steps::kStages;
    steps.arrive();
#pragma unroll
    for (int k = 0; k < shape.k; ++k) {
      const bool last = k + 1 == shape.k;
      if (k > 0 && k <= Steps::kParts) steps.arrange(next, k - 1);
      if (k == kIssue) steps.issue((step + Steps::kAhead) % Steps::kStages);
      if (last) __syncthreads();
      const unsigned from = last ? next : step;
      thread_tile.template multiply<fours>(steps.a(from), steps.b(from), k, last ? 0 : k + 1);
    }
    step = next;
  }
  ptx::cp_async_wait<0>();
}

template <int kernel, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_simt(const __grid_constant__ GemmCall call) {
  constexpr TileShape shape = kShape<kernel>;
  using ThreadTile = SimtTile<kernel, a_order, b_order>;
  constexpr bool kMayScale = a_order == Order::inner_strided && b_order == Order::inner_strided;
  // In a tile with few rows only the first four rows of each thread exist.
  constexpr int kFours = ThreadTile::Rows::kFours, kFewRows = 4 * ThreadTile::kLanesM;
  constexpr bool kMayBeFew = a_order == Order::inner_contiguous && shape.warps_m == 1 && kFours > 1;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<SimtShared<kernel>*>(raw);
  const TileClaim<shape.m, shape.n> claim(call);
  const auto find_next = [&] {
    if (threadIdx.x < 32) claim.next(shared.next);
  };
  find_next();
  for (;;) {
    begin_tile<a_order, b_order>(call, shared.next, shared.tile, 4, shape.m, shape.n, shared.inputs);
    __syncthreads();
    const Tile& tile = shared.tile;
    if (tile.group < 0) break;
    const TileInputs& inputs = shared.inputs;
    ThreadTile thread_tile;
    if (!inputs.a.fast || !inputs.b.fast) {
      simt_main_loop<false, kMayScale, kFours>(call, inputs, shared, tile.desc.k, thread_tile, find_next);
    } else if (kMayScale && inputs.scale.scale != nullptr) {
      simt_main_loop<true, kMayScale, kFours>(call, inputs, shared, tile.desc.k, thread_tile, find_next);
    } else if (kMayBeFew && tile.m_left <= kFewRows) {
      simt_main_loop<true, false, kMayBeFew ? 1 : kFours>(call, inputs, shared, tile.desc.k, thread_tile, find_next);
    } else {
      simt_main_loop<true, false, kFours>(call, inputs, shared, tile.desc.k, thread_tile, find_next);
    }
    __syncthreads();  // the stages are free
    thread_tile.template stage<kStagingPitch>(shared.staging);
    __syncthreads();
    run_epilogue<float, shape.m, shape.warps()>(call, tile, shared.staging);
    __syncthreads();  // the staging and the tile are free
  }
}

}  // namespace ggm::cuda
