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
  int blocks;          // blocks that a multiprocessor should hold at once; registers are limited for it
  int rate;            // TFLOP/s of full tiles on one H200 (docs/kernels.md); the plan compares rows of one arithmetic by it
};

// Every tile is 128 columns wide: the width of a turn of the ordered combine and two partial sums of an inner product.
// The rows of one arithmetic differ in tile_m; plan/choose.h says which the plan takes. docs/kernels.md has what each measured,
// and the shapes that were tried and left out. tile_k of simt32 divides 16: all its kernels pad K
// with zeros to whole 16s, equally many, because a zero may turn -0 into +0.
inline constexpr GemmKernel kGemmKernels[] = {
    {"mma_128x128x32", KernelMath::mma16, 128, 128, 32, 2, 2, 4, 73088, 80, 2, 442},
    {"mma_64x128x64", KernelMath::mma16, 64, 128, 64, 2, 2, 3, 76928, 80, 2, 358},
    {"mma_32x128x64", KernelMath::mma16, 32, 128, 64, 1, 4, 3, 64384, 80, 3, 287},
    {"simt_128x128x8", KernelMath::simt32, 128, 128, 8, 2, 2, 8, 72832, 80, 2, 49},
    {"simt_32x128x16", KernelMath::simt32, 32, 128, 16, 1, 4, 4, 43392, 80, 3, 43},
    {"f64_32x128x16", KernelMath::simple64, 32, 128, 16, 8, 1, 1, 36224, 80, 2, 1},
};
inline constexpr int kGemmKernelCount = sizeof(kGemmKernels) / sizeof(kGemmKernels[0]);

constexpr KernelMath math_of(Type input) {
  return is_16bit(input) ? KernelMath::mma16 : input == Type::float64 ? KernelMath::simple64 : KernelMath::simt32;
}

}  // namespace ggm
