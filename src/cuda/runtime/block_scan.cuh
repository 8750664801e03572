// For kernels of one block that walk offsets and groups in chunks: an inclusive scan over all threads.
#pragma once

#include <cstdint>

namespace ggm::cuda {

inline constexpr int kScanThreads = 1024;

struct Add {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};
struct Max {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a > b ? a : b; }
};

struct ScanShared {
  std::int64_t warp_totals[kScanThreads / 32];
};

// value of this thread joined with those of all lower threads; *total gets the join of all. identity(x) op x = x. Every thread
// of a block of kScanThreads must call it; `shared` may be used again at once.
template <typename Op>
__device__ std::int64_t block_scan(std::int64_t value, Op op, std::int64_t identity, ScanShared& shared, std::int64_t* total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 1; step < 32; step *= 2) {
    const std::int64_t lower = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = op(lower, value);
  }
  if (lane == 31) shared.warp_totals[warp] = value;
  __syncthreads();
  if (warp == 0) {
    std::int64_t sum = shared.warp_totals[lane];
    for (int step = 1; step < 32; step *= 2) {
      const std::int64_t lower = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum = op(lower, sum);
    }
    shared.warp_totals[lane] = sum;
  }
  __syncthreads();
  const std::int64_t before = warp == 0 ? identity : shared.warp_totals[warp - 1];
  *total = shared.warp_totals[kScanThreads / 32 - 1];
  __syncthreads();
  return op(before, value);
}

}  // namespace ggm::cuda
