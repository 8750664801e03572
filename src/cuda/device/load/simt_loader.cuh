// Operand loaders of the float32 kernels. Shared memory always holds [tile_k][extent + pad], so that a thread reads its rows'
// values of one k by 128-bit loads; an operand whose K is contiguous is transposed on the way, element by element (4-byte
// asynchronous copies).
#pragma once

#include "cuda/device/load/chunk.cuh"
#include "cuda/device/load/rows.cuh"
#include "problem/problem.h"

namespace ggm::cuda {

// Floats from one k to the next: keeps 16-byte alignment and spreads the transposing stores over the banks.
inline constexpr int kSimtPad = 4;
template <int extent>
inline constexpr int kSimtPitch = extent + kSimtPad;

// begin() and issue() come after the operand is in shared memory.
template <int extent, int tile_k, int threads, Order order>
class SimtLoader;

template <int extent, int tile_k, int threads>
class SimtLoader<extent, tile_k, threads, Order::inner_contiguous> {
 public:
  static constexpr int kCopies = extent * tile_k / threads;
  static_assert(extent * tile_k % threads == 0 && threads % tile_k == 0, "every thread copies equally many elements of one k");

  __device__ __forceinline__ SimtLoader(const Operand& operand, const char** table, const void* somewhere)
      : operand_(operand), table_(table), somewhere_(somewhere) {}

  // Fills `table` [extent], in shared memory; a barrier must pass before issue().
  __device__ __forceinline__ void begin() {
    for (int r = threadIdx.x; r < extent; r += threads) {
      const std::int32_t row = operand_.memory_row(std::int64_t{operand_.row0} + r);
      table_[r] = row < 0 ? nullptr : operand_.base + row * operand_.ld_bytes;
    }
  }

  __device__ __forceinline__ void issue(std::uint32_t stage, int step) {
    const int k = threadIdx.x % tile_k;  // neighbours read neighbours
    const std::int64_t column = std::int64_t{step} * tile_k + k;
    const bool exists = column < operand_.column_end;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = threadIdx.x / tile_k + i * (threads / tile_k);
      const char* start = table_[row];
      const bool live = exists && start != nullptr;
      ptx::cp_async_4(stage + (k * kSimtPitch<extent> + row) * 4, live ? start + column * 4 : somewhere_, live ? 4 : 0);
    }
  }

 private:
  const Operand& operand_;
  const char** table_;
  const void* somewhere_;
};

template <int extent, int tile_k, int threads>
class SimtLoader<extent, tile_k, threads, Order::inner_strided> {
 public:
  static constexpr int kChunksARow = extent / 4;
  static constexpr int kCopies = tile_k * kChunksARow / threads;
  static_assert(tile_k * kChunksARow % threads == 0, "every thread copies equally many chunks");

  __device__ __forceinline__ SimtLoader(const Operand& operand, const char**, const void* somewhere)
      : operand_(operand), somewhere_(somewhere) {}

  __device__ __forceinline__ void begin() { fetch(0); }

  // Steps must come in ascending order from 0.
  __device__ __forceinline__ void issue(std::uint32_t stage, int step) {
    const int chunk = threadIdx.x % kChunksARow;
    const int bytes = min(max(operand_.column_end - operand_.column0 - chunk * 4, 0), 4) * 4;
    const std::int64_t ld_bytes = operand_.ld_bytes;
    const char* start = operand_.base + (operand_.column0 + std::int64_t{chunk} * 4) * 4;
    if (operand_.alignment == 16) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i)
        copy_aligned(stage + (row_of(i) * kSimtPitch<extent> + chunk * 4) * 4, start + rows_[i] * ld_bytes,
                     rows_[i] >= 0 ? bytes : 0, somewhere_);
    } else {
#pragma unroll 1
      for (int i = 0; i < kCopies; ++i) {
        const std::int32_t row = operand_.memory_row(std::int64_t{step} * tile_k + row_of(i));
        copy_unaligned<4>(stage + (row_of(i) * kSimtPitch<extent> + chunk * 4) * 4, start + row * ld_bytes,
                          row >= 0 ? bytes : 0, true, somewhere_);
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
