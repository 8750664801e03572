// src/plan/route_sort.h: digits, tiles, chunks and scratch of the CUDA routing's sort. The kernels themselves need a GPU; here
// a plain emulation walks the same digits, chunks, tiles, warps and rounds, and must give a stable order.
#include "plan/route_sort.h"

#include <algorithm>
#include <vector>

#include "ggm/ggm.h"
#include "support/test.h"

using namespace ggm;

namespace {

struct Item {
  std::int32_t expert, assignment;
};
bool operator==(const Item& a, const Item& b) { return a.expert == b.expert && a.assignment == b.assignment; }

// Items in the order in which the device ranks them: chunk, tile, warp, round, lane.
std::vector<std::vector<Item>> chunks_of(const std::vector<Item>& items, const SortGrid& grid) {
  std::vector<std::vector<Item>> chunks;
  const std::int64_t count = static_cast<std::int64_t>(items.size());
  for (int block = 0; block < grid.blocks; ++block) {
    std::vector<Item> chunk;
    const std::int64_t end = chunk_begin(grid.chunk, count, block + 1);
    for (std::int64_t tile = chunk_begin(grid.chunk, count, block); tile < end; tile += kSortTile) {
      const int in_tile = static_cast<int>(min64(end - tile, kSortTile)), rounds = kSortItems;
      for (int warp = 0; warp < kSortWarps; ++warp)
        for (int round = 0; round < rounds; ++round)
          for (int lane = 0; lane < 32; ++lane) {
            const int at = tile_item(warp * 32 + lane, round, rounds);
            if (at < in_tile) chunk.push_back(items[static_cast<std::size_t>(tile + at)]);
          }
    }
    chunks.push_back(chunk);
  }
  return chunks;
}

// One pass: digit counts of each block, then each block moves its items behind those of the blocks before.
std::vector<Item> sort_by_digit(const std::vector<Item>& items, const SortGrid& grid, Digit digit) {
  const auto chunks = chunks_of(items, grid);
  std::vector<std::vector<std::size_t>> counts;
  std::size_t total = 0;
  for (const auto& chunk : chunks) {
    counts.emplace_back(digit.bins(), 0);
    for (const Item& item : chunk)
      if (item.expert >= 0) ++counts.back()[digit.of(item.expert)], ++total;
  }
  std::vector<Item> sorted(total);
  for (std::size_t block = 0; block < chunks.size(); ++block) {
    std::vector<std::size_t> next(digit.bins(), 0);
    std::size_t start = 0;
    for (int bin = 0; bin < digit.bins(); ++bin) {
      next[bin] = start;
      for (std::size_t b = 0; b < chunks.size(); ++b) {
        if (b < block) next[bin] += counts[b][bin];
        start += counts[b][bin];
      }
    }
    for (const Item& item : chunks[block])
      if (item.expert >= 0) sorted[next[digit.of(item.expert)]++] = item;
  }
  return sorted;
}

// About one in ten without a local expert.
std::vector<Item> random_items(std::int64_t count, std::int64_t experts, std::uint32_t seed) {
  std::vector<Item> items;
  std::uint64_t state = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto draw = static_cast<std::uint32_t>(state >> 33);
    const auto expert = static_cast<std::int32_t>(draw % 10 == 0 ? -1 : draw / 10 % experts);
    items.push_back({expert, static_cast<std::int32_t>(i)});
  }
  return items;
}

constexpr std::int64_t kExperts[] = {0,   1,   2,    3,    7,    64,   128,  255,  256,   257,
                                     511, 512, 1000, 1024, 1025, 2048, 2049, 4096, 65535, 65536};
constexpr std::int64_t kCounts[] = {0,      1,       2,        31,       32,     33,      511,         512,
                                    513,    4095,    4096,     4097,     8192,   70000,   262144,      270336,
                                    270337, 3000000, 17301503, 17301504, 540673, 1081345, GGM_MAX_ROWS};

}  // namespace

