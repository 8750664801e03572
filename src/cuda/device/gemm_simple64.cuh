// float64 products for gradient checks: plain, one kernel for all storage orders, element loads. Same schedule, same epilogue.
#pragma once

#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/load/rows.cuh"
#include "cuda/device/ptx/dependent.cuh"
#include "cuda/device/shared_storage.cuh"
#include "problem/problem.h"

namespace ggm::cuda {

template <int kernel>
struct Simple64Shared : SharedStorage<kernel, 8, 1, double> {
  Tile tile;
};

// One step of K of an operand to shared memory [tile_k][extent + 1]; `scale` (or nullptr) multiplies the rows of a strided
// operand.
template <int extent, int tile_k, int threads>
__device__ __forceinline__ void load_step64(const Operand& operand, bool contiguous, const double* scale, int step,
                                            double* to) {
  for (int at = threadIdx.x; at < extent * tile_k; at += threads) {
    // Neighbouring threads take neighbours in memory.
    const int k = contiguous ? at % tile_k : at / extent, outer = contiguous ? at / tile_k : at % extent;
    const std::int64_t kk = std::int64_t{step} * tile_k + k;
    const std::int64_t row = contiguous ? operand.row0 + std::int64_t{outer} : kk;
    const std::int64_t column = contiguous ? kk : operand.column0 + std::int64_t{outer};
    double v = 0;
    if (row < operand.row_end && column < operand.column_end) {
      const std::int32_t memory_row = operand.memory_row(row);
      if (memory_row >= 0) {
        v = __ldg(reinterpret_cast<const double*>(operand.base + memory_row * operand.ld_bytes) + column);
        if (scale != nullptr) v = __dmul_rn(__ldg(scale + row), v);
      }
    }
    to[k * (extent + 1) + outer] = v;
  }
}

template <int kernel>
__global__ void __launch_bounds__(kShape<kernel>.threads(), kShape<kernel>.blocks)
    gemm_simple64(const __grid_constant__ GemmCall call) {
  ptx::begin_dependent();
  constexpr TileShape shape = kShape<kernel>;
  constexpr int kColumns = shape.n / 32, kRows = shape.m / shape.warps();  // of a thread, its columns 32 apart
  extern __shared__ __align__(128) char raw[];
  auto& shared = *reinterpret_cast<Simple64Shared<kernel>*>(raw);
  double* a_step = reinterpret_cast<double*>(shared.stages[0].a);
  double* b_step = reinterpret_cast<double*>(shared.stages[0].b);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool a_contiguous = call.a_order == Order::inner_contiguous, b_contiguous = call.b_order == Order::inner_contiguous;
  const TileClaim<shape.m, shape.n> claim(call);
  for (;;) {
    if (warp == 0) claim.next(shared.tile);
    __syncthreads();
    const Tile& tile = shared.tile;
    if (tile.group < 0) break;
    const double* scale =
        call.scaled == GemmCall::Scale::none ? nullptr : reinterpret_cast<const double*>(call.scale) + tile.desc.first_row;
    const Operand a =
        a_contiguous ? operand_a<Order::inner_contiguous>(call, tile, 8, 0) : operand_a<Order::inner_strided>(call, tile, 8, 0);
    const Operand b = b_contiguous   ? operand_b<Order::inner_contiguous, Order::inner_contiguous>(call, tile, 8, 0)
                      : a_contiguous ? operand_b<Order::inner_contiguous, Order::inner_strided>(call, tile, 8, 0)
                                     : operand_b<Order::inner_strided, Order::inner_strided>(call, tile, 8, 0);
    double sums[kRows][kColumns] = {};
    const int steps = static_cast<int>((tile.desc.k + std::int64_t{shape.k} - 1) / shape.k);
    for (int step = 0; step < steps; ++step) {
      load_step64<shape.m, shape.k, shape.threads()>(a, a_contiguous, call.scaled == GemmCall::Scale::a ? scale : nullptr, step,
                                                     a_step);
      load_step64<shape.n, shape.k, shape.threads()>(b, b_contiguous, call.scaled == GemmCall::Scale::b ? scale : nullptr, step,
                                                     b_step);
      __syncthreads();
      for (int k = 0; k < shape.k; ++k)
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kColumns; ++j)
            sums[i][j] =
                __fma_rn(a_step[k * (shape.m + 1) + warp * kRows + i], b_step[k * (shape.n + 1) + lane + 32 * j], sums[i][j]);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) shared.staging[(warp * kRows + i) * kStagingPitch + lane + 32 * j] = sums[i][j];
    __syncthreads();
    run_epilogue<double, shape.m, shape.warps()>(call, tile, shared.staging);
    __syncthreads();
  }
}

}  // namespace ggm::cuda
