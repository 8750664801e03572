// Loaders of the tensor-core kernels for strided operands (mma_loader.cuh has the contiguous one and the choice), and the
// general one of all kernels with cp.async. An operand's step of K goes to shared memory in 16-byte chunks; `Copies` says which
// chunks a thread copies and where they lie.
//
// A step is begin_step(), copy() for each of the thread's chunks, end_step(). Steps come in order, from step 0 on or from the
// one that skip() names; those behind K become zeros. What bounds the kernels is the instructions beside the products, so the
// fast loaders do for each copy only what changes from step to step; they want Operand::fast. The general one takes any
// alignment and keeps nothing in registers.
#pragma once

#include "cuda/device/load/chunk.cuh"
#include "cuda/device/load/rows.cuh"
#include "cuda/device/load/swizzle.h"
#include "cuda/device/ptx/thread.cuh"
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

// Fast, [tile_k][extent]: every step has new rows. Each lane looks up one row of the step after (two for steps of 64), so a
// copy never waits for the number of its row, and a warp looks up each row once. Start, pitch and list are read from shared
// memory, which saves registers. No branches: they would stand between the products of the main loop.
template <typename Copies>
class FastStridedLoader {
 public:
  __device__ __forceinline__ FastStridedLoader(const Operand& operand, const char**, const void*)
      : operand_(ptx::shared_address(&operand)) {
    const int thread = ptx::fresh_thread();
    to_ = Copies::offset(thread);
    const std::int64_t column = operand.column0 + std::int64_t{Copies::chunk(thread)} * Copies::kChunk;
    exists_ = column < operand.column_end ? ~0u : 0;
    from_ = operand.base + (exists_ != 0 ? column * Copies::kElementBytes : 0);
    first_ = Copies::row(0, thread);
    next_ = thread % 32;
    fetch();
  }

  __device__ __forceinline__ void skip(int steps) {
    next_ += (steps - 1) * Copies::kTileK;
    fetch();
  }

  __device__ __forceinline__ void begin_step() {
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      live_[h] = (__ballot_sync(0xffffffffu, static_cast<int>(held_[h]) >= 0) & exists_) >> first_;
    ld_ = load_pitch(operand_);
  }
  __device__ __forceinline__ void copy(std::uint32_t stage, int i, int) const {
    const std::uint32_t row = __shfl_sync(0xffffffffu, held_[place(i) / 32], first_ + place(i) % 32);
    ptx::cp_async_16_if(live_[place(i) / 32] & 1u << place(i) % 32, stage + to_ + i * Copies::kPassBytes, row, ld_, from_);
  }
  __device__ __forceinline__ void end_step() { fetch(); }
  __device__ __forceinline__ void end_round(int) {}

 private:
  static constexpr int kHeld = (Copies::kTileK + 31) / 32;
  static_assert(32 % Copies::kRowsAPass == 0, "the rows of a copy's threads are held in the same register");
  // Row of copy i, less first_.
  static constexpr int place(int i) { return i * Copies::kRowsAPass; }

  // Memory rows of the next step; negative: zeros.
  __device__ __forceinline__ void fetch() {
    const OperandRows rows = load_rows(operand_);
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const std::uint32_t row = next_ + 32 * h;
      std::uint32_t entry = row;
      if (row < rows.end && rows.list != nullptr) entry = static_cast<std::uint32_t>(__ldg(rows.list + row));
      if (row >= rows.end) entry = ~0u;
      held_[h] = static_cast<int>(entry) >= 0 && rows.gathered == 0 ? row : entry;
    }
    next_ += Copies::kTileK;
  }

  const char* from_;
  std::uint32_t operand_, to_, next_;
  std::uint32_t exists_;  // all bits when this thread's column exists
  int first_;             // its first row of a step
  std::uint32_t held_[kHeld];
  std::uint32_t ld_, live_[kHeld];  // of the current step
};

// Fast, [tile_k][extent], rows in order: a weight. The address moves on from copy to copy: two instructions, where the compiler
// would find each from the first by four.
template <typename Copies>
class FastOrderedLoader {
 public:
  __device__ __forceinline__ FastOrderedLoader(const Operand& operand, const char**, const void*) {
    const int thread = ptx::fresh_thread();
    to_ = Copies::offset(thread);
    const std::int64_t column = operand.column0 + std::int64_t{Copies::chunk(thread)} * Copies::kChunk;
    const bool exists = column < operand.column_end;
    const std::int32_t first = Copies::row(0, thread);
    from_ = operand.base + (exists ? column * Copies::kElementBytes : 0) + first * operand.ld_bytes;
    pass_ = Copies::kRowsAPass * operand.ld_bytes;
    left_ = exists ? operand.row_end - first : 0;
  }

