// Rows of x for the inner products of a tile (Epilogue::dots) come like one more operand: behind the steps of K, in stages
// whose right half has 64 columns of x for each row of the tile. A warpgroup uses two of them, for its 128 columns; where both
// multiply one tile, each lets the other's pass.
#pragma once

#include "cuda/device/hopper/storage.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

template <typename Shared>
class DotStages {
 public:
  static constexpr int kOwn = 2, kCount = Shared::kTogether ? kConsumers * kOwn : kOwn;

  // `group`: of the two warpgroups that multiply.
  __device__ __forceinline__ DotStages(Shared& shared, const TileNotice& notice, int group)
      : right_(ptx::shared_address(shared.right)),
        full_(ptx::shared_address(shared.stage_full)),
        empty_(ptx::shared_address(shared.stage_empty)),
        read_(ptx::shared_address(shared.dots_read + group)),
        first_(notice.first_step + (notice.tiles[0].desc.k + kStepK - 1) / kStepK),
        own_(Shared::kTogether ? kOwn * group : 0) {}

  // Until the warpgroup's own are there.
  __device__ __forceinline__ void begin() const {
    for (int i = 0; i < own_; ++i) pass(i);
    for (int i = own_; i < own_ + kOwn; ++i) wait(i);
  }
  // Where columns 64 i and on of the warpgroup's lie in x: rows of 128 bytes, swizzled like an operand.
  __device__ __forceinline__ std::uint32_t half(int i) const { return right_ + place(own_ + i).at * Shared::kRightBytes; }
  // The warp has read them. NOTE: where ordinary threads fill the stages, those need no word but the stages' own barriers;
  // compute-sanitizer's racecheck follows neither arrivals from another block nor one lane's for its warp, so every lane
  // arrives on one more, which wait_until_read() waits for.
  __device__ __forceinline__ void end() const {
    __syncwarp();
    for (int i = own_; i < own_ + kOwn; ++i) release(i);
    for (int i = own_ + kOwn; i < kCount; ++i) pass(i);
    if (Shared::kGathered) ptx::arrive(read_);
  }

 private:
  __device__ __forceinline__ RingPlace<Shared::kStages> place(int i) const { return RingPlace<Shared::kStages>(first_ + i); }
  __device__ __forceinline__ void wait(int i) const { ptx::wait(full_ + place(i).at * 8, place(i).parity); }
  // Tells both blocks of the cluster.
  __device__ __forceinline__ void release(int i) const {
    const unsigned lane = ptx::fresh_thread() % 32;
    if (lane < 2) ptx::arrive_remote(ptx::map_to_block(empty_ + place(i).at * 8, lane));
  }
  // NOTE: what a stage's emptiness counts must be in order, so also one that is not used is waited for.
  __device__ __forceinline__ void pass(int i) const {
    wait(i);
    __syncwarp();
    release(i);
  }

  std::uint32_t right_, full_, empty_, read_, first_;
  int own_;
};

// Until the rows of x of the block's n-th tile have been read.
template <typename Shared>
__device__ __forceinline__ void wait_until_read(Shared& shared, std::uint32_t n) {
  const std::uint32_t read = ptx::shared_address(shared.dots_read);
  if constexpr (Shared::kTogether) {
    for (int i = 0; i < kConsumers; ++i) ptx::wait(read + i * 8, n & 1);
  } else {
    const RingPlace<kConsumers> place(n);
    ptx::wait(read + place.at * 8, place.parity);
  }
}

}  // namespace ggm::cuda
