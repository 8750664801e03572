// The table of CUDA product kernels: a row is one tile configuration, as plain data that the plan reads on any machine and the
// launcher (src/cuda/gemm) instantiates. Adding a kernel is one device file and one row here.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace ggm {

enum class KernelMath : std::int32_t {
  mma16,     // bfloat16 and float16 by mma.sync m16n8k16, float32 sums
  simt32,    // float32 by FFMA
  simple64,  // float64, plain
};

struct GemmKernel {
  const char* name;
  KernelMath math;
  int tile_m, tile_n, tile_k;
  int warps_m, warps_n;  // warps of a block, each owning tile_m/warps_m x tile_n/warps_n
  int stages;
  int shared_bytes;    // dynamic shared memory of a block
  int min_capability;  // exact capability must be at least this
};

inline constexpr GemmKernel kGemmKernels[] = {
    {"mma_128x128x32", KernelMath::mma16, 128, 128, 32, 2, 4, 4, 67584, 80},
    {"mma_32x128x32", KernelMath::mma16, 32, 128, 32, 1, 4, 4, 40960, 80},
    {"simt_128x128x8", KernelMath::simt32, 128, 128, 8, 4, 2, 2, 67584, 80},
    {"simt_32x128x8", KernelMath::simt32, 32, 128, 8, 1, 4, 2, 20480, 80},
    {"f64_32x32x16", KernelMath::simple64, 32, 32, 16, 2, 2, 1, 16384, 80},
};
inline constexpr int kGemmKernelCount = sizeof(kGemmKernels) / sizeof(kGemmKernels[0]);

constexpr KernelMath math_of(Type input) {
  return is_16bit(input) ? KernelMath::mma16 : input == Type::float64 ? KernelMath::simple64 : KernelMath::simt32;
}

}  // namespace ggm
