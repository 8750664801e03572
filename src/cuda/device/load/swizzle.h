// Where a 16-byte chunk of an operand tile lies in shared memory. Used by the loaders (writers) and the fragment loads
// (readers); plain arithmetic, tested on the host.
//
// Shared memory has 32 banks of 4 bytes, so one access serves 128 bytes: eight chunks, if they lie in eight different places of
// a 128-byte line ("bank groups"). ldmatrix reads the same chunk of eight consecutive rows; without a swizzle rows of 64 or 128
// bytes put them in one or two bank groups. The exclusive-or below spreads them over all eight.
#pragma once

#include "base/types.h"

namespace ggm::cuda {

inline constexpr int kChunkBytes = 16;

// Physical chunk of logical chunk `chunk` in row `row`, for rows of `chunks_a_row` chunks (a power of two, at least 2).
template <int chunks_a_row>
constexpr GGM_HD int swizzled_chunk(int row, int chunk) {
  static_assert(chunks_a_row >= 2 && (chunks_a_row & (chunks_a_row - 1)) == 0, "rows are a power of two of 16-byte chunks");
  if constexpr (chunks_a_row >= 8) {
    return chunk ^ (row & 7);
  } else {
    // 8 / chunks_a_row rows share one 128-byte line; only rows of different lines can collide.
    return chunk ^ ((row / (8 / chunks_a_row)) & (chunks_a_row - 1));
  }
}

// Byte offset of that chunk in the tile.
template <int chunks_a_row>
constexpr GGM_HD int swizzled_offset(int row, int chunk) {
  return (row * chunks_a_row + swizzled_chunk<chunks_a_row>(row, chunk)) * kChunkBytes;
}

}  // namespace ggm::cuda