TEST_CASE("route sort: the digits together hold every expert, one digit up to 1,024 experts", "[host]") {
  for (const std::int64_t experts : kExperts) {
    const DigitPlan plan = digit_plan(experts);
    INFO("experts " << experts);
    CHECK(plan.passes == (experts <= 1024 ? 1 : 2));
    int bits = 0;
    for (int pass = 0; pass < plan.passes; ++pass) {
      const Digit digit = plan.digit[pass];
      CHECK(digit.shift == bits);
      CHECK(digit.bits >= kLeastDigitBits);
      CHECK(digit.bits <= kDigitBits);
      CHECK(digit.bits <= plan.digit[0].bits);  // the counts are booked for the first
      bits += digit.bits;
    }
    CHECK(experts <= std::int64_t{1} << bits);
    if (bits > kLeastDigitBits) CHECK(experts > std::int64_t{1} << (bits - 1));
    for (const std::int64_t expert : {std::int64_t{0}, experts / 3, experts - 1}) {
      if (expert < 0) continue;
      std::uint32_t joined = 0;
      for (int pass = 0; pass < plan.passes; ++pass)
        joined |= plan.digit[pass].of(static_cast<std::int32_t>(expert)) << plan.digit[pass].shift;
      CHECK(joined == static_cast<std::uint32_t>(expert));
    }
  }
}

TEST_CASE("route sort: a tile's items are each taken once, warps, rounds and lanes ascending", "[host]") {
  for (const int rounds : {1, kSortItems}) {
    INFO("rounds " << rounds);
    int expected = 0;
    for (int warp = 0; warp < kSortWarps; ++warp)
      for (int round = 0; round < rounds; ++round)
        for (int lane = 0; lane < 32; ++lane)
          if (tile_item(warp * 32 + lane, round, rounds) != expected++) FAIL("item " << expected - 1 << " is out of order");
    CHECK(expected == rounds * kSortThreads);
  }
  CHECK(kSortItems * kSortThreads == kSortTile);
}

TEST_CASE("route sort: the shared memory of the widest digit fits every GPU", "[host]") {
  constexpr std::size_t kLeastOfAllGpus = 99 * 1024, kOtherArrays = 11 * 1024;
  for (int bits = kLeastDigitBits; bits <= kDigitBits; ++bits) {
    const Digit digit{0, bits};
    CHECK(sort_shared_bytes(digit) >= sizeof(std::uint16_t) * kSortWarps * static_cast<std::size_t>(digit.bins()));
    CHECK(sort_shared_bytes(digit) <= kMostSortSharedBytes);
  }
  CHECK(kMostSortSharedBytes + kOtherArrays <= kLeastOfAllGpus);
}

TEST_CASE("route sort: one block takes every item and every expert, its arrays lie apart and fit every GPU", "[host]") {
  constexpr int kLeastOfAllGpus = 99 * 1024, kOtherArrays = 512;
  for (std::int64_t assignments = 0; assignments <= kSortTile; assignments += assignments < 600 ? 1 : 61)
    for (const std::int64_t experts : kExperts) {
      if (!sort_in_one_block(assignments, experts)) continue;
      for (const bool weights : {false, true})
        for (const bool turns : {false, true}) {
          INFO("assignments " << assignments << ", experts " << experts << ", weights " << weights << ", turns " << turns);
          const OneBlock block = one_block(assignments, experts, weights, turns);
          REQUIRE(std::int64_t{block.item_warps} * 32 * block.rounds >= assignments);
          REQUIRE(block.item_warps % kCountsAtOnce == 0);
          REQUIRE(block.digit.bins() >= experts);
          REQUIRE(block.expert_warps * 64 >= block.digit.bins());
          REQUIRE(block.threads >= 32 * block.item_warps);
          REQUIRE(block.threads >= 32 * (block.expert_warps + 1));  // one more stores the end
          REQUIRE(block.threads <= kSortThreads);
          // Counts of the warps, weights, starts, assignments, rows: one behind the other, those of 4 bytes aligned.
          const int items = static_cast<int>(assignments);
          REQUIRE(block.weight_of_row >= 4 * block.item_warps * count_entries(block.digit));
          REQUIRE(block.weight_of_row % 4 == 0);
          REQUIRE(block.first >= block.weight_of_row + (weights ? 4 * items : 0));
          REQUIRE(block.first % 4 == 0);
          REQUIRE(block.assignment_of_row >= block.first + 2 * (block.digit.bins() + 1));
          REQUIRE(block.row_of_assignment >= block.assignment_of_row + 2 * items);
          REQUIRE(block.shared_bytes >= block.row_of_assignment + (turns ? 2 * items : 0));
          REQUIRE(block.shared_bytes <= kMostOneBlockBytes);
        }
    }
  CHECK(kMostOneBlockBytes + kOtherArrays <= kLeastOfAllGpus);
}

