// Two 16-bit elements in a 32-bit word, the one of the lower address in the lower half, as float32 values and back. For the
// loaders and epilogues of the tensor-core kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace ggm::cuda {

// Two values, each rounded to the type of the last argument, whose value does not matter.
__device__ __forceinline__ std::uint32_t pack(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ __forceinline__ std::uint32_t pack(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
// The same just where it is written: among stores to shared memory and barriers the compiler would else round everything first,
// for which there are no registers.
__device__ __forceinline__ std::uint32_t pack_here(float low, float high, __nv_bfloat16) {
  std::uint32_t word;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ std::uint32_t pack_here(float low, float high, __half) {
  std::uint32_t word;
  asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ float2 unpack(std::uint32_t word, __nv_bfloat16) {
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}
__device__ __forceinline__ float2 unpack(std::uint32_t word, __half) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}

}  // namespace ggm::cuda
