// Where and how wide a call's kernels run. Made once per call by the backend object and handed to every step.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/checked.h"

namespace ggm::cuda {

struct Launch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;  // that the call may use
  bool limited = false;     // fewer than the device has
  bool overlaps = false;    // kernels may be launched under the one before them (device/ptx/dependent.cuh)
  bool dependent = false;   // and this one is: see behind()
};

// For a kernel that follows another of the same call. The first of a call is launched plainly, so that nothing of it lies under
// the work of others.
inline Launch behind(Launch launch) {
  launch.dependent = launch.overlaps;
  return launch;
}

inline constexpr int kThreads = 256;  // of a block of every grid-stride kernel here

// Blocks for `items` pieces of work, `per_block` at a time; at least one. At most `each` for every multiprocessor: more than
// are resident, so that little is left to wait for at the end. NOTE: a call with a limit gets one for every multiprocessor that
// it may take, because the hardware spreads blocks over all of them before it doubles up.
inline int grid_size(const Launch& launch, std::int64_t items, std::int64_t per_block, int each = 32) {
  const std::int64_t most = std::int64_t{launch.multiprocessors} * (launch.limited ? 1 : each);
  return static_cast<int>(max64(1, min64(most, ceil_div(items, per_block))));
}

}  // namespace ggm::cuda
