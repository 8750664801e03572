// Faults of untrusted data, counted during a call and added to the caller's array once, at its end.
#pragma once

#include <atomic>
#include <cstdint>

#include "ggm/ggm.h"

namespace ggm::host {

struct Faults {
  std::int64_t words[GGM_FAULT_WORDS] = {};

  void add(int word, std::int64_t count = 1) { words[word] += count; }

  // Saturating and atomic: calls of several threads may share one array.
  void deliver(std::uint32_t* to) const {
    if (to == nullptr) return;
    for (int i = 0; i < GGM_FAULT_WORDS; ++i) {
      if (words[i] == 0) continue;
      std::atomic_ref<std::uint32_t> word(to[i]);
      std::uint32_t old = word.load(std::memory_order_relaxed), sum;
      do {
        const std::int64_t exact = old + words[i];
        sum = exact > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(exact);
      } while (!word.compare_exchange_weak(old, sum, std::memory_order_relaxed));
    }
  }
};

}  // namespace ggm::host
