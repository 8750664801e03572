// Descriptors into the table, by the threads of one block: a thread writes the same word of every group that it visits, and
// neighbours write neighbouring words, so that stores are whole sectors and nothing is looked up twice.
#pragma once

#include "cuda/device/schedule/group_table.h"

namespace ggm::cuda {

struct FoundGroup {
  std::uint32_t start, size;
  std::int32_t group;
  bool stored, used;  // not stored: nobody reads it; not used: m is 0
};

class WordWriter {
 public:
  // Reads what the thread needs of the recipe: early, because the first read of a parameter takes long.
  __device__ __forceinline__ explicit WordWriter(const TableRecipe& recipe)
      : word_(static_cast<int>(threadIdx.x % kDescWords)),
        base_(recipe.words.base[word_]),
        by_row_(recipe.words.by_row[word_]),
        by_group_(recipe.words.by_group[word_]),
        size_(word_ == recipe.words.size_word) {}

  // find(place) gives the group at a place of the table.
  template <typename Find>
  __device__ __forceinline__ void write(const TablePointers& table, int count, const Find& find) const {
    const int step = static_cast<int>(blockDim.x) / kDescWords;
    int place = static_cast<int>(threadIdx.x) / kDescWords;
    if (place >= step) return;
    auto* words = reinterpret_cast<std::uint64_t*>(table.groups);
#pragma unroll 2
    for (; place < count; place += step) {
      const FoundGroup found = find(place);
      if (!found.stored) continue;
      std::uint64_t value = base_ + found.start * by_row_ + static_cast<std::uint64_t>(found.group) * by_group_;
      if (size_) value += found.size;
      if (!found.used && word_ == kWordOfM) value &= ~std::uint64_t{0xffffffff};
      words[std::int64_t{place} * kDescWords + word_] = value;
    }
  }

 private:
  int word_;
  std::uint64_t base_, by_row_, by_group_;
  bool size_;
};

}  // namespace ggm::cuda
