// Which tile of the product a claimed number means. Plain arithmetic, the same on host (tests) and device (TileClaim).
//
// Tiles are numbered group after group (tile_offsets). Inside a group they go through chunks of kChunkColumns column tiles; in
// a chunk row tile after row tile, columns fastest. So the blocks that run at one time share few rows of A and few columns of B
// through L2, and for every fixed column the row tiles come in ascending order: the ordered combine waits only for
// tiles with smaller numbers.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace ggm::cuda {

inline constexpr int kChunkColumns = 16;

struct TileCoordinate {
  std::int64_t row, column;  // in tiles
};

// Number: what holds tiles_m * kChunkColumns, and every index; a division of 32 bits takes a fraction of one of 64.
template <typename Number = std::int64_t>
constexpr GGM_HD TileCoordinate tile_at(Number index, Number tiles_m, Number tiles_n) {
  const Number full = tiles_m * kChunkColumns;
  const Number chunk = index / full;
  const Number rest = index - chunk * full;
  const Number left = tiles_n - chunk * kChunkColumns;
  const Number width = left < kChunkColumns ? left : kChunkColumns;
  return {static_cast<std::int64_t>(rest / width), static_cast<std::int64_t>(chunk * kChunkColumns + rest % width)};
}

// Search for the group of a tile, 32 probes at a time. Invariant: offsets[low] <= tile < offsets[high]. Each lane compares the
// offset at probe() with the tile; `below` = how many lanes found it <= tile (they are the first lanes, as offsets ascend).
struct GroupSearch {
  std::int64_t low, high;

  constexpr GGM_HD bool done() const { return high - low <= 1; }
  constexpr GGM_HD std::int64_t step() const { return (high - low + 31) / 32; }
  // The last lanes may point beyond `high`; they probe `high` itself, which is never below.
  constexpr GGM_HD std::int64_t probe(int lane) const {
    const std::int64_t at = low + (lane + 1) * step();
    return at < high ? at : high;
  }
  constexpr GGM_HD void narrow(int below) {
    const std::int64_t width = step();
    const std::int64_t upper = low + (below + 1) * width;
    if (upper < high) high = upper;
    low += below * width;
  }
};

}  // namespace ggm::cuda
