// Loader of the tensor-core kernels for a contiguous operand whose rows may start at any address. Memory is copied in aligned
// blocks of 16 bytes, as the fast loader copies chunks; once a step has arrived, each thread moves its own chunks into place
// inside shared memory, by the distance of their row from the block's start. A chunk lies in two blocks, its own and the next
// one of the row, which the next lane has copied; behind the last chunk of a step that is the first block of the step after.
//
// So a step can be shifted when the one after it has arrived too, and before anybody shifts that one. Both are a matter of one
// warp: all chunks of a row belong to it.
#pragma once

#include "cuda/device/load/chunk.cuh"
#include "cuda/device/load/rows.cuh"
#include "cuda/device/load/swizzle.h"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

template <typename Copies>
class ShiftedLoader {
 public:
  static_assert(Copies::kContiguous && Copies::kElementBytes == 2, "rows of 16-bit elements along K");
  static_assert(Copies::kCount <= 8, "a word has the distances of eight rows");
  static_assert(32 % Copies::kChunksARow == 0, "a row's chunks are copied by one warp");

  // Fills `table` [extent], in shared memory, with the rows' first blocks; a barrier must pass before a copy. `somewhere`: any
  // valid address in global memory, aligned to 16.
  __device__ __forceinline__ ShiftedLoader(const Operand& operand, const char** table, const void* somewhere)
      : operand_(&operand), table_(table), somewhere_(somewhere), thread_(ptx::fresh_thread()) {
    column_ = Copies::chunk(thread_) * 8;
#pragma unroll 1
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::int32_t row = operand.memory_row(std::int64_t{operand.row0} + Copies::row(i, thread_));
      const char* start = operand.base + std::int64_t{max(row, 0)} * operand.ld_bytes;
      const auto distance = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(start)) & (kChunkBytes - 1);
      if (row >= 0) rows_ |= (kLive | distance / 2) << 4 * i;
      if (Copies::chunk(thread_) == 0) table[Copies::row(i, thread_)] = start - distance;
    }
    to_ = Copies::offset(thread_);
    const int chunk = Copies::chunk(thread_) + 1 == Copies::kChunksARow ? 0 : Copies::chunk(thread_) + 1;
    next_ = swizzled_offset<Copies::kChunksARow>(Copies::row(0, thread_), chunk);
    shifts_ = operand.alignment != kChunkBytes;
  }

  __device__ __forceinline__ void begin_step() {
    const std::uint32_t first = column_ - Copies::chunk(thread_) * 8;
    inside_ = first != 0 && static_cast<std::int64_t>(first) + Copies::kTileK <= operand_->column_end;
  }

  __device__ __forceinline__ void copy(std::uint32_t stage, int i, int) const {
    if (inside_)
      ptx::cp_async_16_if(rows_ & kLive << 4 * i, stage + to_ + i * Copies::kPassBytes, block(i));
    else if (i == 0)
      copy_ends(stage);
  }
  __device__ __forceinline__ void end_step() { column_ += Copies::kTileK; }
  __device__ __forceinline__ void end_round(int) {}

  // Puts the thread's chunk i of a step into place. The step after it lies in `after`. Lanes of a warp do it together.
  __device__ __forceinline__ void shift(std::uint32_t stage, std::uint32_t after, int i) const {
    if (!shifts_) return;
    const std::uint32_t own = stage + to_ + i * Copies::kPassBytes;
    const bool last = Copies::chunk(thread_) + 1 == Copies::kChunksARow;
    std::uint32_t words[8];
    load_words<0>(words, own);
    load_words<4>(words, (last ? after : stage) + next_ + i * Copies::kPassBytes);
    const std::uint32_t distance = rows_ >> 4 * i;
#pragma unroll
    for (int w = 0; w < 6; ++w) words[w] = distance & 4 ? words[w + 2] : words[w];
#pragma unroll
    for (int w = 0; w < 5; ++w) words[w] = distance & 2 ? words[w + 1] : words[w];
    std::uint32_t chunk[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) chunk[w] = __funnelshift_r(words[w], words[w + 1], (distance & 1) * 16);
    __syncwarp();  // the lane before has read this one's block
    ptx::store_shared_16(own, chunk);
  }

 private:
  static constexpr std::uint32_t kLive = 8;

  // The block of this thread in row i, at the current step.
  __device__ __forceinline__ const char* block(int i) const {
    return table_[Copies::row(i, thread_)] + std::uint64_t{column_} * 2;
  }

  // The first step and those in which rows end: nothing outside of a row is read.
  __device__ __forceinline__ void copy_ends(std::uint32_t stage) const {
    const std::int64_t end = std::int64_t{operand_->column_end} * 2;
#pragma unroll 1
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::uint32_t to = stage + to_ + i * Copies::kPassBytes;
      const std::uint32_t distance = (rows_ >> 4 * i & 7) * 2;
      const std::int64_t left = end + distance - std::int64_t{column_} * 2;
      const int bytes =
          (rows_ & kLive << 4 * i) != 0 ? static_cast<int>(min(max(left, std::int64_t{0}), std::int64_t{kChunkBytes})) : 0;
      if ((column_ == 0 && distance != 0) || (bytes > 0 && bytes < kChunkBytes))
        copy_part(to, block(i), column_ == 0 ? static_cast<int>(distance) : 0, bytes);
      else
        copy_aligned(to, block(i), bytes, somewhere_);
    }
  }

  template <int first>
  static __device__ __forceinline__ void load_words(std::uint32_t (&words)[8], std::uint32_t from) {
    std::uint32_t four[4];
    ptx::load_shared_16(four, from);
#pragma unroll
    for (int w = 0; w < 4; ++w) words[first + w] = four[w];
  }

  const Operand* operand_;
  const char** table_;
  const void* somewhere_;
  int thread_;
  std::uint32_t column_;    // of this thread's block in the step, counted from the row's first block
  std::uint32_t rows_ = 0;  // four bits a row: the distance in elements, and whether it exists
  std::uint32_t to_, next_;
  bool inside_ = false, shifts_;
};

template <typename Loader>
inline constexpr bool is_shifted = false;
template <typename Copies>
inline constexpr bool is_shifted<ShiftedLoader<Copies>> = true;

}  // namespace ggm::cuda
