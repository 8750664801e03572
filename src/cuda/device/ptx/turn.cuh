// The turn counters of the ordered combine: 16-bit words passed between blocks with acquire and release at device scope
// (PTX ISA, "Memory consistency model"). A warp's other lanes are ordered with the lane that acquires or releases by
// __syncwarp.
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

__device__ __forceinline__ std::uint16_t load_turn(const std::uint16_t* p) {
  std::uint16_t v;
  asm volatile("ld.acquire.gpu.global.u16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
  return v;
}

__device__ __forceinline__ void store_turn(std::uint16_t* p, std::uint16_t v) {
  asm volatile("st.release.gpu.global.u16 [%0], %1;" ::"l"(p), "h"(v) : "memory");
}

// Several at once, relaxed: reads, then one fence for all; one fence, then writes.
__device__ __forceinline__ std::uint16_t peek_turn(const std::uint16_t* p) {
  std::uint16_t v;
  asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void put_turn(std::uint16_t* p, std::uint16_t v) {
  asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" ::"l"(p), "h"(v) : "memory");
}
__device__ __forceinline__ void fence_turns() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

}  // namespace ggm::cuda::ptx
