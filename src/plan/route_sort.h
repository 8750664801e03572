// How the CUDA routing sorts: digits, tiles, the chunk of each block, scratch. Read by the plan (which books the scratch), by
// src/cuda/routing (launches and kernels) and by host tests; nothing here depends on data.
//
// The sort is a stable counting sort of (local expert, assignment), one digit of the expert a pass, low digit first. A pass is
// two kernels: each block counts the digits of its chunk, then every block adds up the counts in front of it and moves its
// items. Assignments without a local expert are left out by the first pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/types.h"

namespace ggm {

inline constexpr int kSortThreads = 1024;  // of a block
inline constexpr int kSortWarps = kSortThreads / 32;
inline constexpr int kSortItems = 4;                         // of a thread in one tile
inline constexpr int kSortTile = kSortThreads * kSortItems;  // ranked at once by a block; its counts fit 16 bits
inline constexpr int kLeastDigitBits = 3;                    // the counts of a warp are scanned by fours of pairs
inline constexpr int kDigitBits = 10;                        // widest digit: one value a thread
inline constexpr int kDigitBins = 1 << kDigitBits;
inline constexpr int kMaxPasses = 2;
static_assert(kDigitBins == kSortThreads, "each thread scans one value of a digit");
static_assert(kMaxPasses * kDigitBits >= 16, "two digits must hold any of the 65,536 experts");
static_assert(kSortTile < 1 << 16, "the counters of a tile have 16 bits");

// Bits shift .. shift+bits-1 of an expert.
struct Digit {
  int shift, bits;

