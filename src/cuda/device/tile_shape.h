// The configuration of a product kernel, taken from its row of the kernel table. Templates take the row's number: a struct as a
// template value makes nvcc 13.0 with g++ 12 fail. No CUDA here: host tests use it.
#pragma once

#include "plan/kernel_table.h"

namespace ggm::cuda {

struct TileShape {
  int m, n, k;           // elements of a block's tile and of one step along K
  int warps_m, warps_n;  // the block's warps over the tile
  int stages;            // steps of K in flight
  int blocks;            // blocks wanted on a multiprocessor

  constexpr int warps() const { return warps_m * warps_n; }
  constexpr int threads() const { return warps() * 32; }
};

constexpr TileShape shape_of(const GemmKernel& row) {
  return {row.tile_m, row.tile_n, row.tile_k, row.warps_m, row.warps_n, row.stages, row.blocks};
}

// The shape of row `kernel` of the kernel table.
template <int kernel>
inline constexpr TileShape kShape = shape_of(kGemmKernels[kernel]);

}  // namespace ggm::cuda
