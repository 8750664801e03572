// Operands of the float32 kernels on their way to shared memory, in two halves. Threads copy chunks of 16 bytes as memory has
// them; then, if need be, each rearranges its own chunks inside shared memory into the form of the multiply:
// [k][extent], columns of B swapped in pairs (see SimtTile), rows of K times their factors.
#pragma once

#include <type_traits>

#include "cuda/device/load/chunk_loader.cuh"
#include "cuda/device/load/swizzle.h"
#include "cuda/device/tile_shape.h"
#include "problem/problem.h"

namespace ggm::cuda {

// Which row of a tile lies at row `place` of shared memory. Spread: the rows come to the tile's warps in turns, 16 each, so
// that all warps have equal parts of the first rows when the others do not exist.
template <int rows, int warps>
struct SpreadRows {
  static constexpr int kPiece = 16, kOfWarp = rows / warps;
  static_assert(rows % (warps * kPiece) == 0, "every warp has equally many pieces");
  static __device__ __forceinline__ int row(int place) {
    return place % kOfWarp / kPiece * (warps * kPiece) + place / kOfWarp * kPiece + place % kPiece;
  }
};
struct RowsInOrder {
  static __device__ __forceinline__ int row(int place) { return place; }
};
template <int kernel, bool spread>
using RowSpread = std::conditional_t<spread, SpreadRows<kShape<kernel>.m, kShape<kernel>.warps_m>, RowsInOrder>;

// Which chunks a thread copies: chunk `chunk()` of the stored rows row(0), row(1), ... of a step. Their places are free where
// K is inside, because only the thread that copied a chunk reads it.
template <int extent, int tile_k, int threads, Order order, typename Rows = RowsInOrder>
struct SimtCopies {
  using Spread = Rows;
  static constexpr int kExtent = extent, kTileK = tile_k, kThreads = threads, kElementBytes = 4, kChunk = 4;
  static constexpr bool kContiguous = order == Order::inner_contiguous;
  static constexpr int kChunksARow = (kContiguous ? tile_k : extent) / kChunk;
  static constexpr int kRowsAPass = threads / kChunksARow;
  static constexpr int kCount = (kContiguous ? extent : tile_k) / kRowsAPass;
  static_assert(kCount >= 1 && (kContiguous ? extent : tile_k) % kRowsAPass == 0, "every thread copies equally many chunks");

  static __device__ __forceinline__ int chunk(int thread = threadIdx.x) { return thread % kChunksARow; }
  static __device__ __forceinline__ int row(int i, int thread = threadIdx.x) { return thread / kChunksARow + i * kRowsAPass; }
  static __device__ __forceinline__ std::uint32_t offset(int thread = threadIdx.x) { return thread * kChunkBytes; }
  static constexpr std::uint32_t kPassBytes = threads * kChunkBytes;
};

// The loaders below copy a thread's chunks of one step with each issue(), in the order of the steps, from step 0 on or from the
// one that skip() names; those behind K become zeros. The fast ones want Operand::fast, and do for each copy only what changes
// from step to step; GeneralLoader takes the rest.

// K inside: the rows are the same in every step, and the addresses move on.
template <typename Copies>
class RowsLoader {
 public:
  __device__ __forceinline__ RowsLoader(const Operand& operand, const char**, const void*) {
    left_ = operand.column_end - Copies::chunk() * Copies::kChunk;
    live_ = 0;
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::int32_t row = operand.memory_row(std::int64_t{operand.row0} + Copies::Spread::row(Copies::row(i)));
      if (row >= 0) live_ |= 1u << i;
      from_[i] = operand.base + std::int64_t{max(row, 0)} * static_cast<std::int32_t>(operand.ld_bytes) +
                 Copies::chunk() * kChunkBytes;
    }
  }

  __device__ __forceinline__ void skip(int steps) {
    left_ -= steps * Copies::kTileK;
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) from_[i] += steps * Copies::kTileK * Copies::kElementBytes;
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
    const unsigned live = left_ > 0 ? live_ : 0;
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      ptx::cp_async_16_if(live & 1u << i, stage + Copies::offset() + i * Copies::kPassBytes, from_[i]);
      from_[i] += Copies::kTileK * Copies::kElementBytes;
    }
    left_ -= Copies::kTileK;
  }

 private:
  const char* from_[Copies::kCount];
  unsigned live_;      // bit i: row i exists
  std::int32_t left_;  // elements of K from this thread's chunk of the next step on
};

// K outside, rows in order: a weight.
template <typename Copies>
class OrderedLoader {
 public:
  __device__ __forceinline__ OrderedLoader(const Operand& operand, const char**, const void*) {
    const std::int64_t column = operand.column0 + std::int64_t{Copies::chunk()} * Copies::kChunk;
    const bool exists = column < operand.column_end;
    from_ = operand.base + (exists ? column * Copies::kElementBytes : 0);
    ld_ = static_cast<std::uint32_t>(operand.ld_bytes);
    row_ = Copies::row(0);
    left_ = exists ? operand.row_end - Copies::row(0) : 0;
  }

