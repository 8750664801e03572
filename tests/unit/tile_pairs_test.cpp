// Tiles of the two blocks of a cluster (src/cuda/device/schedule/tile_pairs.h): arithmetic of the wgmma kernels, run on the
// host.
#include "cuda/device/schedule/tile_pairs.h"

#include <algorithm>
#include <map>
#include <vector>

#include "plan/wgmma_table.h"
#include "support/test.h"

namespace {

using ggm::cuda::TilePairs;
using Index = std::int64_t;

constexpr Index kExtents[] = {1,   2,   7,   8,   9,   63,  64,  65,  127, 128, 129, 143, 144, 145, 191,
                              192, 193, 255, 256, 257, 287, 288, 289, 384, 385, 400, 577, 864, 865, 1000};

// Tiles of one group with some element inside, by block: [first, behind the last) of both extents.
struct Block {
  Index left, left_end, right, right_end;
};

std::vector<Block> blocks_of(const TilePairs& pairs, Index left, Index right, std::uint32_t part_right = 0) {
  std::vector<Block> blocks;
  for (Index index = 0; index < pairs.count(); ++index)
    for (const int block : {0, 1}) {
      const TilePairs::Corner at = pairs.corner(index, block, part_right);
      REQUIRE(at.left >= 0);
      REQUIRE(at.right >= 0);
      REQUIRE(at.left % pairs.left_tile == 0);
      REQUIRE(at.right % 8 == 0);
      if (at.left < left && at.right < right)
        blocks.push_back(
            {at.left, std::min(at.left + pairs.left_tile, left), at.right, std::min(at.right + pairs.width, right)});
    }
  return blocks;
}

template <typename Check>
void each_group(Check check) {
  for (const ggm::WgmmaKernel& kernel : ggm::kWgmmaKernels)
    for (const Index left : kExtents)
      for (const Index right : kExtents) {
        INFO(kernel.name << ", " << left << " x " << right);
        check(TilePairs(left, right, kernel.left_tile(), kernel.max_right, kernel.over_k), left, right, kernel);
      }
}

}  // namespace

TEST_CASE("tile pairs: every element of a group lies in exactly one block of one pair", "[host]") {
  each_group([](const TilePairs& pairs, Index left, Index right, const ggm::WgmmaKernel&) {
    // Tiles are cut at the same places everywhere, so a strip of left tiles is covered once when its tiles follow each other.
    std::map<Index, std::vector<Block>> strips;
    for (const Block& block : blocks_of(pairs, left, right)) strips[block.left].push_back(block);
    Index covered = 0;
    for (auto& [start, strip] : strips) {
      REQUIRE(start == covered);
      covered = strip.front().left_end;
      std::sort(strip.begin(), strip.end(), [](const Block& a, const Block& b) { return a.right < b.right; });
      Index end = 0;
      for (const Block& block : strip) {
        REQUIRE(block.right == end);
        REQUIRE(block.left_end == covered);
        end = block.right_end;
      }
      REQUIRE(end == right);
    }
    REQUIRE(covered == left);
  });
}

TEST_CASE("tile pairs: a tile's width is a multiple of 8, no wider than the kernel's, nor than it need be", "[host]") {
  each_group([](const TilePairs& pairs, Index, Index right, const ggm::WgmmaKernel& kernel) {
    REQUIRE(pairs.width % 8 == 0);
    REQUIRE(pairs.width >= 8);
    REQUIRE(pairs.width <= kernel.max_right);
    REQUIRE(pairs.left_tile == kernel.left_tile());
    // Equal tiles: less than 8 columns of padding for each.
    REQUIRE(pairs.right_tiles * pairs.width < right + 8 * pairs.right_tiles);
  });
}

TEST_CASE("tile pairs: blocks of a cluster share a left tile, or are neighbours where one right tile is enough", "[host]") {
  each_group([](const TilePairs& pairs, Index left, Index right, const ggm::WgmmaKernel& kernel) {
    if (!kernel.over_k) REQUIRE(pairs.shares_left == (right > kernel.max_right));
    for (Index index = 0; index < pairs.count(); ++index) {
      const TilePairs::Corner first = pairs.corner(index, 0), second = pairs.corner(index, 1);
      REQUIRE(first.left < left);  // the first block always has work
      REQUIRE(first.right < right);
      if (pairs.shares_left) {
        REQUIRE(second.left == first.left);
        REQUIRE(second.right == first.right + pairs.width);
      } else {
        REQUIRE(second.right == first.right);
        if (!kernel.over_k) REQUIRE(first.right == 0);
        REQUIRE(second.left == first.left + pairs.left_tile);
      }
    }
  });
}

