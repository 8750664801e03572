// Counters in memory by which blocks tell each other what they have done (PTX ISA, "Memory consistency model"), and the order
// between ordinary accesses to memory and those of the copy engine (PTX ISA, "Async proxy").
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

// What the thread, and those that it has come together with before, wrote or read is done for who finds the count.
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

// Orders what this thread wrote to memory, or has seen written, with what the copy engine reads there.
__device__ __forceinline__ void fence_async_proxy_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

}  // namespace ggm::cuda::ptx
