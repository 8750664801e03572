// Operand loaders of the tensor-core kernels: steps of K of one operand go to shared memory in the swizzled layout of
// swizzle.h, rows gathered on the way. Both storage orders are rows of 16-byte chunks: [extent][k] or [k][extent].
#pragma once

#include <type_traits>

#include "cuda/device/load/chunk_loader.cuh"
#include "cuda/device/load/shifted_loader.cuh"
#include "cuda/device/load/swizzle.h"

namespace ggm::cuda {

// Which chunks a thread copies: chunk `chunk()` of the stored rows row(0), row(1), ... of a step.
// `once`: nobody reads them again, so L2 may give them up first.
template <int extent, int tile_k, int threads, Order order, bool once = false>
struct MmaCopies {
  static constexpr bool kOnce = once;
  static constexpr int kExtent = extent, kTileK = tile_k, kThreads = threads, kElementBytes = 2, kChunk = 8;
  static constexpr bool kContiguous = order == Order::inner_contiguous;
  static constexpr int kChunksARow = (kContiguous ? tile_k : extent) / 8;
  static constexpr int kRowsAPass = threads / kChunksARow;
  static constexpr int kCount = (kContiguous ? extent : tile_k) / kRowsAPass;
  static_assert(kCount >= 1 && (kContiguous ? extent : tile_k) % kRowsAPass == 0, "every thread copies equally many chunks");
  static_assert(kRowsAPass % 8 == 0, "the swizzle repeats after eight rows, so all chunks of a thread lie alike");

  static __device__ __forceinline__ int chunk(int thread = threadIdx.x) { return thread % kChunksARow; }
  static __device__ __forceinline__ int row(int i, int thread = threadIdx.x) { return thread / kChunksARow + i * kRowsAPass; }
  static __device__ __forceinline__ std::uint32_t offset(int thread = threadIdx.x) {
    return swizzled_offset<kChunksARow>(row(0, thread), chunk(thread));
  }
  static constexpr std::uint32_t kPassBytes = kRowsAPass * kChunksARow * kChunkBytes;
};

// Fast, [extent][tile_k]: the rows are the same in every step; their addresses stay in registers. Steps come in rounds, in
// which they differ by constants; the addresses move on once a round.
template <typename Copies>
class FastContiguousLoader {
 public:
  __device__ __forceinline__ FastContiguousLoader(const Operand& operand, const char**, const void*) {
    const int thread = ptx::fresh_thread();
    to_ = Copies::offset(thread);
    left_ = operand.column_end - Copies::chunk(thread) * 8;
    live_ = 0;
    const char* base = operand.base + Copies::chunk(thread) * kChunkBytes;
    const auto ld = static_cast<std::int32_t>(operand.ld_bytes);
    if (operand.list == nullptr) {  // an address behind the last row is not read
      const std::int32_t first = Copies::row(0, thread), left = operand.row_end - operand.row0 - first;
      base += (std::int64_t{operand.row0} + first) * ld;
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i) {
        if (i * Copies::kRowsAPass < left) live_ |= 1u << i;
        from_[i] = base + std::int64_t{i * Copies::kRowsAPass} * ld;
      }
    } else {
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i) {
        take_row(i, operand.memory_row(std::int64_t{operand.row0} + Copies::row(i, thread)), base, ld);
      }
    }
  }

  // Rows are where memory_row(row of the tile) says; negative: zeros.
  template <typename MemoryRow>
  __device__ __forceinline__ FastContiguousLoader(const Operand& operand, const MemoryRow& memory_row)
      : to_(Copies::offset()), live_(0), left_(operand.column_end - Copies::chunk() * 8) {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i)
      take_row(i, memory_row(Copies::row(i)), operand.base + Copies::chunk() * kChunkBytes, operand.ld_bytes);
  }

  __device__ __forceinline__ void skip(int steps) {
    left_ -= steps * Copies::kTileK;
    end_round(steps);
  }

  __device__ __forceinline__ void begin_step() {
    live_now_ = left_ > 0 ? live_ : 0;
    left_ -= Copies::kTileK;
  }
  // `round`: number of the step in its round.
  __device__ __forceinline__ void copy(std::uint32_t stage, int i, int round) const {
    ptx::cp_async_16_if<Copies::kOnce>(live_now_ & 1u << i, stage + to_ + i * Copies::kPassBytes,
                                       from_[i] + round * Copies::kTileK * 2);
  }
  __device__ __forceinline__ void end_step() {}
  __device__ __forceinline__ void end_round(int steps) {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) from_[i] += steps * Copies::kTileK * 2;
  }

 private:
  __device__ __forceinline__ void take_row(int i, std::int32_t row, const char* base, std::int64_t ld) {
    if (row >= 0) live_ |= 1u << i;
    from_[i] = base + std::int64_t{max(row, 0)} * ld;
  }

  const char* from_[Copies::kCount];
  std::uint32_t to_;
  unsigned live_, live_now_;  // bit i: row i exists; and this thread's chunk of the current step
  std::int32_t left_;         // elements of K from this thread's chunk of the next step on
};

// `listed`: rows of a strided operand are gathered or may be invalid.
template <bool fast, bool listed, typename Copies, bool contiguous = Copies::kContiguous>
struct MmaLoaderOf {
  using type = std::conditional_t<fast, FastContiguousLoader<Copies>, ShiftedLoader<Copies>>;
};
template <bool fast, bool listed, typename Copies>
struct MmaLoaderOf<fast, listed, Copies, false> {
  using type = std::conditional_t<!fast, GeneralLoader<Copies>,
                                  std::conditional_t<listed, FastStridedLoader<Copies>, FastOrderedLoader<Copies>>>;
};
template <bool fast, bool listed, typename Copies>
using MmaLoader = typename MmaLoaderOf<fast, listed, Copies>::type;

}  // namespace ggm::cuda
