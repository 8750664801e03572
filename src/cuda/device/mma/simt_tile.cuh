// What one thread multiplies in the float32 kernels: a register block of sums, fed by 128-bit shared loads, one fused
// multiply-add for each element and k in ascending order.
#pragma once

#include "cuda/device/load/simt_loader.cuh"
#include "cuda/device/tile_shape.h"
#include "problem/problem.h"

namespace ggm::cuda {

// The rows of A or the columns of B that one thread owns: fours of neighbours. The fours of a warp's lanes lie side by side,
// the next four of a lane behind those of all lanes. `swapped`: pairs of neighbours have changed places in shared memory.
// `Spread`: which row of the tile lies at a row of shared memory.
template <int extent, int tile_k, int warp_extent, int lanes, bool transposed, bool swapped, typename Spread>
class SimtFours {
 public:
  static constexpr int kCount = warp_extent / lanes, kFours = kCount / 4;
  static_assert(kCount % 4 == 0 && warp_extent % 32 == 0, "whole fours, and warps begin at whole 128 bytes");

  __device__ __forceinline__ SimtFours(int warp, int lane) : first_(warp * warp_extent + lane * 4) {}

  __device__ __forceinline__ int row(int i) const { return Spread::row(first_) + Spread::row(i / 4 * (4 * lanes)) + i % 4; }

  __device__ __forceinline__ void load(float (&to)[kCount], std::uint32_t stage, int k, int four) const {
    float values[4];
    ptx::load_shared_16(values, four_address<extent, tile_k, lanes, transposed>(stage + first_ * 4, k, four));
#pragma unroll
    for (int e = 0; e < 4; ++e) to[four * 4 + (e ^ int{swapped})] = values[e];
  }

 private:
  int first_;
};

// NOTE: registers have two banks, even and odd numbers, and each gives one operand a cycle. A row's value is kept from one
// multiply-add to the next, so what has to be read is a column's value and a sum, and they must lie in different banks. A
// 16-byte load or store takes four registers from a multiple of four on: the columns of a four and the sums that leave in one
// store would have equal places there, and with them equal banks. So the columns of B lie swapped in pairs in shared memory.
// Measured on an H200, two warps a scheduler: 1.00 multiply-adds a cycle instead of 0.92.
template <int kernel, Order a_order, Order b_order, bool spread = false>
class SimtTile {
 public:
  static constexpr TileShape shape = kShape<kernel>;
  static constexpr int kLanesM = 4, kLanesN = 8;
  using Rows = SimtFours<shape.m, shape.k, shape.m / shape.warps_m, kLanesM, a_order == Order::inner_contiguous, false,
                         RowSpread<kernel, spread>>;
  using Columns = SimtFours<shape.n, shape.k, shape.n / shape.warps_n, kLanesN, b_order == Order::inner_contiguous,
                            kColumnsSwapped<kernel>, RowsInOrder>;
  static constexpr int kM = Rows::kCount, kN = Columns::kCount;
  static_assert(shape.k % 2 == 0, "both buffers of fragments are used equally often in a step");

  // Lanes n and n ^ 1 have the same rows, n and n ^ 2 the same columns: so a 16-byte load of a warp takes two accesses to
  // shared memory; it would take four otherwise.
  __device__ __forceinline__ SimtTile() : rows_(rows(threadIdx.x)), columns_(columns(threadIdx.x)) {
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) sums_[i][j] = 0.0f;
  }

  // The fragments of a step's first k; must come before its k = 0. `fours`, here and below: how many of the thread's fours of
  // rows are multiplied.
  template <int fours>
  __device__ __forceinline__ void begin(std::uint32_t a, std::uint32_t b) {
#pragma unroll
    for (int q = 0; q < fours; ++q) rows_.load(a_[0], a, 0, q);
#pragma unroll
    for (int q = 0; q < Columns::kFours; ++q) columns_.load(b_[0], b, 0, q);
  }

  // Multiplies k, while the fragments of `next_k` of the step at `a`, `b` are on their way. Every second row goes backwards:
  // its first column's value is still at hand.
  template <int fours>
  __device__ __forceinline__ void multiply(std::uint32_t a, std::uint32_t b, int k, int next_k) {
#pragma unroll
    for (int q = 0; q < Columns::kFours; ++q) columns_.load(b_[(k + 1) % 2], b, next_k, q);
    if constexpr (kRowBuffers == 2)
#pragma unroll
      for (int q = 0; q < fours; ++q) rows_.load(a_[(k + 1) % 2], a, next_k, q);
#pragma unroll
    for (int q = 0; q < fours; ++q) {
#pragma unroll
      for (int i = 4 * q; i < 4 * q + 4; ++i)
#pragma unroll
        for (int n = 0; n < kN; ++n) {
          const int j = i % 2 == 0 ? n : kN - 1 - n;
          sums_[i][j] = __fmaf_rn(a_[k % kRowBuffers][i], b_[k % 2][j], sums_[i][j]);
        }
      if constexpr (kRowBuffers == 1) rows_.load(a_[0], a, next_k, q);
    }
  }

  // The thread's row i and column j of the block's tile, and the sums of columns column(j) to column(j) + 3.
  static __device__ __forceinline__ int row(int i, int thread) { return rows(thread).row(i); }
  static __device__ __forceinline__ int column(int j, int thread) { return columns(thread).row(j); }
  __device__ __forceinline__ float4 four(int i, int j) const {
    return make_float4(sums_[i][j], sums_[i][j + 1], sums_[i][j + 2], sums_[i][j + 3]);
  }

 private:
  // Where a thread has many rows, four of them are loaded again as soon as they are multiplied: they are needed when all others
  // have been.
  static constexpr int kRowBuffers = Rows::kFours >= 4 ? 1 : 2;

  static __device__ __forceinline__ Rows rows(int thread) {
    return Rows(thread / 32 / shape.warps_n, thread / 2 % 2 + thread / 16 % 2 * 2);
  }
  static __device__ __forceinline__ Columns columns(int thread) {
    return Columns(thread / 32 % shape.warps_n, thread % 2 + thread / 4 % 4 * 2);
  }

  Rows rows_;
  Columns columns_;
  float a_[kRowBuffers][kM], b_[2][kN];
  float sums_[kM][kN];
};

}  // namespace ggm::cuda
