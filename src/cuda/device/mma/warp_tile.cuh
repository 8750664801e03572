// What one warp multiplies: fragments out of swizzled shared memory, float32 accumulators, k16 step by k16 step in ascending
// order. An element is one chain of mma.sync from zero, in every tile shape the same.
#pragma once

#include "cuda/device/load/swizzle.h"
#include "cuda/device/ptx/mma.cuh"
#include "cuda/device/tile_shape.h"
#include "problem/problem.h"

namespace ggm::cuda {

// Shared-memory addresses of the stored 8x8 matrices of one operand. The swizzle repeats after eight rows and is an
// exclusive-or, so a lane computes one offset for the whole tile; a k16 step (K contiguous) or a piece of 16 outer indices (K
// strided) is one more exclusive-or, everything else a constant.
template <int extent, int tile_k, Order order>
class FragmentAddress {
 public:
  static constexpr bool kContiguous = order == Order::inner_contiguous;
  static constexpr int kChunksARow = (kContiguous ? tile_k : extent) / 8;

  // The warp's first outer index, a multiple of the power of two that it owns; the lane's matrix inside a 16x16 piece: its
  // outer half and its half of K.
  __device__ __forceinline__ FragmentAddress(int outer, int outer_half, int k_half) {
    const int line = threadIdx.x % 8;
    const int row = kContiguous ? outer + outer_half * 8 : k_half * 8, chunk = kContiguous ? k_half : outer / 8 + outer_half;
    offset_ = ((row + line) * kChunksARow + swizzled_chunk<kChunksARow>(line, chunk)) * kChunkBytes;
  }

  // k16 step s of a stage, piece i of 16 outer indices.
  __device__ __forceinline__ std::uint32_t at(std::uint32_t stage, int s, int i) const {
    constexpr int kRows = 16 * kChunksARow * kChunkBytes;
    return stage + (offset_ ^ (kContiguous ? s : i) * 2 * kChunkBytes) + (kContiguous ? i : s) * kRows;
  }

 private:
  std::uint32_t offset_;
};

template <int kernel, typename Element, Order a_order, Order b_order>
class WarpTile {
 public:
  static constexpr TileShape shape = kShape<kernel>;
  static constexpr int kM = shape.m / shape.warps_m, kN = shape.n / shape.warps_n;
  static constexpr int kFragmentsM = kM / 16, kFragmentsN = kN / 8;
  static constexpr int kPairsN = kFragmentsN / 2;  // one ldmatrix brings two column fragments
  static constexpr int kSteps = shape.k / 16;
  static constexpr int kAhead = 1, kRing = 2 * kAhead;            // row fragments under way, and their registers
  static constexpr int kBetween = kSteps * kFragmentsM - kAhead;  // calls of step()'s `between` in a stage
  static_assert(kM % 16 == 0 && kN % 16 == 0, "a warp owns whole 16x16 pieces");
  static_assert(kFragmentsM >= kAhead, "the products of kAhead row fragments hide the barrier");
  static_assert(kSteps * kFragmentsM % kRing == 0, "every stage begins in the same registers");
  static_assert((kM & (kM - 1)) == 0 && (kN & (kN - 1)) == 0, "FragmentAddress: pieces of a warp differ by an exclusive-or");
  static_assert(kSteps % 2 == 0, "both fragment buffers are used equally often in a stage");

  __device__ __forceinline__ WarpTile()
      : a_address_(warp_m(), threadIdx.x / 8 % 2, threadIdx.x / 16 % 2),
        b_address_(warp_n(), threadIdx.x / 16 % 2, threadIdx.x / 8 % 2) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums_[i][j][e] = 0.0f;
  }

