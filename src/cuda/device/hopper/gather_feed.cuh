// The right operand through a list of rows: four warps fetch it with cp.async, two of them a stage, the other two the next.
// (Two groups that alternate were measured faster than four warps on every stage.)
#pragma once

#include "cuda/device/hopper/dot_stages.cuh"
#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

inline constexpr int kGatherThreads = 64;  // that fetch one stage

// The rows of a list that one thread copies a chunk of, every eighth of a tile.
template <int count>
class ListRows {
 public:
  // Rows first + line, first + line + 8 and on of the list, or themselves where there is none; `left` rows exist.
  __device__ __forceinline__ void look_up(const std::int32_t* list, std::int64_t first, int line, int left) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      rows_[i] = -1;
      if (line + 8 * i < left)
        rows_[i] = list != nullptr ? __ldg(list + first + line + 8 * i) : static_cast<std::int32_t>(first) + line + 8 * i;
    }
  }

  // 16 bytes of each, `bytes` of which are read; zeros of a row that does not exist. `eights`: rows of the tile / 8.
  __device__ __forceinline__ void copy(std::uint32_t to, const char* from, std::uint32_t ld_bytes, int bytes,
                                       int eights) const {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (i < eights) ptx::cp_async_16_row(rows_[i], ld_bytes, to + i * 1024, from, bytes);
  }

 private:
  std::int32_t rows_[count];
};

// The chunk of x's rows at a column, of which `bytes` exist.
struct DotColumns {
  const char* from;
  std::uint32_t ld_bytes;
  int bytes;
  __device__ __forceinline__ DotColumns(const Epilogue& e, int column, int columns)
      : ld_bytes(static_cast<std::uint32_t>(e.dot_x_ld * 2)), bytes(max(min((columns - column) * 2, 16), 0)) {
    from = static_cast<const char*>(e.dot_x) + (bytes > 0 ? std::int64_t{column} * 2 : 0);
  }
};

// The work of warp 0..3 of the gathering warpgroup: the steps of K, then the rows of x for inner products.
template <typename Shared>
__device__ __forceinline__ void gather_right(const HopperCall& call, Shared& shared, int warp) {
  const int thread = static_cast<int>(threadIdx.x) % kGatherThreads, line = thread / 8, chunk = thread % 8;
  const auto turn = static_cast<std::uint32_t>(warp / 2);
  const std::uint32_t full = ptx::shared_address(shared.stage_full), empty = ptx::shared_address(shared.stage_empty);
  const std::uint32_t to = ptx::shared_address(shared.right) + line * 128 + (chunk ^ line) * 16;
  const Epilogue& e = call.gemm.epilogue;
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
    const std::int64_t first_row = std::int64_t{tile.desc.first_row} + tile.m0;
    const int m_left = tile.m_left, n0 = tile.n0, columns = tile.desc.n;
    ListRows<Shared::kMaxRight / 8> rows;
    rows.look_up(call.gemm.a_rows, first_row, line, m_left);
    ptx::arrive(ptx::shared_address(shared.notice_empty) + place.at * 8);

    int step = (first_step ^ turn) & 1;
    for (; step < steps; step += 2) {
      const RingPlace<Shared::kStages> stage(first_step + step);
      ptx::wait(empty + stage.at * 8, stage.parity ^ 1);
      const int bytes = max(min((k - step * kStepK - chunk * 8) * 2, 16), 0);
      const char* here = bytes > 0 ? from + step * (kStepK * 2) : from;  // an address of the tensor, also when nothing is read
      rows.copy(to + stage.at * Shared::kRightBytes, here, ld_bytes, bytes, eights);
      ptx::arrive_behind_copies(full + stage.at * 8);
    }
    if (!call.dots_by_stages) continue;
    rows.look_up(e.dot_rows, first_row, line, m_left);
    for (; step < steps + kDotStages; step += 2) {
      const RingPlace<Shared::kStages> stage(first_step + step);
      ptx::wait(empty + stage.at * 8, stage.parity ^ 1);
      const DotColumns x(e, n0 + (step - steps) * 64 + chunk * 8, columns);
      rows.copy(to + stage.at * Shared::kRightBytes, x.from, x.ld_bytes, x.bytes, eights);
      ptx::arrive_behind_copies(full + stage.at * 8);
    }
  }
}

}  // namespace ggm::cuda
