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

// The block of 16 bytes at `from`, a multiple of 16, of which only the 16-bit elements from byte `begin` to byte `end` may be
// read; zeros for the others.
__device__ __forceinline__ void copy_part(std::uint32_t to, const char* from, int begin, int end) {
  std::uint32_t quad[4] = {0, 0, 0, 0};
  const unsigned short* source = reinterpret_cast<const unsigned short*>(from);
#pragma unroll
  for (int j = 0; j < 8; ++j)
    if (2 * j >= begin && 2 * j < end) quad[j / 2] |= static_cast<std::uint32_t>(__ldg(source + j)) << (16 * (j % 2));
  ptx::store_shared_16(to, quad);
}

// A whole chunk of 16-bit elements on its way through registers, from an address that is aligned to its elements. The loads are
// the same whether it starts between two words or not, so a warp with rows of both kinds does not split.
class UnalignedChunk {
 public:
  // nullptr: zeros.
  __device__ __forceinline__ void load(const char* from) {
    between_ = (reinterpret_cast<std::uint64_t>(from) & 2) != 0;
    const std::uint32_t* words = reinterpret_cast<const std::uint32_t*>(from + (between_ ? 2 : 0));
    const unsigned short* halves = reinterpret_cast<const unsigned short*>(from);
#pragma unroll
    for (int w = 0; w < 3; ++w) words_[w] = from != nullptr ? __ldg(words + w) : 0;
    other_ = from != nullptr ? __ldg(halves + (between_ ? 0 : 6)) : 0;
    last_ = from != nullptr ? __ldg(halves + 7) : 0;
  }

  __device__ __forceinline__ void store(std::uint32_t to) const {
    const std::uint32_t shifted[4] = {other_ | words_[0] << 16, words_[0] >> 16 | words_[1] << 16,
                                      words_[1] >> 16 | words_[2] << 16, words_[2] >> 16 | last_ << 16};
    const std::uint32_t in_place[4] = {words_[0], words_[1], words_[2], other_ | last_ << 16};
    std::uint32_t out[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) out[w] = between_ ? shifted[w] : in_place[w];
    ptx::store_shared_16(to, out);
  }

 private:
  std::uint32_t words_[3], other_, last_;  // three whole words, and the elements before or behind them
  bool between_;
};

}  // namespace ggm::cuda
