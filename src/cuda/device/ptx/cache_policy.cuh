// What becomes of memory in L2 (PTX ISA, "createpolicy", capability 8.0).
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

// L2 gives it up first: for memory that is read once, beside other that is read again and again.
__device__ __forceinline__ std::uint64_t read_once() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

}  // namespace ggm::cuda::ptx
