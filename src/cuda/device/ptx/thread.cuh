// The thread's number, read anew where it is written: what is derived from it cannot be moved out of the loop over tiles, where
// it would take registers from the sums of the main loop.
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

__device__ __forceinline__ int fresh_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// A value that is the same in all lanes of the warp, in a form that shows it to the compiler.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

// True in one lane of a warp whose lanes are all here (capability 9.0).
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile(
      "{\n"
      " .reg .pred one;\n"
      " elect.sync _|one, 0xffffffff;\n"
      " selp.u32 %0, 1, 0, one;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

// Adds in memory and brings what was there before, in lanes where `wanted`; the answer is waited for where it is used, which a
// branch would not allow.
__device__ __forceinline__ void add_if(bool wanted, unsigned long long* to, unsigned long long value,
                                       unsigned long long* before) {
  asm volatile(
      "{\n"
      " .reg .pred some;\n"
      " setp.ne.u32 some, %1, 0;\n"
      " @some atom.global.add.u64 %0, [%2], %3;\n"
      "}"
      : "+l"(*before)
      : "r"(static_cast<unsigned>(wanted)), "l"(to), "l"(value)
      : "memory");
}

}  // namespace ggm::cuda::ptx