TEST_CASE("tile pairs: weight gradients share the right tile, unless the left one takes fewer pairs", "[host]") {
  const TilePairs even(2048, 768, 128, 192, true), odd_right(2880, 2880, 128, 192, true), odd_left(2880, 5760, 128, 192, true);
  CHECK_FALSE(even.shares_left);
  CHECK(even.count() == 8 * 4);
  CHECK_FALSE(odd_right.shares_left);  // 23 x 15 tiles: 12 * 15 pairs, 23 * 8 the other way
  CHECK(odd_right.count() == 12 * 15);
  CHECK(odd_left.shares_left);  // 23 x 30 tiles: 23 * 15 pairs, 12 * 30 the other way
  CHECK(odd_left.count() == 23 * 15);
  each_group([](const TilePairs& pairs, Index left, Index right, const ggm::WgmmaKernel& kernel) {
    if (!kernel.over_k) return;
    const Index lefts = (left + kernel.left_tile() - 1) / kernel.left_tile();
    const Index rights = (right + kernel.max_right - 1) / kernel.max_right;
    const Index sharing_left = lefts * ((rights + 1) / 2), sharing_right = rights * ((lefts + 1) / 2);
    REQUIRE(pairs.count() == std::min(sharing_left, sharing_right));
    REQUIRE(pairs.shares_left == (sharing_left < sharing_right));
  });
}

TEST_CASE("tile pairs: for a fixed left tile the right tiles come in ascending order", "[host]") {
  // With the weights on the left these are the rows of a group: the ordered combine waits only for lower ones.
  each_group([](const TilePairs& pairs, Index left, Index right, const ggm::WgmmaKernel&) {
    std::map<Index, Index> next;
    for (const Block& block : blocks_of(pairs, left, right)) {
      REQUIRE(block.right == next[block.left]);
      next[block.left] = block.right_end;
    }
  });
}

TEST_CASE("tile pairs: in parts of the right extent the same tiles, all of one part before the next", "[host]") {
  const auto before = [](const Block& a, const Block& b) { return a.left != b.left ? a.left < b.left : a.right < b.right; };
  const auto same = [](const Block& a, const Block& b) {
    return a.left == b.left && a.left_end == b.left_end && a.right == b.right && a.right_end == b.right_end;
  };
  int parted = 0;
  for (const std::uint32_t most : {1u, 144u, 288u, 300u, 600u, 100000u})
    each_group([&](const TilePairs& pairs, Index left, Index right, const ggm::WgmmaKernel&) {
      INFO("parts of " << most);
      std::vector<Block> whole = blocks_of(pairs, left, right), parts = blocks_of(pairs, left, right, most);
      const Index pair = pairs.width * (pairs.shares_left ? 2 : 1), part = std::max<Index>(most / pair, 1) * pair;
      for (std::size_t i = 1; i < parts.size(); ++i) REQUIRE(parts[i].right / part >= parts[i - 1].right / part);
      parted += part < right;
      std::sort(whole.begin(), whole.end(), before);
      std::sort(parts.begin(), parts.end(), before);
      REQUIRE(std::equal(whole.begin(), whole.end(), parts.begin(), parts.end(), same));
    });
  CHECK(parted > 100);
}

TEST_CASE("tile pairs: no pair for a group without rows or columns", "[host]") {
  for (const Index extent : {0, 1, 144, 1000}) {
    CHECK(TilePairs(0, extent, 128, 144, false).count() == 0);
    CHECK(TilePairs(extent, 0, 128, 144, false).count() == 0);
    CHECK(TilePairs(extent, 0, 256, 144, true).count() == 0);
  }
}

TEST_CASE("tile pairs: extents near 2^31", "[host]") {
  const Index large = (Index{1} << 31) - 1;
  const TilePairs pairs(large, large, 128, 144, false);
  CHECK(pairs.count() == Index{pairs.left_tiles} * pairs.right_tiles / 2);
  const TilePairs::Corner last = pairs.corner(pairs.count() - 1, 1);
  CHECK(last.left == Index{pairs.left_tiles - 1} * 128);
  CHECK(last.right == Index{pairs.right_tiles - 1} * pairs.width);
  CHECK(last.left < large);
  CHECK(Index{pairs.right_tiles} * pairs.width >= large);
}