  constexpr GGM_HD int bins() const { return 1 << bits; }
  constexpr GGM_HD std::uint32_t of(std::int32_t expert) const {
    return (static_cast<std::uint32_t>(expert) >> shift) & static_cast<std::uint32_t>(bins() - 1);
  }
};

struct DigitPlan {
  int passes;
  Digit digit[kMaxPasses];  // the low one first
};

// One digit for up to 1,024 experts, else two of about the same width.
constexpr DigitPlan digit_plan(std::int64_t experts) {
  int bits = kLeastDigitBits;
  while (experts > std::int64_t{1} << bits) ++bits;
  if (bits <= kDigitBits) return {1, {{0, bits}, {}}};
  const int low = (bits + 1) / 2;
  return {2, {{0, low}, {low, bits - low}}};
}

// Two 16-bit counters an entry, a row of entries for each warp. The entry more spreads a column over the banks of shared
// memory.
constexpr GGM_HD int count_entries(Digit digit) { return digit.bins() / 2 + 1; }
constexpr std::size_t sort_shared_bytes(Digit digit) {
  return sizeof(std::uint32_t) * kSortWarps * static_cast<std::size_t>(count_entries(digit));
}
inline constexpr std::size_t kMostSortSharedBytes = sort_shared_bytes({0, kDigitBits});

// Small problems are one launch of one block: one tile, one digit, no scratch.
constexpr bool sort_in_one_block(std::int64_t assignments, std::int64_t experts) {
  return assignments <= kSortTile && digit_plan(experts).passes == 1;
}

// That block. Its warps of items rank them as those of a tile do; the other threads help with what each expert and each row
// needs. The places of its arrays are bytes of shared memory, behind the counts of the warps; rows and
// assignments fit 16 bits there.
struct OneBlock {
  int rounds = 0;        // items of a thread
  int item_warps = 0;    // that take items; a multiple of kCountsAtOnce
  int expert_warps = 0;  // whose threads have two experts each
  int threads = 0;
  Digit digit{};
  int weight_of_row = 0;      // float [assignments], with weights
  int first = 0;              // uint16 [bins + 2]: rows of lower experts
  int assignment_of_row = 0;  // uint16 [assignments]
  int row_of_assignment = 0;  // uint16 [assignments], with turns
  int shared_bytes = 0;
};
inline constexpr int kCountsAtOnce = 4;        // of warps, that a thread adds up
inline constexpr int kFewItems = 512;          // one a thread; more come by kSortItems, in fewer warps that each do more
inline constexpr int kLeastSortThreads = 512;  // of the block: what follows the sort has a thread for each row and word
// Turns cost top_k reads of shared memory a row; beyond it they are left to a kernel of many blocks.
inline constexpr std::int64_t kMostTurnSlots = 64;

constexpr OneBlock one_block(std::int64_t assignments, std::int64_t experts, bool weights, bool turns) {
  OneBlock block;
  block.rounds = assignments <= kFewItems ? 1 : kSortItems;
  block.item_warps = static_cast<int>(ceil_div(assignments, 32 * block.rounds * kCountsAtOnce)) * kCountsAtOnce;
  block.digit = digit_plan(experts).digit[0];
  block.expert_warps = static_cast<int>(ceil_div(block.digit.bins(), 64));
  // One warp more than have experts: it stores where the last of them ends.
  const int warps = block.item_warps > block.expert_warps ? block.item_warps : block.expert_warps + 1;
  block.threads = 32 * warps > kLeastSortThreads ? 32 * warps : kLeastSortThreads;
  const int items = static_cast<int>(assignments);
  block.weight_of_row = 4 * block.item_warps * count_entries(block.digit);
  block.first = block.weight_of_row + (weights ? 4 * items : 0);
  block.assignment_of_row = block.first + 2 * (block.digit.bins() + 2);
  block.row_of_assignment = block.assignment_of_row + 2 * items;
  block.shared_bytes = block.row_of_assignment + (turns ? 2 * items : 0);
  return block;
}
inline constexpr int kMostOneBlockBytes = one_block(kSortTile, kDigitBins, true, true).shared_bytes;

struct SortGrid {
  int blocks;
  std::int64_t chunk;  // items of a block
};

// Chunks of whole tiles, the longest as short as possible, in the fewest blocks; one block a multiprocessor at most.
constexpr SortGrid sort_grid(std::int64_t items, int multiprocessors) {
  const std::int64_t tiles = max64(1, ceil_div(items, kSortTile));
  const std::int64_t tiles_per_block = ceil_div(tiles, multiprocessors);
  return {static_cast<int>(ceil_div(tiles, tiles_per_block)), tiles_per_block * kSortTile};
}

constexpr GGM_HD std::int64_t chunk_begin(std::int64_t chunk, std::int64_t items, std::int64_t block) {
  const std::int64_t begin = chunk * block;
  return begin < items ? begin : items;
}

// A tile has `rounds` items a thread: each warp has a run of rounds * 32 of them and takes 32 at a time, so that warps, then
// rounds, then lanes are in ascending order.
constexpr GGM_HD int tile_item(int thread, int round, int rounds) { return (thread / 32 * rounds + round) * 32 + thread % 32; }

// Scratch in elements. Depends on the device, not on sm_limit, and grows with the assignments.
struct SortScratch {
  std::int64_t digit_counts = 0;  // uint32, a row of bins for each block
  std::int64_t pairs = 0;         // 8 bytes each; 0 with one pass, as the two below
  std::int64_t sorted_keys = 0;   // uint32
  std::int64_t local_count = 0;   // uint32
};

constexpr SortScratch sort_scratch(std::int64_t assignments, std::int64_t max_rows, std::int64_t experts, int multiprocessors) {
  SortScratch scratch;
  if (sort_in_one_block(assignments, experts)) return scratch;
  const DigitPlan plan = digit_plan(experts);
  // NOTE: the bound, which grows with the assignments; the blocks of sort_grid are fewer and do not.
  const std::int64_t tiles = max64(1, ceil_div(assignments, kSortTile));
  const std::int64_t blocks = min64(tiles, multiprocessors);
  scratch.digit_counts = blocks * plan.digit[0].bins();  // the low digit is never the narrower
  if (plan.passes == 1) return scratch;
  scratch.pairs = assignments;
  scratch.sorted_keys = max_rows;
  scratch.local_count = 1;
  return scratch;
}

}  // namespace ggm
