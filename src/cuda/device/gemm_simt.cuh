// Exact float32 products: fused multiply-adds on the CUDA cores, never TF32. Persistent, tiles claimed one by one, cp.async
// pipeline. This file only wires the parts; launched by src/cuda/gemm.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/load/pipeline.cuh"
#include "cuda/device/load/simt_loader.cuh"
#include "cuda/device/mma/simt_tile.cuh"

namespace ggm::cuda {

template <int kernel>
using SimtShared = PipelineShared<kernel, 4, kSimtPad>;

// All steps of K of one tile. The barrier of each stage lies before its last k, whose values are in registers by then.
// `meanwhile` runs while the first copies are under way.
template <bool fast, int kernel, Order a_order, Order b_order, typename Meanwhile>
__device__ __forceinline__ void simt_main_loop(const GemmCall& call, const TileInputs& inputs, SimtShared<kernel>& shared,
                                               int tile_k, SimtTile<kernel>& thread_tile, const Meanwhile& meanwhile) {
  constexpr TileShape shape = kShape<kernel>;
  using A = SimtCopies<shape.m, shape.k, shape.threads(), a_order>;
  using B = SimtCopies<shape.n, shape.k, shape.threads(), b_order>;
  using LoaderA = SimtLoader<fast, A>;
  using LoaderB = SimtLoader<fast, B>;
  constexpr bool kTables = A::kContiguous || B::kContiguous, kMayScale = !A::kContiguous && !B::kContiguous;
  Pipeline<SimtShared<kernel>, float, A, B, LoaderA, LoaderB, kTables, kMayScale> steps(call, inputs, shared);

  steps.start(meanwhile);
  thread_tile.begin(shared.stages[0].a, shared.stages[0].b);
  int stage = 0;
#pragma unroll 1
  for (int left = static_cast<int>((tile_k + std::int64_t{shape.k} - 1) / shape.k); left > 0; --left) {
    const int next = stage + 1 == shape.stages ? 0 : stage + 1;
    steps.issue(stage == 0 ? shape.stages - 1 : stage - 1);
#pragma unroll
    for (int k = 0; k < shape.k; ++k) {
      const bool last = k + 1 == shape.k;
      if (last) steps.arrive(next);
      const auto& from = shared.stages[last ? next : stage];
      thread_tile.step(from.a, from.b, k, last ? 0 : k + 1);
    }
    stage = next;
  }
  ptx::cp_async_wait<0>();
}

template <int kernel, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_simt(const __grid_constant__ GemmCall call) {
  constexpr TileShape shape = kShape<kernel>;
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
    SimtTile<kernel> thread_tile;
    const bool a_fast = a_order == Order::inner_contiguous || shared.inputs.a.fast;
    const bool b_fast = b_order == Order::inner_contiguous || shared.inputs.b.fast;
    if (a_fast && b_fast) {
      simt_main_loop<true, kernel, a_order, b_order>(call, shared.inputs, shared, tile.desc.k, thread_tile, find_next);
    } else if constexpr (a_order == Order::inner_strided || b_order == Order::inner_strided) {
      simt_main_loop<false, kernel, a_order, b_order>(call, shared.inputs, shared, tile.desc.k, thread_tile, find_next);
    }
    __syncthreads();  // the stages are free
    thread_tile.template stage<kStagingPitch>(shared.staging);
    __syncthreads();
    run_epilogue<float, shape.m, shape.warps()>(call, tile, shared.staging);
    __syncthreads();  // the staging and the tile are free
  }
}

}  // namespace ggm::cuda
