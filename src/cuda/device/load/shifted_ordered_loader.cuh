// ShiftedLoader (shifted_loader.cuh) for rows in order, in the main loop: the first steps are its, this one goes on behind
// them. The rows of a thread's chunks are a multiple of eight apart, and eight times any pitch is a multiple of 16 bytes: they
// all have the same distance from their blocks. So a chunk is put together from the five words that it lies in, whose addresses
// are found once a step, instead of two whole blocks and a choice of words for each chunk.
//
// NOTE: one word each of chunks that lie side by side: where all rows have the same distance, four lanes want the same bank.
// Tiles with such rows take the other loader (suits()).
#pragma once

#include "cuda/device/load/shifted_loader.cuh"

namespace ggm::cuda {

template <typename Copies>
class ShiftedOrderedLoader {
 public:
  static_assert(Copies::kContiguous && Copies::kElementBytes == 2, "rows of 16-bit elements along K");
  static_assert(Copies::kRowsAPass % 8 == 0, "the rows of a thread have the same distance");
  static_assert(32 % Copies::kChunksARow == 0, "a row's chunks are copied by one warp");

  // Whether an operand is one for this loader.
  static __device__ __forceinline__ bool suits(const Operand& operand) {
    return operand.list == nullptr && (operand.ld_bytes & 7) != 0 && operand.ld_bytes <= 0x7fffffff;
  }

  __device__ __forceinline__ ShiftedOrderedLoader(const Operand& operand, const char**, const void*) {
    const int thread = ptx::fresh_thread(), row = Copies::row(0, thread);
    chunk_ = Copies::chunk(thread);
    pitch_ = static_cast<std::uint32_t>(operand.ld_bytes);
    const char* start = operand.base + (std::int64_t{operand.row0} + row) * pitch_;
    const auto distance = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(start)) & (kChunkBytes - 1);
    from_ = start - distance + chunk_ * kChunkBytes;
    distance_ = distance / 2;
    left_ = operand.column_end;
    const std::int32_t rows = operand.row_end - operand.row0 - row;
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i)
      if (i * Copies::kRowsAPass < rows) live_ |= 1u << i;  // an address behind the last row is not read
    const bool last = chunk_ + 1 == Copies::kChunksARow;
    const std::uint32_t word = distance & ~3u;
    to_ = Copies::offset(thread);
    here_ = to_ + word;
    next_ = swizzled_offset<Copies::kChunksARow>(Copies::row(0, thread), last ? 0 : chunk_ + 1) + word - kChunkBytes;
    after_ = last ? ~0u : 0;
  }

  __device__ __forceinline__ void skip(int steps) {
    from_ += steps * Copies::kTileK * 2;
    left_ -= steps * Copies::kTileK;
  }

  // Whether rows end in the next step or before it: then copy_ends() does for copy(). The same for all threads and for both
  // operands.
  __device__ __forceinline__ bool ends() const { return left_ < Copies::kTileK; }

  // As ShiftedLoader has it: blocks in which rows end go by elements, and behind their k16 step nothing is copied.
  __device__ __forceinline__ void copy_ends(std::uint32_t stage) const {
    if (left_ <= -16) return;
    const int some = min(max((left_ + distance_ - chunk_ * 8) * 2, 0), kChunkBytes);
#pragma unroll 1
    for (int i = 0; i < Copies::kCount; ++i) {
      const bool live = (live_ >> i & 1) != 0;
      const std::uint32_t to = stage + to_ + i * Copies::kPassBytes;
      if (some == 0 || some == kChunkBytes || !live)
        ptx::cp_async_16_if(live ? some : 0, to, block(i));
      else
        copy_part(to, block(i), 0, some);
    }
  }

  __device__ __forceinline__ void begin_step() { inside_ = !ends(); }
  __device__ __forceinline__ void copy(std::uint32_t stage, int i, int) const {
    if (inside_) ptx::cp_async_16_if(live_ & 1u << i, stage + to_ + i * Copies::kPassBytes, block(i));
  }
  __device__ __forceinline__ void end_step() { skip(1); }
  __device__ __forceinline__ void end_round(int) {}

  // As ShiftedLoader has them.
  __device__ __forceinline__ void load_shift(std::uint32_t stage, std::uint32_t after, int i) {
    const std::uint32_t here = stage + here_, next = (after_ != 0 ? after : stage) + next_;
#pragma unroll
    for (int w = 0; w < 5; ++w)
      words_[i % 2][w] = ptx::load_shared_word((distance_ / 2 + w < 4 ? here : next) + 4 * w + i * Copies::kPassBytes);
  }
  __device__ __forceinline__ void store_shift(std::uint32_t stage, int i) const {
    const std::uint32_t(&words)[5] = words_[i % 2];
    std::uint32_t chunk[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) chunk[w] = __funnelshift_r(words[w], words[w + 1], (distance_ & 1) * 16);
    __syncwarp();  // the lane before has read this one's block
    ptx::store_shared_16(stage + to_ + i * Copies::kPassBytes, chunk);
  }

 private:
  // The block of this thread in row i, at the next step.
  __device__ __forceinline__ const char* block(int i) const {
    return from_ + std::uint64_t{pitch_} * static_cast<std::uint32_t>(i * Copies::kRowsAPass);
  }

  const char* from_;
  std::uint32_t pitch_, to_, here_, next_, after_;  // here_: the words of a chunk in its own block, next_: in the one after it
  std::uint32_t live_ = 0;                          // bit i: row i exists
  int chunk_, distance_;                            // in elements
  std::int32_t left_;                               // elements of K from the first of the next step on
  bool inside_ = false;
  std::uint32_t words_[2][5];
};

template <typename Copies>
inline constexpr bool is_shifted<ShiftedOrderedLoader<Copies>> = true;

}  // namespace ggm::cuda
