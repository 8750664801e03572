// Operand loaders of the tensor-core kernels: steps of K of one operand go to shared memory in the swizzled layout of
// swizzle.h, rows gathered on the way. Both storage orders are rows of 16-byte chunks: [extent][k] or [k][extent].
#pragma once

#include <type_traits>

#include "cuda/device/load/chunk_loader.cuh"
#include "cuda/device/load/swizzle.h"

namespace ggm::cuda {

// Which chunks a thread copies: chunk `chunk()` of the stored rows row(0), row(1), ... of a step.
template <int extent, int tile_k, int threads, Order order>
struct MmaCopies {
  static constexpr int kExtent = extent, kTileK = tile_k, kThreads = threads, kElementBytes = 2, kChunk = 8;
  static constexpr bool kContiguous = order == Order::inner_contiguous;
  static constexpr int kChunksARow = (kContiguous ? tile_k : extent) / 8;
  static constexpr int kRowsAPass = threads / kChunksARow;
  static constexpr int kCount = (kContiguous ? extent : tile_k) / kRowsAPass;
  static_assert(kCount >= 1 && (kContiguous ? extent : tile_k) % kRowsAPass == 0, "every thread copies equally many chunks");
  static_assert(kRowsAPass % 8 == 0, "the swizzle repeats after eight rows, so all chunks of a thread lie alike");

  static __device__ __forceinline__ int chunk() { return threadIdx.x % kChunksARow; }
  static __device__ __forceinline__ int row(int i) { return threadIdx.x / kChunksARow + i * kRowsAPass; }
  static __device__ __forceinline__ std::uint32_t offset() { return swizzled_offset<kChunksARow>(row(0), chunk()); }
  static constexpr std::uint32_t kPassBytes = kRowsAPass * kChunksARow * kChunkBytes;
};

// Fast, [extent][tile_k]: the rows are the same in every step; their addresses stay in registers and move on by a constant.
template <typename Copies>
class FastContiguousLoader {
 public:
  __device__ __forceinline__ FastContiguousLoader(const Operand& operand, const char**, const void*) {
    to_ = Copies::offset();
    left_ = operand.column_end - Copies::chunk() * 8;
    live_ = 0;
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::int32_t row = operand.memory_row(std::int64_t{operand.row0} + Copies::row(i));
      if (row >= 0) live_ |= 1u << i;
      from_[i] = operand.base + std::int64_t{max(row, 0)} * static_cast<std::int32_t>(operand.ld_bytes) +
                 Copies::chunk() * kChunkBytes;
    }
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
    const unsigned live = left_ > 0 ? live_ : 0;
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      ptx::cp_async_16_if(live & 1u << i, stage + to_ + i * Copies::kPassBytes, from_[i]);
      from_[i] += Copies::kTileK * 2;
    }
    left_ -= Copies::kTileK;
  }

 private:
  const char* from_[Copies::kCount];
  std::uint32_t to_;
  unsigned live_;      // bit i: row i exists
  std::int32_t left_;  // elements of K from this thread's chunk of the next step on
};

template <bool fast, typename Copies>
using MmaLoader =
    std::conditional_t<!fast, GeneralLoader<Copies>,
                       std::conditional_t<Copies::kContiguous, FastContiguousLoader<Copies>, FastStridedLoader<Copies>>>;

}  // namespace ggm::cuda
