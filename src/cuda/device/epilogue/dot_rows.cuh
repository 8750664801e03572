// Partial inner products of the accumulators with rows of x, one for each row and 64 columns, in the order that ggm.h section 8
// fixes: four chains of fused multiply-adds, then (s0 + s1) + (s2 + s3).
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"
#include "cuda/device/pair.cuh"

namespace ggm::cuda {

inline constexpr int kDotBlock = 64;  // columns of one partial sum

// Whether the pairs of columns that a chain takes can be read as words of x.
__device__ __forceinline__ bool words_of_x(const GemmCall& call, const Tile& tile) {
  const Epilogue& e = call.epilogue;
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(e.dot_x) | static_cast<std::uint64_t>(e.dot_x_ld) * 2;
  return is_16bit(call.type) && (bits & 3) == 0 && tile.n_left % 2 == 0;
}

// Chain l = 0..3 of the block that starts at column `block` of the tile, row i.
template <typename Sum>
__device__ __forceinline__ Sum dot_chain(const TileView<Sum>& view, int i, int block, int l, const void* x,
                                         std::int64_t x_row) {
  constexpr int kPairs = kDotBlock / 8;
  const Sum* u = view.staging + i * kStagingPitch;
  const std::int64_t start = x_row * view.call.epilogue.dot_x_ld + view.tile.n0;
  const Type type = view.call.type;
  Sum s = 0;
  if constexpr (sizeof(Sum) == 4) {
    if (words_of_x(view.call, view.tile)) {
      // All words first, so that their latencies overlap.
      const auto* words = reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint16_t*>(x) + start);
      std::uint32_t word[kPairs];
#pragma unroll
      for (int b = 0; b < kPairs; ++b) {
        const int column = block + 8 * b + 2 * l;
        word[b] = column < view.tile.n_left ? __ldg(words + column / 2) : 0;
      }
#pragma unroll
      for (int b = 0; b < kPairs; ++b) {
        const int column = block + 8 * b + 2 * l;
        if (column >= view.tile.n_left) continue;
        const float2 v = type == Type::bfloat16 ? unpack(word[b], __nv_bfloat16{}) : unpack(word[b], __half{});
        s = fma_rn(u[column + 1], v.y, fma_rn(u[column], v.x, s));
      }
      return s;
    }
  }
#pragma unroll
  for (int b = 0; b < kPairs; ++b)
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int column = block + 8 * b + 2 * l + k;
      if (column < view.tile.n_left) s = fma_rn(u[column], load_value<Sum>(x, start + column, type), s);
    }
  return s;
}

template <typename Sum, int tile_m, int warps>
__device__ __forceinline__ void dot_rows(const TileView<Sum>& view) {
  constexpr int kRows = 4;  // a warp's rows at a time: eight lanes a row, for two blocks of four chains
  static_assert(kTileColumns == 2 * kDotBlock, "eight lanes take a row of the tile");
  const Epilogue& e = view.call.epilogue;
  const int lane = threadIdx.x % 32, rows = view.rows(tile_m);
  const int block = lane / 4 % 2 * kDotBlock, l = lane % 4;
  for (int first = static_cast<int>(threadIdx.x / 32 % warps) * kRows; first < rows; first += warps * kRows) {
    const int i = first + lane / 8;
    const std::int64_t r = view.sorted_row(i);
    std::int64_t x_row = -1;
    if (i < rows && view.row_valid(r)) x_row = e.dot_rows != nullptr ? std::int64_t{__ldg(e.dot_rows + r)} : r;
    Sum s = x_row >= 0 ? dot_chain(view, i, block, l, e.dot_x, x_row) : Sum(0);
    s = add_rn(s, __shfl_xor_sync(0xffffffffu, s, 1));
    s = add_rn(s, __shfl_xor_sync(0xffffffffu, s, 2));
    if (l == 0 && x_row >= 0 && block < view.tile.n_left)
      static_cast<Sum*>(e.dots)[r * e.dot_blocks + (view.tile.n0 + block) / kDotBlock] = s;
  }
}

}  // namespace ggm::cuda
