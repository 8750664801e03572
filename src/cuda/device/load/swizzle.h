// Where a 16-byte chunk of an operand tile lies in shared memory. Used by the loaders (writers) and the fragment loads
// (readers); plain arithmetic, tested on the host.
//
// Shared memory has 32 banks of 4 bytes, so one access serves 128 bytes: eight chunks, if they lie in eight different places of
// a 128-byte line ("bank groups"). ldmatrix reads the same chunk of eight consecutive rows; without a swizzle rows of 64 or 128
// bytes put them in one or two bank groups. The exclusive-or below spreads them over all eight.
#pragma once

#include <cstdint>

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

// Float32 kernels read [k][extent]: one k of four neighbouring rows, a "four", in a 16-byte load. An operand with K inside is
// transposed into that form, in steps of tile_k, and its fours lie exclusive-or'ed with this: a warp stores one element of the
// tile_k / 4 chunks of each of its rows, and so the 32 words fall into 32 banks. Loads bring neighbouring fours of one k, only
// in another order.
template <int tile_k>
constexpr GGM_HD int transposed_swizzle(int k) {
  static_assert(tile_k == 8 || tile_k == 16, "the chunks of a row and the fours of a warp's store fill 128 bytes");
  return k / 4 * (32 / tile_k);
}

// Byte offset of element (k, row) of a transposed operand.
template <int extent, int tile_k>
constexpr GGM_HD int transposed_offset(int k, int row) {
  return (k * extent + ((row / 4) ^ transposed_swizzle<tile_k>(k)) * 4 + row % 4) * 4;
}

// The same for a load by `lanes` (4 or 8) neighbouring lanes, with constant k and `four`: of (k, row + 4 * lanes * four), where
// `first` is the address of (0, row), aligned to 128 bytes at row 0, and row / 4 % 8 < lanes. What the swizzle does to the
// lane's part of the row and to `four` is then apart. An operand that is not transposed is not swizzled.
template <int extent, int tile_k, int lanes, bool transposed>
constexpr GGM_HD std::uint32_t four_address(std::uint32_t first, int k, int four) {
  const int swizzle = transposed ? transposed_swizzle<tile_k>(k) : 0;
  return (first ^ swizzle % lanes * kChunkBytes) + k * extent * 4 + (four * lanes ^ swizzle / lanes * lanes) * kChunkBytes;
}

}  // namespace ggm::cuda
