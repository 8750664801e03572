// Asynchronous copies from global to shared memory (PTX ISA, "cp.async", capability 8.0). Bytes of the destination beyond
// `bytes` are zeroed and the source beyond them is not read, so the ends of rows need no branch; bytes == 0 reads nothing.
#pragma once

#include <cstdint>

namespace ggm::cuda::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// 16 bytes past L1: operand tiles are reused through shared memory, not through L1. Both addresses are multiples of 16.
__device__ __forceinline__ void cp_async_16(std::uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// 4 bytes; neighbours of the same row come as separate copies, so L1 merges them. Both addresses are multiples of 4.
__device__ __forceinline__ void cp_async_4(std::uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` of this thread's newest groups are unfinished.
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// An ordinary 16-byte store by shared-memory address.
__device__ __forceinline__ void store_shared_16(std::uint32_t to, const std::uint32_t (&words)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

}  // namespace ggm::cuda::ptx
