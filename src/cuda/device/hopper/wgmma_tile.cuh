// What one warpgroup multiplies: 128 rows of the left operand by up to max_right columns of the right one, in ascending order
// of K, 16 at a time into one accumulator, like every other kernel.
#pragma once

#include "cuda/device/hopper/storage.cuh"
#include "cuda/device/ptx/thread.cuh"
#include "cuda/device/ptx/wgmma.cuh"

namespace ggm::cuda {

inline constexpr int kOrderBarrier = 1;  // and 2: the warpgroups take turns with their main loops
inline constexpr int kGroupBarrier = 3;  // and 4: the threads of one warpgroup

template <typename Element, int max_right, bool left_outer, bool right_outer>
class WgmmaTile {
 public:
  static constexpr int kN = max_right;
  static constexpr bool kOverRows = !right_outer;  // a product over rows, which may have inner products and be combined
  static constexpr int kFragmentsN = max_right / 8;

  __device__ __forceinline__ WgmmaTile() {
#pragma unroll
    for (int b = 0; b < 2; ++b)
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums_[b][j][e] = 0.0f;
  }

  // All of K of the tile. `done` is called when the last product is under way.
  // `left`: first row of the left tile that is the warpgroup's.
  template <typename Shared, typename Done>
  __device__ __forceinline__ void multiply(const TileNotice& notice, int left, Shared& shared, const Done& done) {
    left_ = left * kStepK * 2;
    multiply_width<1, max_right / 8>(ptx::uniform(notice.width) / 8, ptx::uniform(static_cast<int>(notice.first_step)),
                                     ptx::uniform(notice.tiles[0].desc.k), shared, done);
  }

  // The lane's rows u = 0..3, and the sums of columns 8 j + lane % 4 * 2 and the next.
  static __device__ __forceinline__ int row(int u, int thread) {
    return u / 2 * 64 + thread % kWarpgroup / 32 * 16 + u % 2 * 8 + thread % 32 / 4;
  }
  __device__ __forceinline__ float2 pair(int u, int j) const {
    return make_float2(sums_[u / 2][j][u % 2 * 2], sums_[u / 2][j][u % 2 * 2 + 1]);
  }

 private:
  // The loop of a width is found by halving: one after the other took 30 cycles a width.
  template <int least, int most, typename Shared, typename Done>
  __device__ __forceinline__ void multiply_width(int eights, std::uint32_t first_step, int k, Shared& shared,
                                                 const Done& done) {
    constexpr int kMiddle = (least + most) / 2;
    if constexpr (least == most)
      run<8 * least>(first_step, k, shared, done);
    else if (eights <= kMiddle)
      multiply_width<least, kMiddle>(eights, first_step, k, shared, done);
    else
      multiply_width<kMiddle + 1, most>(eights, first_step, k, shared, done);
  }

  // 16 of K at a time from one stage.
  template <int width, typename Shared>
  __device__ __forceinline__ void add_16(Shared& shared, std::uint32_t stage, int s) {
    using Product = ptx::Wgmma<Element, width, left_outer, right_outer>;
    const std::uint32_t left = ptx::shared_address(shared.left[stage]) + left_ + s * (left_outer ? 2048 : 32);
    const std::uint32_t right = ptx::shared_address(shared.right[stage]) + s * (right_outer ? 2048 : 32);
#pragma unroll
    for (int b = 0; b < 2; ++b)
      Product::add(sums_[b], ptx::wgmma_operand(left + b * Shared::kBlock, Shared::kBlock),
                   ptx::wgmma_operand(right, Shared::kBlock));
  }

  // Rows that were gathered are ordinary writes to the tensor cores.
  template <typename Shared>
  static __device__ __forceinline__ void wait_full(std::uint32_t full, const RingPlace<Shared::kStages>& stage) {
    ptx::wait(full + stage.at * 8, stage.parity);
    if constexpr (Shared::kGathered) ptx::fence_async_proxy();
  }

  template <int width, typename Shared, typename Done>
  __device__ __forceinline__ void run(std::uint32_t first_step, int k, Shared& shared, const Done& done) {
    const std::uint32_t full = ptx::shared_address(shared.stage_full);
    const int lane = static_cast<int>(threadIdx.x % 32);
    // Lanes 0 and 1 tell one block of the cluster each that a stage has been read.
    const std::uint32_t empty = ptx::map_to_block(ptx::shared_address(shared.stage_empty), lane % 2);
    RingPlace<Shared::kStages> stage(first_step);
    std::uint32_t last = 0;
    const int whole = k / kStepK, live = (k % kStepK + 15) / 16;
    for (int step = 0; step < whole; ++step) {
      wait_full<Shared>(full, stage);
      ptx::wgmma_fence();
#pragma unroll
      for (int s = 0; s < kStepK / 16; ++s) add_16<width>(shared, stage.at, s);
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();
      if (step > 0 && lane < 2) ptx::arrive_remote(empty + last * 8);
      last = stage.at;
      stage.next();
    }
    // Steps of 16 that lie behind K are left out, not multiplied as zeros: adding +0 could turn a -0 into +0.
    if (live > 0) {
      wait_full<Shared>(full, stage);
#pragma unroll 1
      for (int s = 0; s < live; ++s) {
        ptx::wgmma_fence();
        add_16<width>(shared, stage.at, s);
        ptx::wgmma_commit();
      }
      ptx::wgmma_wait<1>();
      if (whole > 0 && lane < 2) ptx::arrive_remote(empty + last * 8);
      last = stage.at;
    }
    done();
    ptx::wgmma_wait<0>();
    for (auto& block : sums_)
      for (auto& column : block) ptx::keep_behind(column);
    if (k > 0 && lane < 2) ptx::arrive_remote(empty + last * 8);
  }

  std::uint32_t left_ = 0;  // bytes
  float sums_[2][kFragmentsN][4];
};

}  // namespace ggm::cuda
