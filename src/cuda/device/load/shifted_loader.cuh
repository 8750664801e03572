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

  // Fills `table` [extent], in shared memory, with the rows' first blocks; a barrier must pass before a copy. The last
  // argument is for other loaders, whose copies need an address also when they read nothing.
  __device__ __forceinline__ ShiftedLoader(const Operand& operand, const char** table, const void*)
      : operand_(&operand), table_(table), thread_(ptx::fresh_thread()) {
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

  // The blocks of step 0 in which a row starts. Of them whole words are copied; an element before those goes through a
  // register, and is on its way while all other copies of the first steps are issued. Rows that end in that block too go by
  // elements. The last elements of all rows are brought to L1.
  __device__ __forceinline__ void begin_heads(std::uint32_t stage) {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      head_[i] = 0;
      if (Copies::chunk(thread_) == 0 && (rows_ & kLive << 4 * i) != 0 && operand_->column_end > 0)
        ptx::prefetch_l1(block(i) + (distance(i) + std::int64_t{operand_->column_end} - 1) * 2);
      if (!has_head(i)) continue;
      const std::uint32_t to = stage + to_ + i * Copies::kPassBytes;
      const bool ends = bytes(i) < kChunkBytes;
      if (distance(i) % 2 != 0 && distance(i) * 2 < bytes(i)) head_[i] = load_element(block(i) + distance(i) * 2);
      if (ends) copy_part(to, block(i), distance(i) * 2, bytes(i));
#pragma unroll
      for (int at = 4; at < kChunkBytes; at += 4)
        if (!ends && at >= distance(i) * 2) ptx::cp_async_4(to + at, block(i) + at, 4);
    }
  }
  __device__ __forceinline__ void end_heads(std::uint32_t stage) const {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i)
      if (Copies::chunk(thread_) == 0 && distance(i) % 2 != 0)
        ptx::store_shared_2(stage + to_ + i * Copies::kPassBytes + distance(i) * 2, head_[i]);
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
    std::uint32_t words[8];
    load_blocks(words, stage, after, i);
    store_chunk(words, stage, i);
  }

  // The same in two parts, for products to lie between the loads and the store. At most two chunks may be loaded and not
  // stored.
  __device__ __forceinline__ void load_shift(std::uint32_t stage, std::uint32_t after, int i) {
    load_blocks(words_[i % 2], stage, after, i);
  }
  __device__ __forceinline__ void store_shift(std::uint32_t stage, int i) { store_chunk(words_[i % 2], stage, i); }

 private:
  static constexpr std::uint32_t kLive = 8;

  // The block of this thread in row i, at the current step.
  __device__ __forceinline__ const char* block(int i) const {
    return table_[Copies::row(i, thread_)] + std::uint64_t{column_} * 2;
  }

  // The first step and those in which rows end: nothing outside of a row is read. Blocks in which a row starts are copied by
  // the heads. Behind the k16 step in which rows end nothing is multiplied, and so nothing copied.
  // NOTE: a copy that takes fewer bytes than its size would do where rows end, but memcheck takes it for a whole one. So these
  // blocks go by elements, which are in L1 by then (begin_heads).
  __device__ __forceinline__ void copy_ends(std::uint32_t stage) const {
    if (column_ - Copies::chunk(thread_) * 8 >= static_cast<std::uint32_t>(operand_->column_end) + 16) return;
#pragma unroll 1
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::uint32_t to = stage + to_ + i * Copies::kPassBytes;
      const int some = bytes(i);
      if (has_head(i)) continue;
      if (some == 0 || some == kChunkBytes)
        ptx::cp_async_16_if(some, to, block(i));
      else
        copy_part(to, block(i), 0, some);
    }
  }

  __device__ __forceinline__ int distance(int i) const { return static_cast<int>(rows_ >> 4 * i & 7); }
  __device__ __forceinline__ bool has_head(int i) const { return column_ == 0 && distance(i) != 0; }
  static __device__ __forceinline__ unsigned short load_element(const char* from) {
    return __ldg(reinterpret_cast<const unsigned short*>(from));
  }

  // Bytes of block i from its start to the end of the row.
  __device__ __forceinline__ int bytes(int i) const {
    const std::int64_t left = (std::int64_t{operand_->column_end} + distance(i) - std::int64_t{column_}) * 2;
    return (rows_ & kLive << 4 * i) != 0 ? static_cast<int>(min(max(left, std::int64_t{0}), std::int64_t{kChunkBytes})) : 0;
  }

  __device__ __forceinline__ void load_blocks(std::uint32_t (&words)[8], std::uint32_t stage, std::uint32_t after,
                                              int i) const {
    const bool last = Copies::chunk(thread_) + 1 == Copies::kChunksARow;
    load_words<0>(words, stage + to_ + i * Copies::kPassBytes);
    load_words<4>(words, (last ? after : stage) + next_ + i * Copies::kPassBytes);
  }

  __device__ __forceinline__ void store_chunk(std::uint32_t (&words)[8], std::uint32_t stage, int i) const {
    const std::uint32_t distance = rows_ >> 4 * i;
#pragma unroll
    for (int w = 0; w < 6; ++w) words[w] = distance & 4 ? words[w + 2] : words[w];
#pragma unroll
    for (int w = 0; w < 5; ++w) words[w] = distance & 2 ? words[w + 1] : words[w];
    std::uint32_t chunk[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) chunk[w] = __funnelshift_r(words[w], words[w + 1], (distance & 1) * 16);
    __syncwarp();  // the lane before has read this one's block
    ptx::store_shared_16(stage + to_ + i * Copies::kPassBytes, chunk);
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
  int thread_;
  std::uint32_t column_;    // of this thread's block in the step, counted from the row's first block
  std::uint32_t rows_ = 0;  // four bits a row: the distance in elements, and whether it exists
  std::uint32_t to_, next_;
  bool inside_ = false, shifts_;
  unsigned short head_[Copies::kCount];  // between begin_heads and end_heads
  std::uint32_t words_[2][8];            // between load_shift and store_shift
};

template <typename Loader>
inline constexpr bool is_shifted = false;
template <typename Copies>
inline constexpr bool is_shifted<ShiftedLoader<Copies>> = true;

}  // namespace ggm::cuda
