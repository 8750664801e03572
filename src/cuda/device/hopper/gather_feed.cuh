// The right operand through a list of rows: four warps fetch it with cp.async, two of them a stage, the other two the next.
// (Two groups that alternate were measured faster than four warps on every stage.)
#pragma once

#include "cuda/device/hopper/storage.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

inline constexpr int kGatherThreads = 64;  // that fetch one stage

// The work of warp 0..3 of the gathering warpgroup. Rows beyond the tile's are left as they are: their sums are not stored.
template <typename Shared>
__device__ __forceinline__ void gather_right(const GemmCall& call, Shared& shared, int warp) {
  const int thread = static_cast<int>(threadIdx.x) % kGatherThreads, line = thread / 8, chunk = thread % 8;
  const auto turn = static_cast<std::uint32_t>(warp / 2);
  const std::uint32_t full = ptx::shared_address(shared.stage_full), empty = ptx::shared_address(shared.stage_empty);
  const std::uint32_t to = ptx::shared_address(shared.right) + line * 128 + (chunk ^ line) * 16;
  for (std::uint32_t n = 0;; ++n) {
    const RingPlace<kTileSlots> place(n);
    ptx::wait(ptx::shared_address(shared.notice_full) + place.at * 8, place.parity);
    const TileNotice& notice = shared.notices[place.at];
    const Tile& tile = notice.tiles[0];
    if (ptx::uniform(tile.group) < 0) return;
    const int k = ptx::uniform(tile.desc.k), steps = (k + kStepK - 1) / kStepK, eights = ptx::uniform(notice.width) / 8;
    const auto first_step = static_cast<std::uint32_t>(ptx::uniform(static_cast<int>(notice.first_step)));
    const auto ld_bytes = static_cast<std::uint32_t>(tile.desc.lda * 2);
    const char* from = static_cast<const char*>(tile.desc.a) + chunk * 16;
    const std::int32_t* list = call.a_rows + tile.desc.first_row + tile.m0;
    std::int32_t rows[Shared::kMaxRight / 8];
#pragma unroll
    for (int i = 0; i < Shared::kMaxRight / 8; ++i) rows[i] = line + 8 * i < tile.m_left ? __ldg(list + line + 8 * i) : -1;
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::arrive(ptx::shared_address(shared.notice_empty) + place.at * 8);

    for (int step = (first_step ^ turn) & 1; step < steps; step += 2) {
      const RingPlace<Shared::kStages> stage(first_step + step);
      ptx::wait(empty + stage.at * 8, stage.parity ^ 1);
      const int bytes = max(min((k - step * kStepK - chunk * 8) * 2, 16), 0);
      const char* here = bytes > 0 ? from + step * (kStepK * 2) : from;  // an address of the tensor, also when nothing is read
      const std::uint32_t here_to = to + stage.at * Shared::kRightBytes;
#pragma unroll
      for (int i = 0; i < Shared::kMaxRight / 8; ++i)
        if (i < eights) ptx::cp_async_16_row(rows[i], ld_bytes, here_to + i * 1024, here, bytes);
      ptx::arrive_behind_copies(full + stage.at * 8);
    }
  }
}

}  // namespace ggm::cuda
