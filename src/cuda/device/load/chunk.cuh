// Copies one chunk of an operand into shared memory, zero-filled behind its end. Nothing behind the last valid element is read.
// Visible to other threads after cp_async_wait and a barrier (copy_unaligned: after a barrier).
#pragma once

#include "cuda/device/ptx/cp_async.cuh"

namespace ggm::cuda {

// 16 bytes to shared-memory address `to`, of which `bytes` come from `from` (a multiple of 16). With 0 bytes nothing is read;
// `somewhere` is any valid 16-byte aligned address: the instruction wants one even then.
__device__ __forceinline__ void copy_aligned(std::uint32_t to, const char* from, int bytes, const void* somewhere) {
  ptx::cp_async_16(to, bytes > 0 ? from : somewhere, bytes);
}

// The same from any address that is aligned to its elements; with `words`, to 4 bytes.
template <int element_bytes>
__device__ __forceinline__ void copy_unaligned(std::uint32_t to, const char* from, int bytes, bool words,
                                               const void* somewhere) {
  if (element_bytes == 4 || words) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int some = min(max(bytes - 4 * w, 0), 4);
      ptx::cp_async_4(to + 4 * w, some > 0 ? from + 4 * w : somewhere, some);
    }
    return;
  }
  if constexpr (element_bytes == 2) {
    // Rows that start between two words: cp.async has no 2-byte form, so through registers.
    std::uint32_t quad[4] = {0, 0, 0, 0};
    const unsigned short* source = reinterpret_cast<const unsigned short*>(from);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      if (2 * j < bytes) quad[j / 2] |= static_cast<std::uint32_t>(__ldg(source + j)) << (16 * (j % 2));
    ptx::store_shared_16(to, quad);
  }
}

}  // namespace ggm::cuda
