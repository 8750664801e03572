// The thread's number, read anew where it is written: what is derived from it cannot be moved out of the loop over tiles, where
// it would take registers from the sums of the main loop.
#pragma once

namespace ggm::cuda::ptx {

__device__ __forceinline__ int fresh_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

}  // namespace ggm::cuda::ptx
