// Element types of the bench under the names of its records. Used everywhere; knows no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "ggm/ggm.h"

namespace ggm_bench {

enum class Dtype { float32, bf16, fp16, int32 };

inline const char* name_of(Dtype type) {
  switch (type) {
    case Dtype::float32: return "float32";
    case Dtype::bf16: return "bf16";
    case Dtype::fp16: return "fp16";
    case Dtype::int32: return "int32";
  }
  return "";
}

inline Dtype dtype_of(const std::string& name) {
  for (Dtype type : {Dtype::float32, Dtype::bf16, Dtype::fp16}) {
    if (name == name_of(type)) return type;
  }
  throw std::runtime_error("dtype " + name + ": known are float32, bf16, fp16");
}

inline std::int64_t size_of(Dtype type) { return type == Dtype::float32 || type == Dtype::int32 ? 4 : 2; }

inline std::int32_t ggm_type(Dtype type) {
  switch (type) {
    case Dtype::float32: return GGM_TYPE_FLOAT32;
    case Dtype::bf16: return GGM_TYPE_BFLOAT16;
    case Dtype::fp16: return GGM_TYPE_FLOAT16;
    case Dtype::int32: break;
  }
  throw std::runtime_error("int32 is not an element type of a product");
}

}  // namespace ggm_bench