  __device__ __forceinline__ void skip(int steps) {
    row_ += steps * Copies::kTileK;
    left_ -= steps * Copies::kTileK;
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i)
      ptx::cp_async_16_if(left_ > i * Copies::kRowsAPass, stage + Copies::offset() + i * Copies::kPassBytes,
                          from_ + std::uint64_t{row_ + i * Copies::kRowsAPass} * ld_);
    row_ += Copies::kTileK;
    left_ -= Copies::kTileK;
  }

 private:
  const char* from_;
  std::uint32_t ld_, row_;  // row_: this thread's first row of the next step
  std::int32_t left_;       // rows of K from there on
};

// K outside, rows that may be listed: every step has new rows, and their numbers are looked up one step ahead, so that a copy
// never waits for them. What does not change is read from shared memory anew: the registers are all taken.
template <typename Copies>
class ListedLoader {
 public:
  __device__ __forceinline__ ListedLoader(const Operand& operand, const char**, const void*) : operand_(operand) {
    const std::int64_t column = operand.column0 + std::int64_t{Copies::chunk()} * Copies::kChunk;
    end_ = column < operand.column_end ? operand.row_end : 0;
    column_ = end_ != 0 ? static_cast<std::uint32_t>(column) : 0;
    listed_ = operand.list != nullptr;
    next_ = Copies::row(0);
    find_rows();
  }

  __device__ __forceinline__ void skip(int steps) {
    next_ += (steps - 1) * Copies::kTileK;
    find_rows();
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
    const char* from = operand_.base + std::uint64_t{column_} * Copies::kElementBytes;
    const auto ld = static_cast<std::uint32_t>(operand_.ld_bytes);
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i)
      ptx::cp_async_16_row(rows_[i], ld, stage + Copies::offset() + i * Copies::kPassBytes, from);
    find_rows();
  }

 private:
  // Memory rows of the next step; negative: zeros.
  __device__ __forceinline__ void find_rows() {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const std::uint32_t row = next_ + i * Copies::kRowsAPass;
      rows_[i] = row < end_ ? static_cast<std::int32_t>(row) : -1;
    }
    if (listed_) {
      const std::int32_t* list = operand_.list;
      const bool gathered = operand_.gathered != 0;
      std::int32_t entries[Copies::kCount];
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i) entries[i] = rows_[i] >= 0 ? __ldg(list + rows_[i]) : -1;
#pragma unroll
      for (int i = 0; i < Copies::kCount; ++i)
        if (gathered || entries[i] < 0) rows_[i] = entries[i];
    }
    next_ += Copies::kTileK;
  }

  const Operand& operand_;
  std::uint32_t column_, next_, end_;
  bool listed_;
  std::int32_t rows_[Copies::kCount];
};

// `listed`: rows of an operand with K outside may be gathered or invalid.
template <bool fast, bool listed, typename Copies>
using SimtLoader =
    std::conditional_t<!fast, GeneralLoader<Copies>,
                       std::conditional_t<Copies::kContiguous, RowsLoader<Copies>,
                                          std::conditional_t<listed, ListedLoader<Copies>, OrderedLoader<Copies>>>>;

// Whether the columns of B lie swapped in pairs: see SimtTile. Not in the kernel of few rows, which memory bounds.
template <int kernel>
inline constexpr bool kColumnsSwapped = kShape<kernel>.m >= 128;

// Rearranges the thread's chunks one by one: load(), then store(). Nothing to do for an operand that is copied into its last
// form. `swapped`: neighbouring rows 2i and 2i + 1 (columns of B) change places. `scaled`: the rows of K may have factors.
template <typename Copies, bool swapped, bool scaled>
class Arranger {
 public:
  static constexpr bool kNeeded = Copies::kContiguous || swapped || scaled;
  static constexpr int kCount = kNeeded ? Copies::kCount : 0;
  static_assert(!Copies::kContiguous || Copies::kRowsAPass % 32 == 0, "the swizzle is the same for all rows of a thread");
  static_assert(!Copies::kContiguous || !scaled, "factors belong to rows of K");

  __device__ __forceinline__ Arranger() {
    if constexpr (Copies::kContiguous)
      to_ = transposed_offset<Copies::kExtent, Copies::kTileK>(Copies::chunk() * Copies::kChunk, Copies::row(0) ^ int{swapped});
    else
      to_ = Copies::offset();
  }

  // `factors`: address of [tile_k]. Not multiplied: by 1, because a branch would stand between the products.
  __device__ __forceinline__ void load(std::uint32_t copied, int i, std::uint32_t factors, bool multiplied) {
    ptx::load_shared_16(words_, copied + Copies::offset() + i * Copies::kPassBytes);
    if constexpr (scaled) {
      const float factor = ptx::load_shared_4(factors + Copies::row(i) * 4);
      factor_ = multiplied ? factor : 1.0f;
    }
  }

  __device__ __forceinline__ void store(std::uint32_t arranged, int i) const {
    float v[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) v[e] = scaled ? __fmul_rn(factor_, words_[e]) : words_[e];
    if constexpr (Copies::kContiguous) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        ptx::store_shared_4(arranged + to_ + (e * Copies::kExtent + i * Copies::kRowsAPass) * 4, v[e]);
    } else {
      constexpr int kSwap = swapped ? 1 : 0;
      const float moved[4] = {v[kSwap], v[1 - kSwap], v[2 + kSwap], v[3 - kSwap]};
      ptx::store_shared_16(arranged + to_ + i * Copies::kPassBytes, moved);
    }
  }

 private:
  std::uint32_t to_;
  float words_[4];
  float factor_ = 1;
};

}  // namespace ggm::cuda
