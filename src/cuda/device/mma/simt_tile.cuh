// What one thread multiplies in the float32 kernels: a register block of sums, fed by 128-bit shared loads, one fused
// multiply-add for each element and k in ascending order.
#pragma once

#include "cuda/device/load/simt_loader.cuh"
#include "cuda/device/tile_shape.h"
#include "problem/problem.h"

namespace ggm::cuda {

// The rows of A or the columns of B that one thread owns: fours of neighbours. The fours of a warp's lanes lie side by side,
// the next four of a lane behind those of all lanes. `swapped`: pairs of neighbours have changed places in shared memory.
template <int extent, int tile_k, int warp_extent, int lanes, bool transposed, bool swapped>
class SimtFours {
 public:
  static constexpr int kCount = warp_extent / lanes, kFours = kCount / 4;
  static_assert(kCount % 4 == 0 && warp_extent % 32 == 0, "whole fours, and warps begin at whole 128 bytes");

  __device__ __forceinline__ SimtFours(int warp, int lane) : first_(warp * warp_extent + lane * 4) {}

  __device__ __forceinline__ int row(int i) const { return first_ + i / 4 * (4 * lanes) + i % 4; }

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
template <int kernel, Order a_order, Order b_order>
class SimtTile {
 public:
  static constexpr TileShape shape = kShape<kernel>;
  static constexpr int kLanesM = 4, kLanesN = 8;
  using Rows = SimtFours<shape.m, shape.k, shape.m / shape.warps_m, kLanesM, a_order == Order::inner_contiguous, false>;
  using Columns = SimtFours<shape.n, shape.k, shape.n / shape.warps_n, kLanesN, b_order == Order::inner_contiguous,
                            kColumnsSwapped<kernel>>;
  static constexpr int kM = Rows::kCount, kN = Columns::kCount;
  static_assert(shape.k % 2 == 0, "both fragment buffers are used equally often in a step");

  // Lanes n and n ^ 1 have the same rows, n and n ^ 2 the same columns: so a 16-byte load of a warp takes two accesses to
  // shared memory; it would take four otherwise.
  __device__ __forceinline__ SimtTile()
      : rows_(warp() / shape.warps_n, lane() / 2 % 2 + lane() / 16 * 2),
        columns_(warp() % shape.warps_n, lane() % 2 + lane() / 4 % 4 * 2) {
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) sums_[i][j] = 0.0f;
  }

  // The fragments of a step's first k; must come before its k = 0. `fours`, here and below: how many of the thread's fours of
  // rows are multiplied.
  template <int fours>
  __device__ __forceinline__ void begin(std::uint32_t a, std::uint32_t b) {
    load<fours>(fragments_[0], a, b, 0);
  }

  // Multiplies k, while the fragments of `next_k` of the step at `a`, `b` are on their way. Every second row goes backwards:
  // its first column's value is still at hand.
  template <int fours>
  __device__ __forceinline__ void multiply(std::uint32_t a, std::uint32_t b, int k, int next_k) {
    load<fours>(fragments_[(k + 1) % 2], a, b, next_k);
    const Fragments& f = fragments_[k % 2];
#pragma unroll
    for (int i = 0; i < 4 * fours; ++i)
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const int j = i % 2 == 0 ? n : kN - 1 - n;
        sums_[i][j] = __fmaf_rn(f.a[i], f.b[j], sums_[i][j]);
      }
  }

  template <int pitch>
  __device__ __forceinline__ void stage(float* staging) const {
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; j += 4)
        *reinterpret_cast<float4*>(staging + rows_.row(i) * pitch + columns_.row(j)) =
            make_float4(sums_[i][j], sums_[i][j + 1], sums_[i][j + 2], sums_[i][j + 3]);
  }

 private:
  struct Fragments {
    float a[kM], b[kN];
  };

  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }

  template <int fours>
  __device__ __forceinline__ void load(Fragments& f, std::uint32_t a, std::uint32_t b, int k) const {
#pragma unroll
    for (int q = 0; q < fours; ++q) rows_.load(f.a, a, k, q);
#pragma unroll
    for (int q = 0; q < Columns::kFours; ++q) columns_.load(f.b, b, k, q);
  }

  Rows rows_;
  Columns columns_;
  Fragments fragments_[2];
  float sums_[kM][kN];
};

}  // namespace ggm::cuda
