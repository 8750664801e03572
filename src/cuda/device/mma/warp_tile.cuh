// What one warp multiplies: fragments out of swizzled shared memory, float32 accumulators, k16 step by k16 step in ascending
// order. An element is one chain of mma.sync from zero, in every tile shape the same.
#pragma once

#include "cuda/device/gemm_call.h"
#include "cuda/device/load/swizzle.h"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/mma.cuh"
#include "cuda/device/tile_shape.h"

namespace ggm::cuda {

// Two 16-bit elements times float32 factors, each rounded to Element.
template <typename Element>
__device__ __forceinline__ std::uint32_t scale_pair(std::uint32_t pair, float low, float high);

template <>
__device__ __forceinline__ std::uint32_t scale_pair<__nv_bfloat16>(std::uint32_t pair, float low, float high) {
  const float v0 = __uint_as_float(pair << 16), v1 = __uint_as_float(pair & 0xffff0000u);
  const __nv_bfloat162 r = __floats2bfloat162_rn(__fmul_rn(low, v0), __fmul_rn(high, v1));
  return *reinterpret_cast<const std::uint32_t*>(&r);
}

template <>
__device__ __forceinline__ std::uint32_t scale_pair<__half>(std::uint32_t pair, float low, float high) {
  const float2 v = __half22float2(*reinterpret_cast<const __half2*>(&pair));
  const __half2 r = __floats2half2_rn(__fmul_rn(low, v.x), __fmul_rn(high, v.y));
  return *reinterpret_cast<const std::uint32_t*>(&r);
}

// One stage of operands as the fragment loads see it: shared-memory addresses.
struct MmaStage {
  std::uint32_t a, b;
  const float* scale;  // [tile k], used with scaled != none
};

template <int kernel, typename Element, Order a_order, Order b_order>
class WarpTile {
 public:
  static constexpr TileShape shape = kShape<kernel>;
  static constexpr int kM = shape.m / shape.warps_m, kN = shape.n / shape.warps_n;
  static constexpr int kFragmentsM = kM / 16, kFragmentsN = kN / 8;
  static constexpr int kPairsN = kFragmentsN / 2;  // one ldmatrix brings two column fragments
  static constexpr int kSteps = shape.k / 16;
  static_assert(kM % 16 == 0 && kN % 16 == 0, "a warp owns whole 16x16 pieces");

  // Only the weight gradient scales rows of K, and there both operands are strided.
  static constexpr bool kMayScale = a_order == Order::inner_strided && b_order == Order::inner_strided;

  __device__ __forceinline__ explicit WarpTile(GemmCall::Scale scaled) : scaled_(scaled) {
    const int warp = threadIdx.x / 32;
    warp_m_ = warp / shape.warps_n * kM;
    warp_n_ = warp % shape.warps_n * kN;
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i)
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums_[i][j][e] = 0.0f;
  }

  // The first fragments of a stage; must come before its step(0).
  __device__ __forceinline__ void begin(const MmaStage& stage) {
    load_a(stage, 0, 0, a_[0]);
#pragma unroll
    for (int j = 0; j < kPairsN; ++j) load_b(stage, 0, j, b_[0][j]);
  }

  // k16 step `s` of a stage. Row fragments are loaded one ahead and column fragments one k16 step ahead, spread between the
  // products: two whole sets would not fit the registers.
  __device__ __forceinline__ void step(const MmaStage& stage, int s) {
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
      const bool last_row = i + 1 == kFragmentsM;
      if (!last_row || s + 1 < kSteps)
        load_a(stage, last_row ? s + 1 : s, last_row ? 0 : i + 1, a_[(s * kFragmentsM + i + 1) % 2]);
      if (s + 1 < kSteps)
#pragma unroll
        for (int j = i * kPairsN / kFragmentsM; j < (i + 1) * kPairsN / kFragmentsM; ++j)
          load_b(stage, s + 1, j, b_[(s + 1) % 2][j]);
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        const std::uint32_t(&pair)[4] = b_[s % 2][j / 2];
        ptx::mma_16x8x16<Element>(sums_[i][j], a_[(s * kFragmentsM + i) % 2], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
      }
    }
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
        float* to = staging + (warp_m_ + i * 16 + lane / 4) * pitch + warp_n_ + j * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(to) = make_float2(sums_[i][j][0], sums_[i][j][1]);
        *reinterpret_cast<float2*>(to + 8 * pitch) = make_float2(sums_[i][j][2], sums_[i][j][3]);
      }
  }

 private:
  // Row fragment i of k16 step s: stored matrices in the order (m, k), (m+8, k), (m, k+8), (m+8, k+8).
  __device__ __forceinline__ void load_a(const MmaStage& stage, int s, int i, std::uint32_t (&a)[4]) const {
    const int matrix = threadIdx.x % 32 / 8;
    ptx::ldmatrix_x4<a_order == Order::inner_strided>(
        a, address<a_order, shape.m>(stage.a, warp_m_ + i * 16 + matrix % 2 * 8, s * 16 + matrix / 2 * 8));
    if (kMayScale && scaled_ == GemmCall::Scale::a)
#pragma unroll
      for (int r = 0; r < 4; ++r) a[r] = scaled(a[r], stage.scale, s * 16 + r / 2 * 8);
  }

  // Column fragments 2j and 2j+1: (n, k), (n, k+8), (n+8, k), (n+8, k+8).
  __device__ __forceinline__ void load_b(const MmaStage& stage, int s, int j, std::uint32_t (&b)[4]) const {
    const int matrix = threadIdx.x % 32 / 8;
    ptx::ldmatrix_x4<b_order == Order::inner_strided>(
        b, address<b_order, shape.n>(stage.b, warp_n_ + j * 16 + matrix / 2 * 8, s * 16 + matrix % 2 * 8));
    if (kMayScale && scaled_ == GemmCall::Scale::b)
#pragma unroll
      for (int r = 0; r < 4; ++r) b[r] = scaled(b[r], stage.scale, s * 16 + r % 2 * 8);
  }

  // A pair of a fragment whose 8 inner indices start at k.
  static __device__ __forceinline__ std::uint32_t scaled(std::uint32_t pair, const float* scale, int k) {
    const float2 factor = *reinterpret_cast<const float2*>(scale + k + threadIdx.x % 4 * 2);
    return scale_pair<Element>(pair, factor.x, factor.y);
  }

  // Address of this lane's line of the stored 8x8 matrix whose first row of the tile is `outer` and first inner index `k`, both
  // multiples of 8: the swizzle repeats after eight rows, so it depends on the line alone.
  template <Order order, int extent>
  static __device__ __forceinline__ std::uint32_t address(std::uint32_t tile, int outer, int k) {
    constexpr int kChunksARow = order == Order::inner_contiguous ? shape.k / 8 : extent / 8;
    const int line = threadIdx.x % 8;
    const int row = order == Order::inner_contiguous ? outer : k, chunk = (order == Order::inner_contiguous ? k : outer) / 8;
    return tile + ((row + line) * kChunksARow + swizzled_chunk<kChunksARow>(line, chunk)) * kChunkBytes;
  }

  GemmCall::Scale scaled_;
  int warp_m_, warp_n_;
  std::uint32_t a_[2][4];
  std::uint32_t b_[2][kPairsN][4];
  float sums_[kFragmentsM][kFragmentsN][4];
};

}  // namespace ggm::cuda
