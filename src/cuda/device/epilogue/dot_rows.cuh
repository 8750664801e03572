// Partial inner products of the accumulators with rows of x, one for each row and 64 columns, in the order that ggm.h section 8
// fixes: 32 sums of two terms, added in pairs five times over.
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"
#include "cuda/device/pair.cuh"

namespace ggm::cuda {

inline constexpr int kDotBlock = 64;  // columns of one partial sum

// A lane's part of a block that four neighbouring lanes share: lane l has columns 2l and 2l + 1 of every eight.
template <typename Sum>
class QuadSums {
 public:
  __device__ __forceinline__ void add(int eight, int i, Sum u, Sum v) {
    sums_[eight / 2][i] = fma_rn(u, v, sums_[eight / 2][i]);
  }

  // The block's, in all four lanes.
  __device__ __forceinline__ Sum total() const {
    Sum quarters[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      quarters[w] = add_rn(sums_[w][0], sums_[w][1]);
      quarters[w] = add_rn(quarters[w], __shfl_xor_sync(0xffffffffu, quarters[w], 1));
      quarters[w] = add_rn(quarters[w], __shfl_xor_sync(0xffffffffu, quarters[w], 2));
    }
    return add_rn(add_rn(quarters[0], quarters[1]), add_rn(quarters[2], quarters[3]));
  }

 private:
  Sum sums_[4][2] = {};  // 16 columns each
};

// Whether the pairs of columns that a lane takes can be read as words of x.
__device__ __forceinline__ bool words_of_x(const GemmCall& call, const Tile& tile) {
  const Epilogue& e = call.epilogue;
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(e.dot_x) | static_cast<std::uint64_t>(e.dot_x_ld) * 2;
  return is_16bit(call.type) && (bits & 3) == 0 && tile.n_left % 2 == 0;
}

// A word, or 0 without reading. Written out so that neither its address nor a branch around it takes registers of its own: the
// sums of a wgmma kernel leave few.
template <int offset>
__device__ __forceinline__ std::uint32_t load_word_if(bool live, const char* from) {
  std::uint32_t word;
  asm volatile(
      "{\n"
      " .reg .pred some;\n"
      " setp.ne.u32 some, %2, 0;\n"
      " mov.u32 %0, 0;\n"
      " @some ld.global.nc.u32 %0, [%1 + %3];\n"
      "}"
      : "=r"(word)
      : "l"(from), "r"(static_cast<unsigned>(live)), "n"(offset));
  return word;
}

// The words of x that lane l takes: a pair of every eight columns.
inline constexpr int kDotWords = kDotBlock / 8;
__device__ __forceinline__ void load_dot_words(const TileView<float>& view, int block, int l, std::int64_t x_row,
                                               std::uint32_t (&word)[kDotWords]) {
  const Epilogue& e = view.call.epilogue;
  const int first = block + 2 * l, columns = x_row >= 0 ? view.tile.n_left - first : 0;
  const char* from = static_cast<const char*>(e.dot_x) + (x_row * e.dot_x_ld + view.tile.n0 + first) * 2;
  word[0] = load_word_if<0>(0 < columns, from);
  word[1] = load_word_if<16>(8 < columns, from);
  word[2] = load_word_if<32>(16 < columns, from);
  word[3] = load_word_if<48>(24 < columns, from);
  word[4] = load_word_if<64>(32 < columns, from);
  word[5] = load_word_if<80>(40 < columns, from);
  word[6] = load_word_if<96>(48 < columns, from);
  word[7] = load_word_if<112>(56 < columns, from);
}

// Lane l's part of the block that starts at column `block` of the tile, row i, with words that are there.
__device__ __forceinline__ QuadSums<float> dot_words(const TileView<float>& view, int i, int block, int l,
                                                     const std::uint32_t (&word)[kDotWords]) {
  const float* u = view.staging + i * kStagingPitch + block + 2 * l;
  const int columns = view.tile.n_left - block - 2 * l;
  QuadSums<float> sums;
#pragma unroll
  for (int b = 0; b < kDotWords; ++b) {
    if (8 * b >= columns) continue;
    const float2 sum = *reinterpret_cast<const float2*>(u + 8 * b);
    const float2 v = view.call.type == Type::bfloat16 ? unpack(word[b], __nv_bfloat16{}) : unpack(word[b], __half{});
    sums.add(b, 0, sum.x, v.x);
    sums.add(b, 1, sum.y, v.y);
  }
  return sums;
}

// The same from memory, whatever its alignment.
template <typename Sum>
__device__ __forceinline__ QuadSums<Sum> dot_memory(const TileView<Sum>& view, int i, int block, int l, const void* x,
                                                    std::int64_t x_row) {
  if constexpr (sizeof(Sum) == 4) {
    if (words_of_x(view.call, view.tile)) {
      std::uint32_t word[kDotWords];
      load_dot_words(view, block, l, x_row, word);
      return dot_words(view, i, block, l, word);
    }
  }
  const Sum* u = view.staging + i * kStagingPitch;
  const std::int64_t start = x_row * view.call.epilogue.dot_x_ld + view.tile.n0;
  QuadSums<Sum> sums;
#pragma unroll
  for (int b = 0; b < kDotBlock / 8; ++b)
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int column = block + 8 * b + 2 * l + k;
      if (column < view.tile.n_left) sums.add(b, k, u[column], load_value<Sum>(x, start + column, view.call.type));
    }
  return sums;
}

// The row of x for row i of the view, -1: none.
template <typename Sum>
__device__ __forceinline__ std::int64_t dot_row(const TileView<Sum>& view, int i, int rows) {
  const Epilogue& e = view.call.epilogue;
  const std::int64_t r = view.sorted_row(i);
  if (i >= rows) return -1;
  if (e.dot_rows != nullptr) return __ldg(e.dot_rows + r);  // negative where row_valid is
  return view.row_valid(r) ? r : -1;
}

// Adds what the four lanes have and stores the sum of row i.
template <typename Sum>
__device__ __forceinline__ void store_dot(const TileView<Sum>& view, int i, int block, int l, bool exists,
                                          const QuadSums<Sum>& sums) {
  const Epilogue& e = view.call.epilogue;
  const Sum s = sums.total();
  if (l == 0 && exists && block < view.tile.n_left)
    static_cast<Sum*>(e.dots)[view.sorted_row(i) * e.dot_blocks + (view.tile.n0 + block) / kDotBlock] = s;
}

template <typename Sum, int tile_m, int warps>
__device__ __forceinline__ void dot_rows(const TileView<Sum>& view) {
  constexpr int kRows = 4;  // a warp's rows at a time: eight lanes a row, for two blocks
  static_assert(kTileColumns == 2 * kDotBlock, "eight lanes take a row of the tile");
  const Epilogue& e = view.call.epilogue;
  const int lane = threadIdx.x % 32, rows = view.rows(tile_m);
  const int block = lane / 4 % 2 * kDotBlock, l = lane % 4;
  for (int first = static_cast<int>(threadIdx.x / 32 % warps) * kRows; first < rows; first += warps * kRows) {
    const int i = first + lane / 8;
    const std::int64_t x_row = dot_row(view, i, rows);
    store_dot(view, i, block, l, x_row >= 0, x_row >= 0 ? dot_memory(view, i, block, l, e.dot_x, x_row) : QuadSums<Sum>{});
  }
}

}  // namespace ggm::cuda
