// The right operand through a list of rows, fetched by four warps with cp.async.
#pragma once

#include "cuda/device/hopper/dot_stages.cuh"
#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

inline constexpr int kGatherThreads = 128;

// The rows of a tile that one thread copies 16 bytes of in each step: every 16th.
// NOTE: short work for a copy counts here, as a warp makes nine in a row, or four. When each computed its address from a row
// and a byte count, twelve instructions one behind another into the same registers, copies came 130 cycles apart.
template <int max_rows>
class ListRows {
 public:
  static constexpr int kLines = kGatherThreads / 8, kCount = (max_rows + kLines - 1) / kLines;

  // Rows first + line, first + line + kLines and on of the list, or themselves where there is none; `left` rows exist. One that
  // does not exist is not read.
  __device__ __forceinline__ void look_up(const void* base, std::int64_t ld, const std::int32_t* list, std::int64_t first,
                                          int line, int left) {
    exists_ = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      std::int64_t row = -1;
      if (line + kLines * i < left) {
        row = first + line + kLines * i;
        if (list != nullptr) row = __ldg(list + row);
      }
      exists_ |= static_cast<unsigned>(row >= 0) << i;
      from_[i] = static_cast<const char*>(base) + row * ld * 2;
    }
    asm volatile("" : "+r"(exists_));  // else the compiler keeps the rows, to compare them anew in each step
  }

  // 16 bytes of each of the first rows, or zeros, also of one that does not exist; goes on to the next step. `rows`: of the
  // tile, behind `line`.
  __device__ __forceinline__ void copy(std::uint32_t to, bool zeros, int rows) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (kLines * i < rows) ptx::cp_async_16_if(!zeros && (exists_ >> i & 1) != 0, to + i * kLines * 128, from_[i]);
#pragma unroll
    for (int i = 0; i < kCount; ++i) from_[i] += kStepK * 2;
  }

 private:
  const char* from_[kCount];
  unsigned exists_;
};

// The work of the gathering warpgroup: the steps of K, then the rows of x for inner products.
template <typename Shared>
__device__ __forceinline__ void gather_right(const HopperCall& call, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x) % kGatherThreads, line = thread / 8, chunk = thread % 8;
  constexpr int kDots = DotStages<Shared>::kCount;
  // Else a thread that is late at the end of a tile could find the phase after the one it waits for, which looks like the one
  // before.
  static_assert(!Shared::kTogether || Shared::kStages < 2 * kDots, "a wait for inner products in each ring");
  const std::uint32_t full = ptx::shared_address(shared.stage_full), empty = ptx::shared_address(shared.stage_empty);
  const std::uint32_t to = ptx::shared_address(shared.right) + line * 128 + (chunk ^ line % 8) * 16;
  RingPlace<Shared::kStages> stage(0);
  ListRows<Shared::kMaxRight> rows;
  for (std::uint32_t n = 0;; ++n) {
    const RingPlace<Shared::kSlots> place(n);
    ptx::wait(ptx::shared_address(shared.notice_full) + place.at * 8, place.parity);
    const TileNotice& notice = shared.notices[place.at];
    const Tile& tile = notice.tiles[0];
    if (ptx::uniform(tile.group) < 0) return;
    const int k = ptx::uniform(tile.desc.k), width = ptx::uniform(notice.width);
    const std::int64_t first_row = std::int64_t{tile.desc.first_row} + tile.m0;
    const int m_left = tile.m_left, n0 = tile.n0, columns = tile.desc.n;
    rows.look_up(static_cast<const char*>(tile.desc.a) + chunk * 16, tile.desc.lda, call.gemm.a_rows, first_row, line, m_left);
    ptx::arrive(ptx::shared_address(shared.notice_empty) + place.at * 8);
    // How many stages come before the first one with x of the tile before, which must have been read by then. -1: it has been.
    int before_x = call.dots_by_stages && n > 0 ? Shared::kStages - kDots : -1;
    const auto wait_for_stage = [&] {
      if (before_x >= 0 && before_x-- == 0) wait_until_read(shared, n - 1);
      ptx::wait(empty + stage.at * 8, stage.parity ^ 1);
    };
#pragma unroll 1
    for (int step = 0; step * kStepK < k; ++step, stage.next()) {
      wait_for_stage();
      rows.copy(to + stage.at * Shared::kRightBytes, step * kStepK + chunk * 8 >= k, width - line);
      ptx::arrive_behind_copies(full + stage.at * 8);
    }
    if (!call.dots_by_stages) continue;
    const Epilogue& e = call.gemm.epilogue;
    const char* x = static_cast<const char*>(e.dot_x) + (std::int64_t{n0} + chunk * 8) * 2;
    rows.look_up(x, e.dot_x_ld, e.dot_rows, first_row, line, m_left);
    // Ordinary threads read these, and compute-sanitizer sees that the copies are done before by waiting alone, not by arrivals
    // behind them. So each stage is told of when the next is under way.
    std::uint32_t before = 0;
    for (int step = 0; step < kDots; ++step, stage.next()) {
      wait_for_stage();
      rows.copy(to + stage.at * Shared::kRightBytes, n0 + step * kStepK + chunk * 8 >= columns, width - line);
      ptx::cp_async_commit();
      if (step > 0) {
        ptx::cp_async_wait<1>();
        ptx::arrive(full + before * 8);
      }
      before = stage.at;
    }
    ptx::cp_async_wait<0>();
    ptx::arrive(full + before * 8);
    if (before_x >= 0) wait_until_read(shared, n - 1);  // once for each tile, as a parity tells two phases apart
  }
}

}  // namespace ggm::cuda
