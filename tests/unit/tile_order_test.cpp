// Numbering of tiles and search of a tile's group (src/cuda/device/schedule/tile_order.h): arithmetic of the CUDA kernels, run
// on the host.
#include "cuda/device/schedule/tile_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/test.h"

namespace {

using ggm::cuda::GroupSearch;
using ggm::cuda::TileCoordinate;

// What a warp does: 32 probes and a ballot.
std::int64_t find_group(const std::vector<std::int64_t>& offsets, std::int64_t tile, int* rounds) {
  GroupSearch search{0, static_cast<std::int64_t>(offsets.size()) - 1};
  for (*rounds = 0; !search.done(); ++*rounds) {
    int below = 0;
    bool prefix = true;
    for (int lane = 0; lane < 32; ++lane) {
      const std::int64_t at = search.probe(lane);
      REQUIRE(at > search.low);
      REQUIRE(at <= search.high);
      const bool hit = offsets[static_cast<std::size_t>(at)] <= tile;
      if (hit) REQUIRE(prefix);  // the ballot is a run of ones from lane 0 on
      prefix = hit;
      below += hit;
    }
    search.narrow(below);
    REQUIRE(offsets[static_cast<std::size_t>(search.low)] <= tile);
    REQUIRE(offsets[static_cast<std::size_t>(search.high)] > tile);
  }
  return search.low;
}

}  // namespace

TEST_CASE("tile order: every tile of a group has exactly one number", "[host]") {
  for (std::int64_t m : {1, 2, 3, 17, 64})
    for (std::int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 50}) {
      INFO("tiles " << m << " x " << n);
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      for (std::int64_t i = 0; i < m * n; ++i) {
        const TileCoordinate at = ggm::cuda::tile_at(i, m, n);
        REQUIRE(at.row >= 0);
        REQUIRE(at.row < m);
        REQUIRE(at.column >= 0);
        REQUIRE(at.column < n);
        REQUIRE(seen.insert({at.row, at.column}).second);
      }
    }
}

TEST_CASE("tile order: in every column of tiles the rows come in ascending order", "[host]") {
  // The ordered combine waits for rows of lower tiles; a descending pair could make two blocks wait for each other.
  for (std::int64_t m : {1, 2, 5, 40})
    for (std::int64_t n : {1, 16, 17, 45}) {
      INFO("tiles " << m << " x " << n);
      std::map<std::int64_t, std::int64_t> next;
      for (std::int64_t i = 0; i < m * n; ++i) {
        const TileCoordinate at = ggm::cuda::tile_at(i, m, n);
        REQUIRE(next[at.column] == at.row);
        ++next[at.column];
      }
    }
}

TEST_CASE("tile order: 64-bit numbers", "[host]") {
  const std::int64_t m = std::int64_t{1} << 24, n = (std::int64_t{1} << 24) + 5;
  const TileCoordinate last = ggm::cuda::tile_at(m * n - 1, m, n);
  REQUIRE(last.row == m - 1);
  REQUIRE(last.column == n - 1);
}

TEST_CASE("tile order: neighbours in the order share rows and columns", "[host]") {
  // 256 tiles of a large group touch 16 rows and 16 columns of tiles, not 4 and 64.
  std::set<std::int64_t> rows, columns;
  for (std::int64_t i = 0; i < 256; ++i) {
    const TileCoordinate at = ggm::cuda::tile_at<std::int64_t>(i, 64, 64);
    rows.insert(at.row);
    columns.insert(at.column);
  }
  REQUIRE(rows.size() == 16);
  REQUIRE(columns.size() == 16);
}

TEST_CASE("group search: the last group that starts at or before the tile, empty groups skipped", "[host]") {
  for (int groups : {1, 2, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 4097}) {
    std::vector<std::int64_t> offsets{0};
    for (int g = 0; g < groups; ++g) offsets.push_back(offsets.back() + (g * 7919 + 3) % 5 * (g % 3 != 1));
    INFO(groups << " groups, " << offsets.back() << " tiles");
    for (std::int64_t tile = 0; tile < offsets.back(); ++tile) {
      int rounds = 0;
      const std::int64_t found = find_group(offsets, tile, &rounds);
      const auto expected = std::upper_bound(offsets.begin(), offsets.end(), tile) - offsets.begin() - 1;
      REQUIRE(found == expected);
      REQUIRE(rounds <= (groups <= 32 ? 1 : groups <= 1024 ? 2 : 3));
    }
  }
}
