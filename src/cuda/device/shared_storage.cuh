// The dynamic shared memory of a product kernel. The operand stages and the accumulators of the finished tile take turns in the
// same bytes.
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"
#include "cuda/device/load/rows.cuh"
#include "cuda/device/tile_shape.h"

namespace ggm::cuda {

// What all kernels have; each adds its tiles. A stage holds one step of K of both operands, each k (or each row) with `pad`
// elements more than the tile. Sum: accumulator type.
template <int kernel, int element_bytes, int pad, typename Sum>
struct SharedStorage {
  static constexpr TileShape shape = kShape<kernel>;
  static_assert(shape.n == kTileColumns, "the epilogue and the turns of the ordered combine take tiles of 128 columns");

  // B lies at a constant distance behind A, so one address serves both.
  struct Stage {
    alignas(128) char a[shape.k * (shape.m + pad) * element_bytes];
    alignas(128) char b[shape.k * (shape.n + pad) * element_bytes];
  };

  union {
    Stage stages[shape.stages];
    alignas(16) Sum staging[shape.m * kStagingPitch];
  };
  const char* a_row[shape.m];  // start of each row of a contiguous operand, for loaders that do not keep them in registers
  const char* b_row[shape.n];
};

}  // namespace ggm::cuda
