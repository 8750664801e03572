// The micro-kernels, written once for every vector width; each family_*.cpp includes this and instantiates its own width.
// Everything here has internal linkage (see the note in family.h). No multiply-add is ever fused but in `dot`: the build sets
// -ffp-contract=off.
#pragma once

#include "host/family.h"

namespace ggm::host {
namespace {

template <typename T, int kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T loose __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));  // for loads and stores
};

// kRows x (kVectors vectors) accumulators live in registers for the whole inner loop; kPanel is the packed height of A.
template <typename T, int kBytes, int kRows, int kPanel, int kVectors>
void multiply_rows(std::int64_t inner, bool add, const T* a, const T* b, T* tile, std::int64_t tile_ld) {
  using Vector = typename VectorOf<T, kBytes>::type;
  using Loose = typename VectorOf<T, kBytes>::loose;
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  Vector acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      acc[i][v] = add ? *reinterpret_cast<const Loose*>(tile + i * tile_ld + v * kLanes) : Vector{};
  }
  for (std::int64_t kk = 0; kk < inner; ++kk, a += kPanel, b += kVectors * kLanes) {
    Vector column[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) column[v] = *reinterpret_cast<const Loose*>(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const T row = a[i];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[i][v] = acc[i][v] + row * column[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Loose*>(tile + i * tile_ld + v * kLanes) = acc[i][v];
  }
}

// A group's last panel may hold fewer rows; a kernel of just that height costs a group of one row a twelfth of a full one.
template <typename T, int kBytes, int kRows, int kPanel, int kVectors>
void multiply(int used_rows, std::int64_t inner, bool add, const T* a, const T* b, T* tile, std::int64_t tile_ld) {
  if constexpr (kRows > 1) {
    if (used_rows < kRows) return multiply<T, kBytes, kRows - 1, kPanel, kVectors>(used_rows, inner, add, a, b, tile, tile_ld);
  }
  multiply_rows<T, kBytes, kRows, kPanel, kVectors>(inner, add, a, b, tile, tile_ld);
}

// 4x4 blocks go through registers: the stores of a panel are then contiguous and the loads of a row too.
void interleave_single(const float* const* in, int count, std::int64_t inner, int panel, float* out) {
  using Four = VectorOf<float, 16>::type;
  using Loose = VectorOf<float, 16>::loose;
  typedef int Mask __attribute__((vector_size(16)));
  int i = 0;
  for (; i + 4 <= count; i += 4) {
    const float* const row[4] = {in[i], in[i + 1], in[i + 2], in[i + 3]};
    std::int64_t kk = 0;
    for (; kk + 4 <= inner; kk += 4) {
      const Four r0 = *reinterpret_cast<const Loose*>(row[0] + kk), r1 = *reinterpret_cast<const Loose*>(row[1] + kk);
      const Four r2 = *reinterpret_cast<const Loose*>(row[2] + kk), r3 = *reinterpret_cast<const Loose*>(row[3] + kk);
      const Four low01 = __builtin_shuffle(r0, r1, Mask{0, 4, 1, 5}), high01 = __builtin_shuffle(r0, r1, Mask{2, 6, 3, 7});
      const Four low23 = __builtin_shuffle(r2, r3, Mask{0, 4, 1, 5}), high23 = __builtin_shuffle(r2, r3, Mask{2, 6, 3, 7});
      float* to = out + kk * panel + i;
      *reinterpret_cast<Loose*>(to) = __builtin_shuffle(low01, low23, Mask{0, 1, 4, 5});
      *reinterpret_cast<Loose*>(to + panel) = __builtin_shuffle(low01, low23, Mask{2, 3, 6, 7});
      *reinterpret_cast<Loose*>(to + 2 * panel) = __builtin_shuffle(high01, high23, Mask{0, 1, 4, 5});
      *reinterpret_cast<Loose*>(to + 3 * panel) = __builtin_shuffle(high01, high23, Mask{2, 3, 6, 7});
    }
    for (; kk < inner; ++kk)
      for (int r = 0; r < 4; ++r) out[kk * panel + i + r] = row[r][kk];
  }
  for (; i < count; ++i)
    for (std::int64_t kk = 0; kk < inner; ++kk) out[kk * panel + i] = in[i][kk];
}

void interleave_twice(const double* const* in, int count, std::int64_t inner, int panel, double* out) {
  for (int i = 0; i < count; ++i)
    for (std::int64_t kk = 0; kk < inner; ++kk) out[kk * panel + i] = in[i][kk];
}

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <typename T>
T dot(const T* u, const T* v, int columns) {
  T sum[32] = {};
  if (columns == 64) {
    for (int c = 0; c < 64; c += 8)
      for (int i = 0; i < 8; ++i) sum[c / 16 * 8 + i] = fused(u[c + i], v[c + i], sum[c / 16 * 8 + i]);
  } else {
    for (int c = 0; c < columns; ++c) sum[c / 16 * 8 + c % 8] = fused(u[c], v[c], sum[c / 16 * 8 + c % 8]);
  }
  for (int left = 16; left > 0; left /= 2)
    for (int i = 0; i < left; ++i) sum[i] = sum[2 * i] + sum[2 * i + 1];
  return sum[0];
}

// Below: conversions that a compiler turns into vector code (integer arithmetic and selects, no branches).

void float_from_bfloat16(const std::uint16_t* in, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(in[i]) << 16;
    __builtin_memcpy(out + i, &bits, 4);
  }
}

void bfloat16_from_float(const float* in, std::int64_t n, std::uint16_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, in + i, 4);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    out[i] = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
  }
}

template <int kBytes, int kPanel, int kVectors>
constexpr MicroKernels<float> single_kernels() {
  return {kPanel, kVectors * kBytes / 4, multiply<float, kBytes, kPanel, kPanel, kVectors>, interleave_single, dot<float>};
}
template <int kBytes, int kPanel, int kVectors>
constexpr MicroKernels<double> twice_kernels() {
  return {kPanel, kVectors * kBytes / 8, multiply<double, kBytes, kPanel, kPanel, kVectors>, interleave_twice, dot<double>};
}

}  // namespace
}  // namespace ggm::host