  // The first fragments of a stage; must come before its step 0.
  __device__ __forceinline__ void begin(std::uint32_t a, std::uint32_t b) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load_a(a, 0, i, a_[i]);
#pragma unroll
    for (int j = 0; j < kPairsN; ++j) load_b(b, 0, j, b_[0][j]);
  }

  // k16 step `s` of the stage at `a`, `b`. Row fragments are loaded kAhead before their products and column fragments one k16
  // step before, spread between the products: two whole sets would not fit the registers. What comes after the last step is the
  // first of the stage at `next_a`, `next_b`: `arrive`, a barrier behind which that stage may be read, comes as soon as the
  // last row fragment of this one is loaded. So nothing reads this stage behind it, and the products of kAhead row fragments
  // hide it. `between`, other work on later stages, is called with 0, 1, ... kBetween - 1 before that barrier.
  template <typename Arrive, typename Between>
  __device__ __forceinline__ void step(std::uint32_t a, std::uint32_t b, std::uint32_t next_a, std::uint32_t next_b, int s,
                                       const Arrive& arrive, const Between& between) {
    const bool last = s + 1 == kSteps;
    const int next_s = last ? 0 : s + 1;
    const int first = last ? kFragmentsM - kAhead : 0;  // column fragments are loaded from this row fragment on
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
      if (last && i == first) arrive();
      std::uint32_t(&ahead)[4] = a_[(s * kFragmentsM + i + kAhead) % kRing];
      if (i + kAhead < kFragmentsM)
        load_a(a, s, i + kAhead, ahead);
      else
        load_a(last ? next_a : a, next_s, i + kAhead - kFragmentsM, ahead);
#pragma unroll
      for (int j = 0; j < kPairsN; ++j)
        if (first + j * (kFragmentsM - first) / kPairsN == i) load_b(last ? next_b : b, next_s, j, b_[(s + 1) % 2][j]);
      if (s * kFragmentsM + i < kBetween) between(s * kFragmentsM + i);  // behind the loads: copies would hold them up
#pragma unroll
      for (int q = 0; q < kFragmentsN; ++q) {
        // Forth and back: what the products of a row fragment end with, the next one's begin with. Measured, not foreseen: up
        // to 4 % (docs/kernels.md).
        const int j = i % 2 == 0 ? kFragmentsN - 1 - q : q;
        const std::uint32_t(&pair)[4] = b_[s % 2][j / 2];
        ptx::mma_16x8x16<Element>(sums_[i][j], a_[(s * kFragmentsM + i) % kRing], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
      }
    }
  }

  // The lane's row u = 0 .. 2 kFragmentsM - 1 of the block's tile, the warp's first column there, and the sums of columns
  // column() + 8 j + lane % 4 * 2 and the next.
  static __device__ __forceinline__ int row(int u, int thread) { return warp_m(thread) + u * 8 + thread % 32 / 4; }
  static __device__ __forceinline__ int column(int thread) { return warp_n(thread); }
  __device__ __forceinline__ float2 pair(int u, int j) const {
    return make_float2(sums_[u / 2][j][u % 2 * 2], sums_[u / 2][j][u % 2 * 2 + 1]);
  }

  // Accumulators to staging [tile m][pitch]. pitch = 8 modulo 32 makes these 8-byte stores free of bank conflicts.
  template <int pitch>
  __device__ __forceinline__ void stage(float* staging) const {
    static_assert(pitch % 32 == 8, "eight rows of a half-warp's stores must fall into different banks");
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        float* to = staging + (warp_m() + i * 16 + lane / 4) * pitch + warp_n() + j * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(to) = make_float2(sums_[i][j][0], sums_[i][j][1]);
        *reinterpret_cast<float2*>(to + 8 * pitch) = make_float2(sums_[i][j][2], sums_[i][j][3]);
      }
  }

 private:
  static __device__ __forceinline__ int warp_m(int thread = threadIdx.x) { return thread / 32 / shape.warps_n * kM; }
  static __device__ __forceinline__ int warp_n(int thread = threadIdx.x) { return thread / 32 % shape.warps_n * kN; }

  // Row fragment i of k16 step s: stored matrices in the order (m, k), (m+8, k), (m, k+8), (m+8, k+8).
  __device__ __forceinline__ void load_a(std::uint32_t stage, int s, int i, std::uint32_t (&a)[4]) const {
    ptx::ldmatrix_x4<a_order == Order::inner_strided>(a, a_address_.at(stage, s, i));
  }

  // Column fragments 2j and 2j+1: (n, k), (n, k+8), (n+8, k), (n+8, k+8).
  __device__ __forceinline__ void load_b(std::uint32_t stage, int s, int j, std::uint32_t (&b)[4]) const {
    ptx::ldmatrix_x4<b_order == Order::inner_strided>(b, b_address_.at(stage, s, j));
  }

  FragmentAddress<shape.m, shape.k, a_order> a_address_;
  FragmentAddress<shape.n, shape.k, b_order> b_address_;
  std::uint32_t a_[kRing][4];
  std::uint32_t b_[2][kPairsN][4];
  float sums_[kFragmentsM][kFragmentsN][4];
};

}  // namespace ggm::cuda
