// Exact float32 products: fused multiply-adds on the CUDA cores, never TF32. Persistent, tiles claimed one by one, cp.async
// pipeline. This file only wires the parts; launched by src/cuda/gemm.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/load/scale_loader.cuh"
#include "cuda/device/load/simt_loader.cuh"
#include "cuda/device/mma/simt_tile.cuh"
#include "cuda/device/shared_storage.cuh"

namespace ggm::cuda {

template <int kernel>
using SimtShared = SharedStorage<kernel, 4, kSimtPad, float>;

// All steps of K of one tile; barriers as in mma_main_loop.
template <int kernel, Order a_order, Order b_order>
__device__ __forceinline__ void simt_main_loop(const GemmCall& call, const Tile& tile, SimtShared<kernel>& shared,
                                               SimtTile<kernel>& thread_tile) {
  constexpr TileShape shape = kShape<kernel>;
  using Thread = SimtTile<kernel>;
  constexpr bool may_scale = a_order == Order::inner_strided && b_order == Order::inner_strided;
  if (threadIdx.x == 0) {
    shared.a = operand_a<a_order>(call, tile, 4);
    shared.b = operand_b<a_order, b_order>(call, tile, 4);
    shared.scale_rows = scale_rows(call, tile);
  }
  __syncthreads();
  SimtLoader<shape.m, shape.k, shape.threads(), a_order> a(shared.a, shared.a_row, call.groups);
  SimtLoader<shape.n, shape.k, shape.threads(), b_order> b(shared.b, shared.b_row, call.groups);
  ScaleLoader<shape.k> scale(shared.scale_rows);
  a.begin();
  b.begin();
  if constexpr (may_scale) scale.begin();
  __syncthreads();  // row tables

  const int steps = static_cast<int>((tile.desc.k + std::int64_t{shape.k} - 1) / shape.k);
  const std::uint32_t a_stages = ptx::shared_address(shared.operands.a), b_stages = ptx::shared_address(shared.operands.b);
  const auto issue = [&](int step, int stage) {
    if (step < steps) {
      a.issue(a_stages + stage * sizeof(shared.operands.a[0]), step);
      b.issue(b_stages + stage * sizeof(shared.operands.b[0]), step);
      if constexpr (may_scale) scale.issue(shared.scale[stage], step);
    }
    ptx::cp_async_commit();
  };
  const auto fetch = [&](typename Thread::Fragments& f, int stage, int k) {
    thread_tile.load(f, reinterpret_cast<const float*>(shared.operands.a[stage]),
                     reinterpret_cast<const float*>(shared.operands.b[stage]), k);
    if constexpr (may_scale) {
      if (call.scaled == GemmCall::Scale::a) Thread::scale_a(f, shared.scale[stage][k]);
      if (call.scaled == GemmCall::Scale::b) Thread::scale_b(f, shared.scale[stage][k]);
    }
  };

#pragma unroll
  for (int s = 0; s < shape.stages - 1; ++s) issue(s, s);
  typename Thread::Fragments fragments[2];
  int stage = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait<shape.stages - 2>();
    __syncthreads();
    fetch(fragments[0], stage, 0);
    issue(step + shape.stages - 1, stage == 0 ? shape.stages - 1 : stage - 1);
#pragma unroll
    for (int k = 0; k < shape.k; ++k) {
      if (k + 1 < shape.k) fetch(fragments[(k + 1) % 2], stage, k + 1);
      thread_tile.multiply(fragments[k % 2]);
    }
    stage = stage + 1 == shape.stages ? 0 : stage + 1;
  }
  ptx::cp_async_wait<0>();
}

template <int kernel, Order a_order, Order b_order>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_simt(const __grid_constant__ GemmCall call) {
  constexpr TileShape shape = kShape<kernel>;
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<SimtShared<kernel>*>(raw);
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
    SimtTile<kernel> thread_tile;
    simt_main_loop<kernel, a_order, b_order>(call, tile, shared, thread_tile);
    if (claims) claim.resolve(shared.tile[current ^ 1]);
    __syncthreads();  // the stages are free
    thread_tile.template stage<kStagingPitch>(shared.staging);
    __syncthreads();
    run_epilogue<float, shape.m, shape.warps()>(call, tile, shared.staging);
    __syncthreads();  // the staging is free, the next tile is known
  }
}

}  // namespace ggm::cuda
