// How many tiles a group has, as a rule that the host makes once a call and a device applies without a division. Plain
// arithmetic; tests run it on the host.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "base/types.h"
#include "cuda/device/schedule/tile_pairs.h"
#include "plan/kernel_table.h"
#include "plan/wgmma_table.h"

namespace ggm::cuda {

// How the products count their work: in tiles of a portable kernel, or in pairs of tiles of a wgmma kernel (tile_pairs.h).
struct TileGrid {
  TileGrid(const GemmKernel& kernel) : tile_m(kernel.tile_m), tile_n(kernel.tile_n) {}
  TileGrid(const WgmmaKernel& kernel) : left_tile(kernel.left_tile()), max_right(kernel.max_right), over_k(kernel.over_k) {}

  int tile_m = 0, tile_n = 0;
  int left_tile = 0, max_right = 0;  // 0: a portable kernel
  bool over_k = false;               // of a wgmma kernel: for weight gradients
};

// Tiles, or pairs of them, of a group of m x n.
constexpr GGM_HD std::int64_t count_tiles(const TileGrid& grid, std::int64_t m, std::int64_t n) {
  if (m == 0 || n == 0) return 0;
  if (grid.max_right == 0) return ceil_div(m, grid.tile_m) * ceil_div(n, grid.tile_n);
  return TilePairs(n, m, grid.left_tile, grid.max_right, grid.over_k).count();
}

// Quotients of numbers below 2^31 by a divisor of 2 or more, by a multiplication: with s = ceil(log2 d) - 1 and
// m = floor(2^(32+s) / d) + 1 the error x * (m*d - 2^(32+s)) stays below 2^(32+s).
struct Quotient {
  std::uint32_t factor = 0, shift = 0;

  constexpr Quotient() = default;
  constexpr explicit Quotient(std::uint32_t divisor) {
    while (divisor > std::uint32_t{2} << shift) ++shift;
    factor = static_cast<std::uint32_t>((std::uint64_t{1} << (32 + shift)) / divisor + 1);
  }
  constexpr GGM_HD std::uint32_t of(std::uint32_t x) const {
    return static_cast<std::uint32_t>((std::uint64_t{x} * factor) >> 32) >> shift;
  }
};

// How many tiles, or pairs of them, a group of so many rows has. Two weights, because one tile along the rows may count
// otherwise than several do (tile_pairs.h): units(rows) * many + ones(rows) * one.
struct TileRule {
  Quotient per_tile;
  std::uint32_t pairs = 0;  // 1: of several tiles along the rows two count as one unit
  std::uint32_t one = 0, many = 0;
  std::int64_t whole = 0;  // of a group whose rows are the inner dimension, whatever their number

  constexpr GGM_HD std::uint32_t tiles(std::uint32_t rows) const { return rows == 0 ? 0 : per_tile.of(rows - 1) + 1; }
  constexpr GGM_HD std::uint32_t units(std::uint32_t tiles) const { return tiles < 2 ? 0 : (tiles + pairs) >> pairs; }
  constexpr GGM_HD std::uint32_t ones(std::uint32_t tiles) const { return tiles == 1; }
  constexpr GGM_HD std::int64_t count(std::uint32_t rows) const {
    const std::uint32_t along = tiles(rows);
    return along < 2 ? std::int64_t{along} * one : std::int64_t{units(along)} * many;
  }
};

// The rule for groups whose m is their rows.
constexpr TileRule rule_of_rows(const TileGrid& grid, std::int64_t n) {
  TileRule rule;
  if (grid.max_right == 0) {
    rule.per_tile = Quotient(static_cast<std::uint32_t>(grid.tile_m));
    rule.one = rule.many = static_cast<std::uint32_t>(ceil_div(n, grid.tile_n));
  } else {  // the rows are the right extent: two tiles of it share one of the left
    const auto lefts = static_cast<std::uint32_t>(ceil_div(n, grid.left_tile));
    rule.per_tile = Quotient(static_cast<std::uint32_t>(grid.max_right));
    rule.pairs = 1;
    rule.one = (lefts + 1) / 2;
    rule.many = lefts;
  }
  return rule;
}

}  // namespace ggm::cuda
