// Rows of x for the inner products of a tile (Epilogue::dots) come like one more operand: behind the steps of K, in stages
// whose right half has 64 columns of x for each row of the tile.
#pragma once

#include "cuda/device/hopper/storage.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

inline constexpr int kDotStages = 2;  // for the 128 columns of a tile

template <typename Shared>
class DotStages {
 public:
  __device__ __forceinline__ DotStages(Shared& shared, const TileNotice& notice)
      : right_(ptx::shared_address(shared.right)),
        full_(ptx::shared_address(shared.stage_full)),
        empty_(ptx::shared_address(shared.stage_empty)),
        first_(notice.first_step + (notice.tiles[0].desc.k + kStepK - 1) / kStepK) {}

  __device__ __forceinline__ void wait() const {
    for (int i = 0; i < kDotStages; ++i) {
      const RingPlace<Shared::kStages> place(first_ + i);
      ptx::wait(full_ + place.at * 8, place.parity);
    }
  }
  // Where columns 64 i and on of the tile lie in x: rows of 128 bytes, swizzled like an operand.
  __device__ __forceinline__ std::uint32_t half(int i) const {
    return right_ + RingPlace<Shared::kStages>(first_ + i).at * Shared::kRightBytes;
  }
  // The warp has read them: tells both blocks of the cluster.
  __device__ __forceinline__ void end() const {
    __syncwarp();
    const unsigned lane = ptx::fresh_thread() % 32;
    for (int i = 0; i < kDotStages; ++i)
      if (lane < 2) ptx::arrive_remote(ptx::map_to_block(empty_ + RingPlace<Shared::kStages>(first_ + i).at * 8, lane));
  }

 private:
  std::uint32_t right_, full_, empty_, first_;
};

}  // namespace ggm::cuda
