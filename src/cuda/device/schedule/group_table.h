// The table of a product's groups as its writers need it: descriptors as words that are linear in what the device finds out,
// and the number of tiles as a rule of the rows. Made on the host once a call (recipe_of in src/cuda/gemm/groups.h), so that
// the kernels which write a table neither divide nor know layouts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device/schedule/tile_rule.h"
#include "plan/group.h"

namespace ggm::cuda {

// Where the built table lies: GroupTable as pointers.
struct TablePointers {
  GroupDesc* groups = nullptr;
  std::int64_t* tile_offsets = nullptr;
  unsigned long long* tile_counter = nullptr;
};

// Word i of the descriptor of group g whose rows begin at `start`: base[i] + start * by_row[i] + g * by_group[i], and in
// `size_word` the number of rows besides.
inline constexpr int kDescWords = sizeof(GroupDesc) / 8;
struct DescriptorWords {
  std::uint64_t base[kDescWords] = {}, by_row[kDescWords] = {}, by_group[kDescWords] = {};
  int size_word = 0;
};
inline constexpr int kWordOfM = 8, kWordOfK = 9;  // m in the low half of its word, k in that of its own
static_assert(offsetof(GroupDesc, m) == 8 * kWordOfM && offsetof(GroupDesc, n) == 8 * kWordOfM + 4 &&
                  offsetof(GroupDesc, k) == 8 * kWordOfK && offsetof(GroupDesc, first_row) == 8 * kWordOfK + 4,
              "the words are those of GroupDesc");

struct TableRecipe {
  TablePointers table;
  std::int32_t group_count = 0;
  TileRule rule;
  DescriptorWords words;
};

}  // namespace ggm::cuda
