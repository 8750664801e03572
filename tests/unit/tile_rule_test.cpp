// src/cuda/device/schedule/tile_rule.h: what the device counts without a division must be what the divisions give.
#include "cuda/device/schedule/tile_rule.h"

#include <vector>

#include "support/test.h"

namespace {

using namespace ggm;
using cuda::count_tiles;
using cuda::Quotient;
using cuda::rule_of_rows;
using cuda::TileGrid;
using cuda::TileRule;

// Of products over rows, which have rules of rows.
std::vector<TileGrid> all_grids() {
  std::vector<TileGrid> grids;
  for (const GemmKernel& kernel : kGemmKernels) grids.emplace_back(kernel);
  for (const WgmmaKernel& kernel : kWgmmaKernels)
    if (!kernel.over_k) grids.emplace_back(kernel);
  return grids;
}

}  // namespace

TEST_CASE("tile rule: quotients by a multiplication are exact up to the largest number of rows", "[host]") {
  for (std::uint32_t divisor = 2; divisor <= 1100; ++divisor) {
    const Quotient by(divisor);
    INFO("divisor " << divisor);
    for (std::uint32_t x = 0; x < 5000; ++x) REQUIRE(by.of(x) == x / divisor);
    const std::uint32_t last = 0x7fffffffu / divisor;
    for (std::uint32_t quotient = last - 3; quotient <= last; ++quotient)
      for (const std::uint32_t near : {0u, 1u, divisor - 1})
        if (quotient * divisor + near <= 0x7fffffffu) REQUIRE(by.of(quotient * divisor + near) == quotient);
    REQUIRE(by.of(0x7fffffffu) == 0x7fffffffu / divisor);
  }
}

TEST_CASE("tile rule: tiles of a group are those of the kernel's grid", "[host]") {
  for (const TileGrid& grid : all_grids())
    for (const std::int64_t n : {0, 1, 63, 64, 127, 128, 129, 144, 145, 192, 193, 256, 257, 384, 385, 600, 4096, 2147483647}) {
      const TileRule rule = rule_of_rows(grid, n);
      INFO("tile " << grid.tile_m << " or " << grid.left_tile << " x " << grid.max_right << ", n " << n);
      for (std::int64_t m = 0; m <= 4200; ++m) REQUIRE(rule.count(static_cast<std::uint32_t>(m)) == count_tiles(grid, m, n));
      for (const std::int64_t m : {1 << 20, (1 << 20) + 1, 0x7fffff7f, 0x7fffffff})
        REQUIRE(rule.count(static_cast<std::uint32_t>(m)) == count_tiles(grid, m, n));
    }
}

TEST_CASE("tile rule: units and ones of up to 4,096 rows fit 16 bits each, and add up to the count", "[host]") {
  for (const TileGrid& grid : all_grids()) {
    const TileRule rule = rule_of_rows(grid, 1000);
    REQUIRE(rule.units(rule.tiles(4096)) < 1 << 16);
    for (std::uint32_t rows = 0; rows <= 4096; ++rows) {
      const std::uint32_t tiles = rule.tiles(rows);
      REQUIRE(rule.units(tiles) <= rows);
      REQUIRE(std::int64_t{rule.units(tiles)} * rule.many + std::int64_t{rule.ones(tiles)} * rule.one == rule.count(rows));
    }
  }
}
