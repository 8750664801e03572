// The table of wgmma kernels (capability 9.0, src/cuda/device/hopper), beside that of the portable kernels: plain data that the
// plan reads on any machine. Each has the bits of the portable kernels.
#pragma once

#include <cstdint>

namespace ggm {

inline constexpr int kFewRight = 64;  // max_right of the kernels for groups of few rows

struct WgmmaKernel {
  const char* name;
  bool over_k;       // K runs over the rows: weight gradients; else products over rows
  bool gathered;     // rows of A come through a list
  bool together;     // two warpgroups multiply one tile; else they take turns with tiles of half its left rows
  int max_right;     // rows of A in a tile, a multiple of 8: rows of a group, or of a weight gradient's result
  int stages;        // steps of 64 along K in flight
  int staging;       // bytes that results pass through
  bool one_staging;  // the warpgroups take turns with them; else each has its own
  int pair_work;     // of a pair of tiles beside its steps and beyond that of a kernel for few rows: expected_wgmma_work

  constexpr bool for_few() const { return !over_k && max_right == kFewRight; }
  constexpr int left_tile() const { return together ? 256 : 128; }  // rows of the left operand in a tile
};

inline constexpr WgmmaKernel kWgmmaKernels[] = {
    {"wgmma_144x128", false, false, false, 144, 6, 18432, true, 180},
    {"wgmma_144x256_gather", false, true, true, 144, 4, 12288, false, 580},
    {"wgmma_192x128_k", true, false, false, 192, 4, 24576, false, 0},
    {"wgmma_64x128", false, false, false, kFewRight, 8, 18432, true, 0},
    {"wgmma_64x128_gather", false, true, false, kFewRight, 8, 12288, false, 0},
};
inline constexpr int kWgmmaKernelCount = sizeof(kWgmmaKernels) / sizeof(kWgmmaKernels[0]);
inline constexpr int kWgmmaSharedBytes = 227 * 1024;  // that a block may take on capability 9.0

}  // namespace ggm
