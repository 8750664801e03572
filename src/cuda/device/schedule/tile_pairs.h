// Which tiles the two blocks of a cluster work on at one time. Plain arithmetic, the same on host (tests), in the kernel that
// builds the table, and in the products.
//
// wgmma's left operand has 128 or 256 rows a block, the right one up to `max_right`. A group's right extent is cut into equal
// tiles of a multiple of 8; there are two of them or any even number, so that the blocks of a cluster always share a tile of
// the left operand and take neighbouring tiles of the right one. When one tile is enough, they take neighbouring left tiles
// instead.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "cuda/device/schedule/tile_order.h"

namespace ggm::cuda {

struct TilePairs {
  int left_tile;
  std::uint32_t left_tiles, right_tiles;
  int width;  // columns of a right tile

  // Extents of less than 2^31.
  constexpr GGM_HD TilePairs(std::int64_t left, std::int64_t right, int left_rows, int max_right)
      : left_tile(left_rows),
        left_tiles((static_cast<std::uint32_t>(left) + left_tile - 1) / left_tile),
        right_tiles((static_cast<std::uint32_t>(right) + max_right - 1) / max_right),
        width(0) {
    if (right_tiles > 1) right_tiles += right_tiles % 2;
    if (right_tiles > 0)
      width = static_cast<int>(((static_cast<std::uint32_t>(right) + right_tiles - 1) / right_tiles + 7) / 8 * 8);
  }

  constexpr GGM_HD bool shares_left() const { return right_tiles > 1; }
  constexpr GGM_HD std::int64_t count() const {
    return shares_left() ? std::int64_t{left_tiles} * (right_tiles / 2) : std::int64_t{right_tiles} * ((left_tiles + 1) / 2);
  }

  // First left row and first right column of block `block` (0 or 1) in pair `index`. They may lie behind the group's end.
  struct Corner {
    std::int64_t left, right;
  };
  constexpr GGM_HD Corner corner(std::int64_t index, int block) const {
    if (!shares_left()) return {(2 * index + block) * left_tile, 0};
    const std::uint32_t rights = right_tiles / 2;
    const bool small = count() < 1 << 26;
    const TileCoordinate at = small ? tile_at<std::uint32_t>(static_cast<std::uint32_t>(index), rights, left_tiles)
                                    : tile_at<std::int64_t>(index, rights, left_tiles);
    return {at.column * left_tile, (2 * at.row + block) * width};
  }
};

}  // namespace ggm::cuda
