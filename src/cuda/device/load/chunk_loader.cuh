// Loaders that float32 and 16-bit kernels share. An operand's step of K goes to shared memory in 16-byte chunks; `Copies` says
// which chunks a thread copies and where they lie (MmaCopies, SimtCopies).
//
// issue() takes the steps in order, from step 0 on; steps behind K become zeros. What bounds the kernels is the instructions
// beside the products, so the fast loaders do for each copy only what changes from step to step; they want Operand::fast. The
// general one takes any alignment and keeps nothing in registers.
#pragma once

#include "cuda/device/load/chunk.cuh"
#include "cuda/device/load/rows.cuh"
#include "cuda/device/load/swizzle.h"
#include "problem/problem.h"

namespace ggm::cuda {

// Starts of the rows of a contiguous operand, in shared memory; nullptr: zeros.
template <int extent, int threads>
__device__ __forceinline__ void fill_row_table(const Operand& operand, const char** table) {
  for (int r = threadIdx.x; r < extent; r += threads) {
    const std::int32_t row = operand.memory_row(std::int64_t{operand.row0} + r);
    table[r] = row < 0 ? nullptr : operand.base + row * operand.ld_bytes;
  }
}

// Fast, [tile_k][extent]: every step has new rows; their numbers are fetched one step ahead, so that a copy never waits for
// them.
template <typename Copies>
class FastStridedLoader {
 public:
  __device__ __forceinline__ FastStridedLoader(const Operand& operand, const char**, const void*) : operand_(operand) {
    to_ = Copies::offset();
    const std::int64_t column = operand.column0 + std::int64_t{Copies::chunk()} * Copies::kChunk;
    end_ = column < operand.column_end ? operand.row_end : 0;
    from_ = operand.base + (end_ != 0 ? column * Copies::kElementBytes : 0);
    ld_ = static_cast<std::uint32_t>(operand.ld_bytes);
    listed_ = operand.rows != nullptr || operand.valid != nullptr;
    next_ = Copies::row(0);
    fetch();
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) ptx::cp_async_16_row(rows_[i], ld_, stage + to_ + i * Copies::kPassBytes, from_);
    fetch();
  }

 private:
  // Memory rows of the next step; -1: zeros.
  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::uint32_t row = next_ + i * Copies::kRowsAPass;
      rows_[i] = row < end_ ? static_cast<std::int32_t>(row) : -1;
    }
    if (listed_) {
      const std::int32_t *rows = operand_.rows, *valid = operand_.valid;
      std::int32_t state[Copies::kCount];
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i) state[i] = valid != nullptr && rows_[i] >= 0 ? __ldg(valid + rows_[i]) : 0;
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i)
        if (rows != nullptr && rows_[i] >= 0) rows_[i] = __ldg(rows + rows_[i]);
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i)
        if (state[i] < 0) rows_[i] = -1;
    }
    next_ += Copies::kTileK;
  }

  const Operand& operand_;
  const char* from_;
  std::uint32_t ld_, to_, next_, end_;
  bool listed_;
  std::int32_t rows_[Copies::kCount];
};

// Any alignment, chunks that end within a row: short code and few registers, slow.
template <typename Copies>
class GeneralLoader {
 public:
  // Fills `table` [extent], in shared memory; a barrier must pass before issue(). `somewhere`: any valid address in global
  // memory, aligned to 16.
  __device__ __forceinline__ GeneralLoader(const Operand& operand, const char** table, const void* somewhere)
      : operand_(operand), table_(table), somewhere_(somewhere) {
    if constexpr (Copies::kContiguous) fill_row_table<Copies::kExtent, Copies::kThreads>(operand, table);
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
    const std::int64_t column = (Copies::kContiguous ? k_ : std::int64_t{operand_.column0}) + Copies::chunk() * Copies::kChunk;
    const int bytes =
        static_cast<int>(min(max(operand_.column_end - column, std::int64_t{0}), std::int64_t{Copies::kChunk})) * kBytes;
#pragma unroll 1
    for (int i = 0; i < Copies::kCount; ++i) {
      const char* row = start(Copies::row(i));
      const std::uint32_t to = stage + Copies::offset() + i * Copies::kPassBytes;
      const int some = row != nullptr ? bytes : 0;
      if (operand_.alignment == kChunkBytes)
        copy_aligned(to, row + column * kBytes, some, somewhere_);
      else
        copy_unaligned<kBytes>(to, row + column * kBytes, some, operand_.alignment == 4, somewhere_);
    }
    k_ += Copies::kTileK;
  }

 private:
  static constexpr int kBytes = Copies::kElementBytes;

  // Start of stored row r of this step, nullptr when it reads as zeros.
  __device__ __forceinline__ const char* start(int r) const {
    if constexpr (Copies::kContiguous) {
      return table_[r];
    } else {
      const std::int32_t row = operand_.memory_row(k_ + r);
      return row < 0 ? nullptr : operand_.base + row * operand_.ld_bytes;
    }
  }

  const Operand& operand_;
  const char** table_;
  const void* somewhere_;
  std::int64_t k_ = 0;
};

}  // namespace ggm::cuda
