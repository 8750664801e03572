// What one thread multiplies in the float32 kernels: a register block of sums, fed by 128-bit shared loads, one fused
// multiply-add for each element and k in ascending order.
#pragma once

#include "cuda/device/load/simt_loader.cuh"
#include "cuda/device/tile_shape.h"

namespace ggm::cuda {

template <int kernel>
class SimtTile {
 public:
  static constexpr TileShape shape = kShape<kernel>;
  // A warp is 4 x 8 threads. A thread owns fours of neighbouring rows and columns, the fours spread evenly over the tile: lanes
  // next to each other then read next to each other.
  static constexpr int kM = shape.m / (shape.warps_m * 4), kN = shape.n / (shape.warps_n * 8);
  static constexpr int kFoursM = kM / 4, kFoursN = kN / 4;
  static_assert(kM % 4 == 0 && kN % 4 == 0, "a thread owns whole fours of rows and columns");

  struct Fragments {
    float a[kM], b[kN];
  };

  __device__ __forceinline__ SimtTile() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    row_ = (warp / shape.warps_n * 4 + lane / 8) * 4;
    column_ = (warp % shape.warps_n * 8 + lane % 8) * 4;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) sums_[i][j] = 0.0f;
  }

  __device__ __forceinline__ void load(Fragments& f, const float* a, const float* b, int k) const {
#pragma unroll
    for (int q = 0; q < kFoursM; ++q) load_four(f.a + 4 * q, a + k * kSimtPitch<shape.m> + row_ + q * (shape.m / kFoursM));
#pragma unroll
    for (int q = 0; q < kFoursN; ++q) load_four(f.b + 4 * q, b + k * kSimtPitch<shape.n> + column_ + q * (shape.n / kFoursN));
  }

  static __device__ __forceinline__ void scale_a(Fragments& f, float scale) {
#pragma unroll
    for (int i = 0; i < kM; ++i) f.a[i] = __fmul_rn(scale, f.a[i]);
  }
  static __device__ __forceinline__ void scale_b(Fragments& f, float scale) {
#pragma unroll
    for (int j = 0; j < kN; ++j) f.b[j] = __fmul_rn(scale, f.b[j]);
  }

  __device__ __forceinline__ void multiply(const Fragments& f) {
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) sums_[i][j] = __fmaf_rn(f.a[i], f.b[j], sums_[i][j]);
  }

  template <int pitch>
  __device__ __forceinline__ void stage(float* staging) const {
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int q = 0; q < kFoursN; ++q) {
        const int row = row_ + i / 4 * (shape.m / kFoursM) + i % 4;
        float* to = staging + row * pitch + column_ + q * (shape.n / kFoursN);
        *reinterpret_cast<float4*>(to) =
            make_float4(sums_[i][4 * q], sums_[i][4 * q + 1], sums_[i][4 * q + 2], sums_[i][4 * q + 3]);
      }
  }

 private:
  static __device__ __forceinline__ void load_four(float* to, const float* from) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }

  int row_, column_;
  float sums_[kM][kN];
};

}  // namespace ggm::cuda
