// Results of a product that is not turned, out of a warpgroup's registers: rounded, 16 rows by 64 columns at a time through a
// warp's own piece of shared memory, so that a store covers 128 contiguous bytes of each of four rows. For what goes_direct
// allows, in the type of the operands, into rows in order and without weights. Same bits as the other ways out.
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/stmatrix.cuh"

namespace ggm::cuda {

inline constexpr int kStagedBytes = 16 * 128;  // of one warp

template <typename Element>
__device__ __forceinline__ bool goes_staged(const GemmCall& call) {
  const Epilogue& e = call.epilogue;
  return e.kind == EpilogueKind::store && e.d_type == kTypeOf<Element> && e.d_rows == nullptr && e.row_weight == nullptr &&
         e.dots == nullptr && (call.row_valid == nullptr || call.a_order != Order::inner_contiguous);
}

// `staging`: the warpgroup's, kStagedBytes for each of its warps. Sums: a WgmmaTile.
template <typename Element, typename Sums>
__device__ __forceinline__ void store_staged(const Tile& tile, const Sums& sums, std::uint32_t staging) {
  const int thread = ptx::fresh_thread() % 128, lane = thread % 32;
  const std::uint32_t own = staging + thread / 32 * kStagedBytes;
  const int to_row = lane / 8 % 2 * 8 + lane % 8;  // of the 16, that the lane gives the address of
  const std::uint32_t to = own + to_row * 128;
  const int line = lane / 8, chunk = lane % 8;  // that the lane stores to memory, of every four rows
  char* const d = static_cast<char*>(tile.desc.d) + (std::int64_t{tile.n0} + chunk * 8) * 2;
  const std::int64_t pitch = tile.desc.ldd * 2;
#pragma unroll
  for (int block = 0; block < Sums::kFragmentsM; ++block) {
    const int first_row = Sums::row(2 * block, thread) - lane / 4;
#pragma unroll
    for (int j = 0; j < Sums::kFragmentsN; j += 8) {
      if (8 * j >= tile.n_left) continue;
      __syncwarp();  // the piece has been read
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        std::uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 v = sums.pair(2 * block + i % 2, j + 2 * q + i / 2);
          words[i] = pack(v.x, v.y, Element{});
        }
        ptx::stmatrix_x4(to + ((2 * q + lane / 16) ^ to_row % 8) * 16, words);
      }
      __syncwarp();
      const bool column = 8 * (j + chunk) < tile.n_left;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 4 * i + line;
        std::uint32_t words[4];
        ptx::load_shared_16(words, own + row * 128 + (chunk ^ row % 8) * 16);
        if (column && first_row + row < tile.m_left)
          ptx::store_global_16(d + (std::int64_t{tile.m0} + first_row + row) * pitch + j * 16, words);
      }
    }
  }
}

}  // namespace ggm::cuda
