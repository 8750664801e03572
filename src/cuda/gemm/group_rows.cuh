// Reading what says how the rows of groups are found. Used by the kernels that build the table, and by those that do without.
#pragma once

#include "cuda/gemm/groups.h"
#include "plan/clamp.h"

namespace ggm::cuda {

__device__ inline std::int64_t read_index(const void* values, IndexType type, std::int64_t i) {
  return type == IndexType::int64 ? static_cast<const std::int64_t*>(values)[i] : static_cast<const std::int32_t*>(values)[i];
}

// Whether the thread's own range has a row with row_valid[r] >= 0; every thread of the warp calls it. With the arrays of
// ggm_route the first row says so. Ranges that start with an invalid row are searched by the whole warp, one after the other.
__device__ inline bool any_valid(const std::int32_t* row_valid, const ClampedRange& range) {
  constexpr unsigned kWarp = 0xffffffffu;
  constexpr int kLanes = 32, kRowsALane = 8;  // loads in flight before each vote
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  bool found = range.size > 0 && row_valid[range.start] >= 0;
  for (unsigned open = __ballot_sync(kWarp, !found && range.size > 1); open != 0; open &= open - 1) {
    const int owner = __ffs(static_cast<int>(open)) - 1;
    const std::int64_t begin = __shfl_sync(kWarp, range.start, owner), end = begin + __shfl_sync(kWarp, range.size, owner);
    bool any = false;
    for (std::int64_t row = begin + lane; row - lane < end && !any; row += kLanes * kRowsALane) {
      bool mine = false;
#pragma unroll
      for (int i = 0; i < kRowsALane; ++i) mine |= row + i * kLanes < end && row_valid[row + i * kLanes] >= 0;
      any = __any_sync(kWarp, mine);
    }
    if (lane == owner) found = any;
  }
  return found;
}

}  // namespace ggm::cuda
