// Results of a tile of very few rows straight from the registers, which have them turned: rounded sums, into rows that lie in D
// as they do in the group. No more than 16 bytes of a row at a time, but hardly any code: what a block stores first waits for
// its instructions, which come from memory behind the weights (docs/kernels.md). Same bits as the other ways out.
#pragma once

#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/pair.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

inline constexpr int kStraightRows = 4;  // with eight, some calls of four to eight rows a group became up to 0.9 us slower

// Whether the call's results may go that way.
__device__ __forceinline__ bool may_go_straight(const HopperCall& call) {
  return call.result.used && !call.result.wide && call.gemm.epilogue.dots == nullptr;
}

// The work of one warpgroup, for up to kStraightRows rows. Sums: a WgmmaTile.
template <typename Element, typename Sums>
__device__ __forceinline__ void store_straight(const Tile& tile, const Sums& sums) {
  const int thread = ptx::fresh_thread(), row = thread % 4 * 2;
  auto* const to = static_cast<std::uint16_t*>(tile.desc.d) + (std::int64_t{tile.m0} + row) * tile.desc.ldd + tile.n0;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    const float2 v = sums.pair(u, 0);
    const std::uint32_t both = pack(v.x, v.y, Element{});
    const int column = Sums::row(u, thread);
    if (column >= tile.n_left) continue;
    if (row < tile.m_left) to[column] = static_cast<std::uint16_t>(both);
    if (row + 1 < tile.m_left) to[tile.desc.ldd + column] = static_cast<std::uint16_t>(both >> 16);
  }
}

}  // namespace ggm::cuda
