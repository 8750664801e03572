// Elements of the bench's types as float, in device code.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "types.h"

namespace ggm_bench {

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline void from_float(float value, float& to) { to = value; }
__device__ inline void from_float(float value, __nv_bfloat16& to) { to = __float2bfloat16_rn(value); }
__device__ inline void from_float(float value, __half& to) { to = __float2half_rn(value); }

// Calls f with a value of the element's C++ type.
template <typename F>
void with_type(Dtype type, F f) {
  switch (type) {
    case Dtype::float32: return f(float{});
    case Dtype::bf16: return f(__nv_bfloat16{});
    case Dtype::fp16: return f(__half{});
    case Dtype::int32: break;
  }
  throw std::runtime_error("int32 is not an element type of a product");
}

}  // namespace ggm_bench