  __device__ __forceinline__ void skip(int steps) {
    from_ += steps * Copies::kCount * pass_;
    left_ -= steps * Copies::kTileK;
  }

  __device__ __forceinline__ void begin_step() {}
  __device__ __forceinline__ void copy(std::uint32_t stage, int i, int) {
    ptx::cp_async_16_if<Copies::kOnce>(left_ > i * Copies::kRowsAPass, stage + to_ + i * Copies::kPassBytes, from_);
    ptx::advance(&from_, pass_);  // behind the last pass of a step comes the first of the next
  }
  __device__ __forceinline__ void end_step() { left_ -= Copies::kTileK; }
  __device__ __forceinline__ void end_round(int) {}

 private:
  const char* from_;
  std::int64_t pass_;  // bytes from one copy to the next
  std::uint32_t to_;
  std::int32_t left_;  // rows from this thread's first one of the next step on
};

// Any alignment, chunks that end within a row: short code, slow.
template <typename Copies>
class GeneralLoader {
 public:
  // Fills `table` [extent], in shared memory; a barrier must pass before issue(). `somewhere`: any valid address in global
  // memory, aligned to 16.
  __device__ __forceinline__ GeneralLoader(const Operand& operand, const char** table, const void* somewhere)
      : operand_(&operand), table_(table), somewhere_(somewhere) {
    if constexpr (Copies::kContiguous) fill_row_table<Copies::kExtent, Copies::kThreads>(operand, table);
  }

  __device__ __forceinline__ void skip(int steps) { k_ += steps * Copies::kTileK; }

  __device__ __forceinline__ void begin_step() {}
  // All copies of the step with the first: short code.
  __device__ __forceinline__ void copy(std::uint32_t stage, int first, int) const {
    if (first == 0) copy_step(stage);
  }
  __device__ __forceinline__ void end_step() { k_ += Copies::kTileK; }
  __device__ __forceinline__ void end_round(int) {}

  // A whole step at once, for kernels that do not spread it.
  __device__ __forceinline__ void issue(std::uint32_t stage) {
    copy_step(stage);
    end_step();
  }

 private:
  static constexpr int kBytes = Copies::kElementBytes;

  __device__ __forceinline__ void copy_step(std::uint32_t stage) const {
    const std::int64_t column = (Copies::kContiguous ? k_ : std::int64_t{operand_->column0}) + Copies::chunk() * Copies::kChunk;
    const int bytes =
        static_cast<int>(min(max(operand_->column_end - column, std::int64_t{0}), std::int64_t{Copies::kChunk})) * kBytes;
    if constexpr (kBytes == 2)
      if (operand_->alignment == 2 && bytes == kChunkBytes) return copy_whole(stage, column);
#pragma unroll 1
    for (int i = 0; i < Copies::kCount; ++i) {
      const char* row = start(Copies::row(i));
      const std::uint32_t to = stage + Copies::offset() + i * Copies::kPassBytes;
      const int some = row != nullptr ? bytes : 0;
      // NOTE: no copy takes fewer bytes than its size: memcheck takes it for a whole one.
      if (operand_->alignment == kChunkBytes && some % kChunkBytes == 0)
        copy_aligned(to, row + column * kBytes, some, somewhere_);
      else
        copy_unaligned<kBytes>(to, row + column * kBytes, some, operand_->alignment >= 4 && some % 4 == 0, somewhere_);
    }
  }

  // Whole chunks that cp.async cannot copy: several under way at a time, so that their latencies overlap.
  __device__ __forceinline__ void copy_whole(std::uint32_t stage, std::int64_t column) const {
    constexpr int kBatch = Copies::kCount < 4 ? Copies::kCount : 4;
    static_assert(Copies::kCount % kBatch == 0, "whole batches");
#pragma unroll 1
    for (int first = 0; first < Copies::kCount; first += kBatch) {
      UnalignedChunk chunks[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const char* row = start(Copies::row(first + i));
        chunks[i].load(row != nullptr ? row + column * kBytes : nullptr);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) chunks[i].store(stage + Copies::offset() + (first + i) * Copies::kPassBytes);
    }
  }

  // Start of stored row r of this step, nullptr when it reads as zeros.
  __device__ __forceinline__ const char* start(int r) const {
    if constexpr (Copies::kContiguous) {
      return table_[r];
    } else {
      const std::int32_t row = operand_->memory_row(k_ + r);
      return row < 0 ? nullptr : operand_->base + row * operand_->ld_bytes;
    }
  }

  const Operand* operand_;
  const char** table_;
  const void* somewhere_;
  std::int64_t k_ = 0;
};

}  // namespace ggm::cuda
