// Reading, rounding and writing values whose type is known at run time only. Types are the same for a whole launch, so the
// switches never diverge. `Sum` is the accumulator type: float, or double for float64 products.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "base/types.h"

namespace ggm::cuda {

__device__ __forceinline__ float add_rn(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double add_rn(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float multiply_rn(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double multiply_rn(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }

// One element of a tensor of type `type`.
template <typename Sum>
__device__ __forceinline__ Sum load_value(const void* p, std::int64_t index, Type type) {
  switch (type) {
    case Type::float32: return static_cast<Sum>(static_cast<const float*>(p)[index]);
    case Type::bfloat16: return static_cast<Sum>(__bfloat162float(static_cast<const __nv_bfloat16*>(p)[index]));
    case Type::float16: return static_cast<Sum>(__half2float(static_cast<const __half*>(p)[index]));
    default: return static_cast<Sum>(static_cast<const double*>(p)[index]);
  }
}

// Rounds to `type` and back; none or the accumulator's own type leaves the value.
template <typename Sum>
__device__ __forceinline__ Sum round_value(Sum v, Type type) {
  switch (type) {
    case Type::float32: return static_cast<Sum>(static_cast<float>(v));
    case Type::bfloat16: return static_cast<Sum>(__bfloat162float(__float2bfloat16_rn(static_cast<float>(v))));
    case Type::float16: return static_cast<Sum>(__half2float(__float2half_rn(static_cast<float>(v))));
    default: return v;
  }
}

template <typename Sum>
__device__ __forceinline__ void store_value(void* p, std::int64_t index, Type type, Sum v) {
  switch (type) {
    case Type::float32: static_cast<float*>(p)[index] = static_cast<float>(v); break;
    case Type::bfloat16: static_cast<__nv_bfloat16*>(p)[index] = __float2bfloat16_rn(static_cast<float>(v)); break;
    case Type::float16: static_cast<__half*>(p)[index] = __float2half_rn(static_cast<float>(v)); break;
    default: static_cast<double*>(p)[index] = static_cast<double>(v); break;
  }
}

// Whether rows of a tensor of that type can be accessed four elements at a time (8 bytes of 16-bit types, else 16).
__device__ __forceinline__ bool fours_aligned(const void* base, std::int64_t ld, Type type) {
  const std::uint64_t bytes = bytes_of(type);
  const std::uint64_t unit = bytes == 2 ? 8 : 16;
  return ((reinterpret_cast<std::uint64_t>(base) | static_cast<std::uint64_t>(ld) * bytes) & (unit - 1)) == 0;
}

// Four neighbours from `index` on. With `whole` they exist all and are aligned; else only the first `count` are touched.
template <typename Sum>
__device__ __forceinline__ void load_four(const void* p, std::int64_t index, Type type, bool whole, int count, Sum (&v)[4]) {
  if (whole && type == Type::float32) {
    const float4 f = *reinterpret_cast<const float4*>(static_cast<const float*>(p) + index);
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
  } else if (whole && is_16bit(type)) {
    const uint2 bits = *reinterpret_cast<const uint2*>(static_cast<const unsigned short*>(p) + index);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const unsigned short h = static_cast<unsigned short>((j < 2 ? bits.x : bits.y) >> (16 * (j % 2)));
      v[j] = static_cast<Sum>(type == Type::bfloat16 ? __bfloat162float(__ushort_as_bfloat16(h))
                                                     : __half2float(__ushort_as_half(h)));
    }
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] = j < count ? load_value<Sum>(p, index + j, type) : Sum(0);
  }
}

template <typename Sum>
__device__ __forceinline__ void store_four(void* p, std::int64_t index, Type type, bool whole, int count, const Sum (&v)[4]) {
  if (whole && type == Type::float32) {
    *reinterpret_cast<float4*>(static_cast<float*>(p) + index) =
        make_float4(static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]), static_cast<float>(v[3]));
  } else if (whole && is_16bit(type)) {
    std::uint32_t h[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float f = static_cast<float>(v[j]);
      h[j] = type == Type::bfloat16 ? __bfloat16_as_ushort(__float2bfloat16_rn(f)) : __half_as_ushort(__float2half_rn(f));
    }
    *reinterpret_cast<uint2*>(static_cast<unsigned short*>(p) + index) = make_uint2(h[0] | h[1] << 16, h[2] | h[3] << 16);
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j < count) store_value<Sum>(p, index + j, type, v[j]);
  }
}

}  // namespace ggm::cuda
