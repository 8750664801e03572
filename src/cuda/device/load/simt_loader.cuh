// Operand loaders of the float32 kernels. Shared memory always holds [tile_k][extent + pad], so that a thread reads its rows'
// values of one k by 128-bit loads; an operand whose K is contiguous is transposed on the way, element by element (4-byte
// asynchronous copies).
#pragma once

#include <type_traits>

#include "cuda/device/load/chunk_loader.cuh"

namespace ggm::cuda {

// Floats from one k to the next: keeps 16-byte alignment and spreads the transposing stores over the banks.
inline constexpr int kSimtPad = 4;
template <int extent>
inline constexpr int kSimtPitch = extent + kSimtPad;

// Which chunks a thread copies: chunk `chunk()` of the rows row(0), row(1), ... of a step of a strided operand.
template <int extent, int tile_k, int threads, Order order>
struct SimtCopies {
  static constexpr int kExtent = extent, kTileK = tile_k, kThreads = threads, kElementBytes = 4, kChunk = 4;
  static constexpr bool kContiguous = order == Order::inner_contiguous;
  static constexpr int kChunksARow = extent / kChunk;
  static constexpr int kRowsAPass = threads / kChunksARow;
  static constexpr int kCount = tile_k / kRowsAPass;
  static_assert(kCount >= 1 && tile_k % kRowsAPass == 0, "every thread copies equally many chunks");

  static __device__ __forceinline__ int chunk() { return threadIdx.x % kChunksARow; }
  static __device__ __forceinline__ int row(int i) { return threadIdx.x / kChunksARow + i * kRowsAPass; }
  static __device__ __forceinline__ std::uint32_t offset() { return (row(0) * kSimtPitch<extent> + chunk() * kChunk) * 4; }
  static constexpr std::uint32_t kPassBytes = kRowsAPass * kSimtPitch<extent> * 4;
};

// [extent][tile_k] of memory, transposed. Too many rows for registers: their starts lie in shared memory.
template <typename Copies>
class TransposingLoader {
 public:
  static constexpr int kRowsAPass = Copies::kThreads / Copies::kTileK;  // threads next to each other read along K
  static constexpr int kCount = Copies::kExtent / kRowsAPass;
  static_assert(Copies::kThreads % Copies::kTileK == 0 && Copies::kExtent % kRowsAPass == 0,
                "every thread copies equally many elements of one k");
  static_assert(kCount <= 32, "one bit for each row of a thread");

  // Fills `table` [extent], in shared memory; a barrier must pass before issue().
  __device__ __forceinline__ TransposingLoader(const Operand& operand, const char** table, const void* somewhere)
      : rows_(table + row()), left_(operand.column_end - k()) {
    live_ = 0;
    for (int i = 0; i < kCount; ++i)
      if (operand.memory_row(std::int64_t{operand.row0} + row() + i * kRowsAPass) >= 0) live_ |= 1u << i;
    for (int r = threadIdx.x; r < Copies::kExtent; r += Copies::kThreads) {
      const std::int32_t at = operand.memory_row(std::int64_t{operand.row0} + r);
      table[r] = at < 0 ? static_cast<const char*>(somewhere) : operand.base + at * operand.ld_bytes;
    }
    to_ = (k() * kSimtPitch<Copies::kExtent> + row()) * 4;
    offset_ = k() * 4;
  }

  __device__ __forceinline__ void issue(std::uint32_t stage) {
    const unsigned live = left_ > 0 ? live_ : 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      ptx::cp_async_4_if(live & 1u << i, stage + to_ + i * kRowsAPass * 4, rows_[i * kRowsAPass] + offset_);
    left_ -= Copies::kTileK;
    offset_ += Copies::kTileK * 4;
  }

 private:
  static __device__ __forceinline__ int k() { return threadIdx.x % Copies::kTileK; }
  static __device__ __forceinline__ int row() { return threadIdx.x / Copies::kTileK; }

  const char** rows_;    // of this thread's first row
  std::int64_t offset_;  // bytes from a row's start to this thread's element of the next step
  std::uint32_t to_;
  unsigned live_;      // bit i: row i exists
  std::int32_t left_;  // elements of K from there on
};

template <bool fast, typename Copies>
using SimtLoader = std::conditional_t<Copies::kContiguous, TransposingLoader<Copies>,
                                      std::conditional_t<fast, FastStridedLoader<Copies>, GeneralLoader<Copies>>>;

}  // namespace ggm::cuda
