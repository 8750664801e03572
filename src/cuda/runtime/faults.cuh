// Counting faults of untrusted device data into the caller's array: saturating, sticky, exact.
#pragma once

#include <cstdint>

#include "plan/clamp.h"

namespace ggm::cuda {

// faults[word] += count, stopping at the largest value. Only words that a caller's bad data touch ever come here.
__device__ inline void count_faults(std::uint32_t* faults, int word, std::uint32_t count) {
  if (faults == nullptr || count == 0) return;
  std::uint32_t old = *reinterpret_cast<volatile std::uint32_t*>(&faults[word]);
  while (true) {
    const std::uint32_t sum = old + count < old ? 0xffffffffu : old + count;
    const std::uint32_t seen = atomicCAS(&faults[word], old, sum);
    if (seen == old) return;
    old = seen;
  }
}

// The same for one count a thread; every thread of the warp must call it.
__device__ inline void count_faults_of_warp(std::uint32_t* faults, int word, std::uint32_t count) {
  if (faults == nullptr) return;
  count = __reduce_add_sync(0xffffffffu, count);
  if (threadIdx.x % 32 == 0) count_faults(faults, word, count);
}

// The real number of tokens. The first thread of the grid counts a bad value, when `faults` is given.
__device__ inline std::int64_t real_tokens(const std::int32_t* num_tokens, std::int64_t tokens,
                                           std::uint32_t* faults = nullptr) {
  if (num_tokens == nullptr) return tokens;
  const Clamped clamped = clamp_count(*num_tokens, tokens);
  if (clamped.changed && blockIdx.x == 0 && threadIdx.x == 0) count_faults(faults, GGM_FAULT_SIZE_CLAMPED, 1);
  return clamped.value;
}

}  // namespace ggm::cuda
