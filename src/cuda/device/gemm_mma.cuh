// bfloat16 and float16 products on tensor cores of capability 8.0 and up: mma.sync fed by a cp.async pipeline, persistent,
// tiles claimed one by one. This file only wires the parts; launched by src/cuda/gemm.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/load/mma_loader.cuh"
#include "cuda/device/load/scale_loader.cuh"
#include "cuda/device/mma/warp_tile.cuh"
#include "cuda/device/shared_storage.cuh"

namespace ggm::cuda {

template <int kernel>
using MmaShared = SharedStorage<kernel, 2, 0, float>;

// All steps of K of one tile. A stage is overwritten two barriers after its last read: the one at the head of each step serves
// both as "this stage has arrived for all threads" and "all warps are done with the stage before".
template <int kernel, typename Element, Order a_order, Order b_order>
__device__ __forceinline__ void mma_main_loop(const GemmCall& call, const Tile& tile, MmaShared<kernel>& shared,
                                              WarpTile<kernel, Element, a_order, b_order>& warp_tile) {
  constexpr TileShape shape = kShape<kernel>;
  using Warp = WarpTile<kernel, Element, a_order, b_order>;
  if (threadIdx.x == 0) {
    shared.a = operand_a<a_order>(call, tile, 2);
    shared.b = operand_b<a_order, b_order>(call, tile, 2);
    shared.scale_rows = scale_rows(call, tile);
  }
  __syncthreads();
  MmaLoader<shape.m, shape.k, shape.threads(), a_order> a(shared.a, shared.a_row, call.groups);
  MmaLoader<shape.n, shape.k, shape.threads(), b_order> b(shared.b, shared.b_row, call.groups);
  ScaleLoader<shape.k> scale(shared.scale_rows);
  a.begin();
  b.begin();
  if constexpr (Warp::kMayScale) scale.begin();
  __syncthreads();  // row tables

  const int k = tile.desc.k;
  const int steps = static_cast<int>((k + std::int64_t{shape.k} - 1) / shape.k);
  const std::uint32_t a_stages = ptx::shared_address(shared.operands.a), b_stages = ptx::shared_address(shared.operands.b);
  const auto issue = [&](int step, int stage) {
    if (step < steps) {
      a.issue(a_stages + stage * sizeof(shared.operands.a[0]), step);
      b.issue(b_stages + stage * sizeof(shared.operands.b[0]), step);
      if constexpr (Warp::kMayScale) scale.issue(shared.scale[stage], step);
    }
    ptx::cp_async_commit();  // empty groups keep the count of the wait right
  };

#pragma unroll
  for (int s = 0; s < shape.stages - 1; ++s) issue(s, s);
  int stage = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait<shape.stages - 2>();
    __syncthreads();
    const MmaStage operands{a_stages + stage * static_cast<std::uint32_t>(sizeof(shared.operands.a[0])),
                            b_stages + stage * static_cast<std::uint32_t>(sizeof(shared.operands.b[0])), shared.scale[stage]};
    warp_tile.begin(operands);
    issue(step + shape.stages - 1, stage == 0 ? shape.stages - 1 : stage - 1);
    // Steps of 16 that lie behind K are left out, not multiplied as zeros: adding +0 could turn a -0 into +0, and other tile
    // shapes pad otherwise.
    const int live = (min(k - step * shape.k, shape.k) + 15) / 16;
#pragma unroll
    for (int s = 0; s < Warp::kSteps; ++s)
      if (s < live) warp_tile.step(operands, s);
    stage = stage + 1 == shape.stages ? 0 : stage + 1;
  }
  ptx::cp_async_wait<0>();
}

template <int kernel, typename Element, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_mma(const __grid_constant__ GemmCall call) {
  constexpr TileShape shape = kShape<kernel>;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<MmaShared<kernel>*>(raw);
  TileClaim<shape.m, shape.n> claim(call);
  const bool claims = threadIdx.x < 32;
  if (claims) {
    claim.claim();
    claim.resolve(shared.tile[0]);
  }
  __syncthreads();
  for (int current = 0; shared.tile[current].group >= 0; current ^= 1) {
    const Tile& tile = shared.tile[current];
    if (claims) claim.claim();
    WarpTile<kernel, Element, a_order, b_order> warp_tile(call.scaled);
    mma_main_loop<kernel, Element, a_order, b_order>(call, tile, shared, warp_tile);
    if (claims) claim.resolve(shared.tile[current ^ 1]);
    __syncthreads();  // the stages are free
    warp_tile.template stage<kStagingPitch>(shared.staging);
    __syncthreads();
    run_epilogue<float, shape.m, shape.warps()>(call, tile, shared.staging);
    __syncthreads();  // the staging is free, the next tile is known
  }
}

}  // namespace ggm::cuda
