// Which tiles the two blocks of a cluster work on at one time. Plain arithmetic, the same on host (tests), in the kernel that
// builds the table, and in the products.
//
// wgmma's left operand has 128 or 256 rows a block, the right one up to `max_right`. A group's right extent is cut into equal
// tiles of a multiple of 8. The blocks of a cluster share a tile of one operand and take neighbouring tiles of the other:
//   products over rows  of the left one, the weights. There are two right tiles or any even number; when one is enough, the
//                       blocks take neighbouring left tiles instead, and share none
//   weight gradients    of the right one, which is larger; of the left one where that takes fewer pairs
#pragma once

#include <cstdint>

#include "base/types.h"
#include "cuda/device/schedule/tile_order.h"

namespace ggm::cuda {

struct TilePairs {
  int left_tile;
  bool shares_left;
  std::uint32_t left_tiles, right_tiles;
  int width;  // columns of a right tile

  // Extents of less than 2^31.
  constexpr GGM_HD TilePairs(std::int64_t left, std::int64_t right, int left_rows, int max_right, bool over_k)
      : left_tile(left_rows),
        shares_left(false),
        left_tiles((static_cast<std::uint32_t>(left) + left_tile - 1) / left_tile),
        right_tiles((static_cast<std::uint32_t>(right) + max_right - 1) / max_right),
        width(0) {
    const std::uint32_t even = right_tiles + right_tiles % 2;
    shares_left =
        over_k ? std::int64_t{left_tiles} * (even / 2) < std::int64_t{right_tiles} * ((left_tiles + 1) / 2) : right_tiles > 1;
    if (shares_left) right_tiles = even;
    if (right_tiles > 0)
      width = static_cast<int>(((static_cast<std::uint32_t>(right) + right_tiles - 1) / right_tiles + 7) / 8 * 8);
  }

  constexpr GGM_HD std::int64_t count() const {
    return shares_left ? std::int64_t{left_tiles} * (right_tiles / 2) : std::int64_t{right_tiles} * ((left_tiles + 1) / 2);
  }

  // First left row and first right column of block `block` (0 or 1) in pair `index`. They may lie behind the group's end. With
  // `part_right` the right extent is gone through in parts of so many columns, or of one pair: all left tiles of one, then the
  // next.
  struct Corner {
    std::int64_t left, right;
  };
  constexpr GGM_HD Corner corner(std::int64_t index, int block, std::uint32_t part_right = 0) const {
    std::uint32_t rows = shares_left ? right_tiles / 2 : right_tiles, first_row = 0;
    const std::uint32_t columns = shares_left ? left_tiles : (left_tiles + 1) / 2;
    if (part_right > 0) {
      const std::uint32_t fit = part_right / (shares_left ? 2 * width : width), part = fit > 1 ? fit : 1;
      if (part < rows) {
        first_row = static_cast<std::uint32_t>(index / (std::int64_t{part} * columns)) * part;
        index -= std::int64_t{first_row} * columns;
        rows = rows - first_row < part ? rows - first_row : part;
      }
    }
    const bool small = count() < 1 << 26;
    const TileCoordinate at = small ? tile_at<std::uint32_t>(static_cast<std::uint32_t>(index), rows, columns)
                                    : tile_at<std::int64_t>(index, rows, columns);
    const std::int64_t row = first_row + at.row;
    if (shares_left) return {at.column * left_tile, (2 * row + block) * width};
    return {(2 * at.column + block) * left_tile, row * width};
  }
};

}  // namespace ggm::cuda
