// Programmatic dependent launch (PTX ISA, "griddepcontrol", capability 9.0): a kernel may be put on the multiprocessors while
// the one before it in the stream is still at work, and waits there. So the time to launch it passes under that work.
#pragma once

namespace ggm::cuda::ptx {

// For memory that is wanted once the work before is done: brings its line to L2 meanwhile, and is meant to have its page looked
// up by then. nullptr: none.
__device__ __forceinline__ void prefetch_line(const void* address) {
  if (address != nullptr) asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// Waits for all earlier work of the stream, whose results are visible then, and lets the next kernel come and wait in turn.
// NOTE: every kernel of the library calls it, in all threads and before it reads or writes memory that others touch: a kernel
// that did not would end before the work that it should follow, and the next one would take that for its own permission.
__device__ __forceinline__ void begin_dependent() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace ggm::cuda::ptx