TEST_CASE("route sort: the chunks cover all items, no more blocks than allowed", "[host]") {
  for (const std::int64_t items : kCounts) {
    for (const int multiprocessors : {1, 2, 16, 131, 132}) {
      const SortGrid grid = sort_grid(items, multiprocessors);
      INFO("items " << items << ", multiprocessors " << multiprocessors);
      REQUIRE(grid.blocks >= 1);
      REQUIRE(grid.blocks <= multiprocessors);
      CHECK(grid.chunk == max64(1, ceil_div(ceil_div(items, kSortTile), multiprocessors)) * kSortTile);
      CHECK(chunk_begin(grid.chunk, items, 0) == 0);
      CHECK(chunk_begin(grid.chunk, items, grid.blocks) == items);
      if (items > 0) CHECK(chunk_begin(grid.chunk, items, grid.blocks - 1) < items);
    }
  }
}

TEST_CASE("route sort: digit after digit gives the order (expert, assignment) and drops what is not local", "[host]") {
  std::uint32_t seed = 1;
  for (const std::int64_t count : {0, 1, 33, 4096, 4097, 70000}) {
    for (const std::int64_t experts : {1, 7, 256, 257, 1024, 1025, 65536}) {
      for (const int multiprocessors : {1, 3, 132}) {
        const std::vector<Item> given = random_items(count, experts, seed++);
        const SortGrid grid = sort_grid(count, multiprocessors);
        const DigitPlan plan = digit_plan(experts);
        std::vector<Item> sorted = given;
        for (int pass = 0; pass < plan.passes; ++pass) sorted = sort_by_digit(sorted, grid, plan.digit[pass]);

        std::vector<Item> expected;
        for (const Item& item : given)
          if (item.expert >= 0) expected.push_back(item);
        std::stable_sort(expected.begin(), expected.end(), [](const Item& a, const Item& b) { return a.expert < b.expert; });
        INFO("count " << count << ", experts " << experts << ", multiprocessors " << multiprocessors);
        CHECK(sorted == expected);
      }
    }
  }
}

TEST_CASE("route sort: scratch holds the counts of every grid, grows with the assignments and is small", "[host]") {
  for (const int multiprocessors : {1, 16, 108, 132, 192}) {
    for (const std::int64_t experts : kExperts) {
      std::vector<std::int64_t> counts(std::begin(kCounts), std::end(kCounts));
      std::sort(counts.begin(), counts.end());
      std::int64_t before = 0;
      for (const std::int64_t assignments : counts) {
        INFO("assignments " << assignments << ", experts " << experts << ", multiprocessors " << multiprocessors);
        const DigitPlan plan = digit_plan(experts);
        const SortScratch scratch = sort_scratch(assignments, assignments, experts, multiprocessors);
        const std::int64_t bytes =
            4 * scratch.digit_counts + 8 * scratch.pairs + 4 * scratch.sorted_keys + 4 * scratch.local_count;
        CHECK(bytes >= before);
        CHECK(bytes <= 13 * assignments + 8192);
        before = bytes;
        if (sort_in_one_block(assignments, experts)) {
          CHECK(bytes == 0);
          continue;
        }
        // Any sm_limit gives a grid whose counts fit.
        for (const int limit : {1, 3, multiprocessors / 2, multiprocessors - 1, multiprocessors}) {
          if (limit <= 0 || limit > multiprocessors) continue;
          const SortGrid grid = sort_grid(assignments, limit);
          for (int pass = 0; pass < plan.passes; ++pass)
            CHECK(std::int64_t{grid.blocks} * plan.digit[pass].bins() <= scratch.digit_counts);
        }
        CHECK(scratch.pairs == (plan.passes == 2 ? assignments : 0));
        CHECK(scratch.sorted_keys == scratch.pairs);
        CHECK(scratch.local_count == (plan.passes == 2 ? 1 : 0));
        CHECK(sort_scratch(assignments, assignments / 2, experts, multiprocessors).sorted_keys <= scratch.sorted_keys);
      }
    }
  }
}
