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

  static_assert(shape.k % 2 == 0, "both fragment buffers are used equally often in a stage");

  __device__ __forceinline__ SimtTile() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    row_ = (warp / shape.warps_n * 4 + lane / 8) * 4;
    column_ = (warp % shape.warps_n * 8 + lane % 8) * 4;
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) sums_[i][j] = 0.0f;
  }

  // The fragments of a stage's first k; must come before its step 0.
  __device__ __forceinline__ void begin(const char* a, const char* b) { load(fragments_[0], a, b, 0); }

  // Multiplies k, while the fragments of `next_k` of the stage at `a`, `b` are on their way.
  __device__ __forceinline__ void step(const char* a, const char* b, int k, int next_k) {
    load(fragments_[(k + 1) % 2], a, b, next_k);
    const Fragments& f = fragments_[k % 2];
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
  struct Fragments {
    float a[kM], b[kN];
  };

  __device__ __forceinline__ void load(Fragments& f, const char* a, const char* b, int k) const {
    const float *from_a = reinterpret_cast<const float*>(a) + row_, *from_b = reinterpret_cast<const float*>(b) + column_;
#pragma unroll
    for (int q = 0; q < kFoursM; ++q) load_four(f.a + 4 * q, from_a + k * kSimtPitch<shape.m> + q * (shape.m / kFoursM));
#pragma unroll
    for (int q = 0; q < kFoursN; ++q) load_four(f.b + 4 * q, from_b + k * kSimtPitch<shape.n> + q * (shape.n / kFoursN));
  }

  static __device__ __forceinline__ void load_four(float* to, const float* from) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }

  int row_, column_;
  Fragments fragments_[2];
  float sums_[kM][kN];
};

}  // namespace ggm::cuda
