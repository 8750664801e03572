// bfloat16 and float16 products on tensor cores of capability 8.0 and up: mma.sync fed by a cp.async pipeline, persistent,
// tiles claimed one by one. This file only wires the parts; launched by src/cuda/gemm.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/load/mma_loader.cuh"
#include "cuda/device/load/pipeline.cuh"
#include "cuda/device/mma/warp_tile.cuh"

namespace ggm::cuda {

template <int kernel>
using MmaShared = PipelineShared<kernel, 2, 0>;

// All steps of K of one tile. The barrier of each stage lies inside its last k16 step, whose products hide it (WarpTile::step).
// Only the weight gradient scales rows of K, and there both operands are strided. `meanwhile` runs while the first copies are
// under way.
template <bool fast, bool scaled, int kernel, typename Element, Order a_order, Order b_order, typename Meanwhile>
__device__ __forceinline__ void mma_main_loop(const GemmCall& call, const TileInputs& inputs, MmaShared<kernel>& shared,
                                              int tile_k, WarpTile<kernel, Element, a_order, b_order>& warp_tile,
                                              const Meanwhile& meanwhile) {
  constexpr TileShape shape = kShape<kernel>;
  constexpr int kSteps = shape.k / 16;
  using A = MmaCopies<shape.m, shape.k, shape.threads(), a_order>;
  using B = MmaCopies<shape.n, shape.k, shape.threads(), b_order>;
  Pipeline<MmaShared<kernel>, Element, A, B, MmaLoader<fast, A>, MmaLoader<fast, B>, !fast, scaled> steps(call, inputs, shared);

  steps.start(meanwhile);
  warp_tile.begin(steps.a(0), steps.b(0));
  int stage = 0;
#pragma unroll 1
  for (int left = tile_k / shape.k; left > 0; --left) {
    const int next = stage + 1 == shape.stages ? 0 : stage + 1;
    const std::uint32_t a = steps.a(stage), b = steps.b(stage), next_a = steps.a(next), next_b = steps.b(next);
    steps.issue(stage == 0 ? shape.stages - 1 : stage - 1);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) warp_tile.step(a, b, next_a, next_b, s, [&] { steps.arrive(next); });
    stage = next;
  }
  // Steps of 16 that lie behind K are left out, not multiplied as zeros: adding +0 could turn a -0 into +0, and other tile
  // shapes pad otherwise.
  const int live = (tile_k % shape.k + 15) / 16;
  const std::uint32_t a = steps.a(stage), b = steps.b(stage);
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
    if (s < live) warp_tile.step(a, b, a, b, s, [] {});
  ptx::cp_async_wait<0>();
}

template <int kernel, typename Element, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_mma(const __grid_constant__ GemmCall call) {
  constexpr TileShape shape = kShape<kernel>;
  constexpr bool kMayScale = a_order == Order::inner_strided && b_order == Order::inner_strided;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<MmaShared<kernel>*>(raw);
  const TileClaim<shape.m, shape.n> claim(call);
  const auto find_next = [&] {
    if (threadIdx.x < 32) claim.next(shared.next);
  };
  find_next();
  for (;;) {
    begin_tile<a_order, b_order>(call, shared.next, shared.tile, 2, shape.m, shape.n, shared.inputs);
    __syncthreads();
    const Tile& tile = shared.tile;
    if (tile.group < 0) break;
    const TileInputs& inputs = shared.inputs;
    WarpTile<kernel, Element, a_order, b_order> warp_tile;
    if (!inputs.a.fast || !inputs.b.fast) {
      mma_main_loop<false, kMayScale>(call, inputs, shared, tile.desc.k, warp_tile, find_next);
    } else if (kMayScale && inputs.scale.scale != nullptr) {
      mma_main_loop<true, kMayScale>(call, inputs, shared, tile.desc.k, warp_tile, find_next);
    } else {
      mma_main_loop<true, false>(call, inputs, shared, tile.desc.k, warp_tile, find_next);
    }
    __syncthreads();  // the stages are free
    warp_tile.template stage<kStagingPitch>(shared.staging);
    __syncthreads();
    run_epilogue<float, shape.m, shape.warps()>(call, tile, shared.staging);
    __syncthreads();  // the staging and the tile are free
  }
}

}  // namespace ggm::cuda
