// Counters in memory by which blocks tell each other what they have done (PTX ISA, "Memory consistency model").
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

// Adds with release: whoever acquires the count sees what this thread did before, and what threads did that synchronized with
// it.
__device__ __forceinline__ void add_released(std::uint32_t* counter, std::uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}

__device__ __forceinline__ std::uint32_t acquire_count(const std::uint32_t* counter) {
  std::uint32_t count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  return count;
}

// Waits until it is `value`.
__device__ __forceinline__ void wait_for_count(const std::uint32_t* counter, std::uint32_t value) {
  while (acquire_count(counter) != value) __nanosleep(64);
}

}  // namespace ggm::cuda::ptx
