// Rows of x for the inner products of a tile (Epilogue::dots) come like one more operand: behind the steps of K, in
// kDotStages stages whose right half has 64 columns of x for each row of the tile. A warpgroup uses two of them, for
// its 128 columns; where both multiply one tile, each lets the other's pass.
#pragma once

#include "cuda/device/hopper/storage.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

inline constexpr int kDotStages = 4;

template <typename Shared>
class DotStages {
 public:
  // `first_step`: of the first of these stages.
  __device__ __forceinline__ DotStages(Shared& shared, std::uint32_t first_step)
      : right_(ptx::shared_address(shared.right)),
        full_(ptx::shared_address(shared.stage_full)),
        empty_(ptx::shared_address(shared.stage_empty)),
        first_(first_step) {}

  // Waits for the warpgroup's own two. `group`: which of the two it is.
  __device__ __forceinline__ void begin(int group) const {
    for (int i = 0; i < 2 * group; ++i) pass(i);
    for (int i = 2 * group; i < 2 * group + 2; ++i) wait(i);
  }
  // Where 64 columns of x lie: half 0 or 1 of the warpgroup's, rows of 128 bytes, swizzled like an operand.
  __device__ __forceinline__ std::uint32_t half(int group, int i) const {
    const RingPlace<Shared::kStages> place(first_ + 2 * group + i);
    return right_ + place.at * Shared::kRightBytes;
  }
  __device__ __forceinline__ void end(int group) const {
    __syncwarp();
    for (int i = 2 * group; i < 2 * group + 2; ++i) release(i);
    for (int i = 2 * group + 2; i < kDotStages; ++i) pass(i);
  }

 private:
  __device__ __forceinline__ void wait(int i) const {
    const RingPlace<Shared::kStages> place(first_ + i);
    ptx::wait(full_ + place.at * 8, place.parity);
  }
  __device__ __forceinline__ void release(int i) const {
    const RingPlace<Shared::kStages> place(first_ + i);
    const unsigned lane = ptx::fresh_thread() % 32;
    if (lane < 2) ptx::arrive_remote(ptx::map_to_block(empty_ + place.at * 8, lane));
  }
  // NOTE: what a stage's emptiness counts must be in order, so also one that is not used is waited for.
  __device__ __forceinline__ void pass(int i) const {
    wait(i);
    __syncwarp();
    release(i);
  }

  std::uint32_t right_, full_, empty_, first_;
};

}  // namespace ggm::cuda
