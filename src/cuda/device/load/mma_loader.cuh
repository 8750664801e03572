// Operand loaders of the tensor-core kernels: steps of K of one operand go to shared memory in the swizzled layout of
// swizzle.h, rows gathered on the way. Both storage orders are rows of 16-byte chunks: [extent][k] or [k][extent].
#pragma once

#include "cuda/device/load/chunk.cuh"
#include "cuda/device/load/rows.cuh"
#include "cuda/device/load/swizzle.h"
#include "problem/problem.h"

namespace ggm::cuda {

// `extent`: rows of the tile (of A: tile m, of B: tile n). begin() and issue() come after the operand is in shared memory.
template <int extent, int tile_k, int threads, Order order>
class MmaLoader;

// [extent][tile_k]: the rows are the same in every step, so their addresses are kept in shared memory.
template <int extent, int tile_k, int threads>
class MmaLoader<extent, tile_k, threads, Order::inner_contiguous> {
 public:
  static constexpr int kChunksARow = tile_k / 8;
  static constexpr int kCopies = extent * kChunksARow / threads;
  static_assert(extent * kChunksARow % threads == 0, "every thread copies equally many chunks");

  __device__ __forceinline__ MmaLoader(const Operand& operand, const char** table, const void* somewhere)
      : operand_(operand), table_(table), somewhere_(somewhere) {}

  // Fills `table` [extent], in shared memory; a barrier must pass before issue().
  __device__ __forceinline__ void begin() {
    for (int r = threadIdx.x; r < extent; r += threads) {
      const std::int32_t row = operand_.memory_row(std::int64_t{operand_.row0} + r);
      table_[r] = row < 0 ? nullptr : operand_.base + row * operand_.ld_bytes;
    }
  }

  __device__ __forceinline__ void issue(std::uint32_t stage, int step) const {
    const int chunk = threadIdx.x % kChunksARow;
    const int bytes = min(max(operand_.column_end - step * tile_k - chunk * 8, 0), 8) * 2;  // in an order that cannot overflow
    const std::int64_t offset = (std::int64_t{step} * tile_k + chunk * 8) * 2;
    if (operand_.alignment == kChunkBytes) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const char* start = table_[row_of(i)];
        copy_aligned(stage + swizzled_offset<kChunksARow>(row_of(i), chunk), start + offset, start != nullptr ? bytes : 0,
                     somewhere_);
      }
    } else {
      const bool words = operand_.alignment == 4;
#pragma unroll 1
      for (int i = 0; i < kCopies; ++i) {
        const char* start = table_[row_of(i)];
        copy_unaligned<2>(stage + swizzled_offset<kChunksARow>(row_of(i), chunk), start + offset, start != nullptr ? bytes : 0,
                          words, somewhere_);
      }
    }
  }

 private:
  static __device__ __forceinline__ int row_of(int i) { return threadIdx.x / kChunksARow + i * (threads / kChunksARow); }

  const Operand& operand_;
  const char** table_;
  const void* somewhere_;
};

// [tile_k][extent]: every step has new rows; their numbers are fetched one step ahead, so that a copy never waits for them.
template <int extent, int tile_k, int threads>
class MmaLoader<extent, tile_k, threads, Order::inner_strided> {
 public:
  static constexpr int kChunksARow = extent / 8;
  static constexpr int kCopies = tile_k * kChunksARow / threads;
  static_assert(tile_k * kChunksARow % threads == 0, "every thread copies equally many chunks");

  __device__ __forceinline__ MmaLoader(const Operand& operand, const char**, const void* somewhere)
      : operand_(operand), somewhere_(somewhere) {}

  __device__ __forceinline__ void begin() { fetch(0); }

  // Steps must come in ascending order from 0.
  __device__ __forceinline__ void issue(std::uint32_t stage, int step) {
    const int chunk = threadIdx.x % kChunksARow;
    const int bytes = min(max(operand_.column_end - operand_.column0 - chunk * 8, 0), 8) * 2;
    const std::int64_t ld_bytes = operand_.ld_bytes;
    const char* start = operand_.base + (operand_.column0 + std::int64_t{chunk} * 8) * 2;
    if (operand_.alignment == kChunkBytes) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i)
        copy_aligned(stage + swizzled_offset<kChunksARow>(row_of(i), chunk), start + rows_[i] * ld_bytes,
                     rows_[i] >= 0 ? bytes : 0, somewhere_);
    } else {
      const bool words = operand_.alignment == 4;
#pragma unroll 1
      for (int i = 0; i < kCopies; ++i) {
        const std::int32_t row = operand_.memory_row(std::int64_t{step} * tile_k + row_of(i));
        copy_unaligned<2>(stage + swizzled_offset<kChunksARow>(row_of(i), chunk), start + row * ld_bytes, row >= 0 ? bytes : 0,
                          words, somewhere_);
      }
    }
    fetch(step + 1);
  }

 private:
  static __device__ __forceinline__ int row_of(int i) { return threadIdx.x / kChunksARow + i * (threads / kChunksARow); }

  __device__ __forceinline__ void fetch(int step) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) rows_[i] = operand_.memory_row(std::int64_t{step} * tile_k + row_of(i));
  }

  const Operand& operand_;
  const void* somewhere_;
  std::int32_t rows_[kCopies];
};

}  // namespace ggm::cuda
