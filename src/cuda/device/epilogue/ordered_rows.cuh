// EpilogueKind::ordered: adds each row into its token's sum when all earlier rows of that token have been added, so that the
// result is the same ordered sum as gather-and-add gives. A 16-bit counter for each token and 128 columns says whose turn it
// is.
//
// Why it never hangs: rows of a token have turns in ascending order of sorted rows; tiles of one column are claimed in that
// order (tile_order.h) and worked on by running blocks in that order (tile_claim.cuh). Inside a tile, warps take batches of
// rows in ascending order and add any row of the batch whose turn it is. So the lowest unfinished row of a column always lies
// in the current batch of a warp that is at work, and its turn has come.
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"
#include "cuda/device/ptx/turn.cuh"

namespace ggm::cuda {

// What the sum stands at before this row: nothing, the old output, or the rows added so far. Past L1: another multiprocessor
// wrote it.
template <typename Sum>
__device__ __forceinline__ void load_old_sum(const TileView<Sum>& view, std::int64_t token, int turn, bool whole,
                                             Sum (&old)[kLaneColumns]) {
  const Epilogue& e = view.call.epilogue;
  const std::int64_t column = std::int64_t{view.tile.n0} + view.lane_column();
  const int count = view.lane_count();
  if (turn == 0) {
    if (e.add_to != nullptr) load_four<Sum>(e.add_to, token * e.add_to_ld + column, e.add_to_type, false, count, old);
    return;
  }
  const Sum* from = static_cast<const Sum*>(e.sums) + token * e.sums_ld + column;
  if constexpr (sizeof(Sum) == 4) {
    if (whole) {
      const float4 f = __ldcg(reinterpret_cast<const float4*>(from));
      old[0] = f.x, old[1] = f.y, old[2] = f.z, old[3] = f.w;
      return;
    }
  }
#pragma unroll
  for (int j = 0; j < kLaneColumns; ++j)
    if (j < count) old[j] = __ldcg(from + j);
}

template <typename Sum, int tile_m, int warps>
__device__ __forceinline__ void ordered_rows(const TileView<Sum>& view) {
  constexpr int kBatch = 8;  // rows whose turns and sums are in flight at once
  constexpr unsigned kAll = 0xffffffffu;
  constexpr Type kSumType = sizeof(Sum) == 8 ? Type::float64 : Type::float32;
  const Epilogue& e = view.call.epilogue;
  const int lane = threadIdx.x % 32, rows = view.rows(tile_m), count = view.lane_count();
  const std::int64_t column = std::int64_t{view.tile.n0} + view.lane_column();
  const bool whole = count == kLaneColumns && fours_aligned(e.sums, e.sums_ld, kSumType);
  Sum bias[kLaneColumns];
  view.load_bias(bias);

  for (int first = static_cast<int>(threadIdx.x / 32 % warps) * kBatch; first < rows; first += warps * kBatch) {
    // Lane u < kBatch speaks for row first + u.
    int token = -1, turn = 0;
    Sum weight = 0;
    if (lane < kBatch && first + lane < rows) {
      const std::int64_t r = view.sorted_row(first + lane);
      if (view.row_valid(r)) token = __ldg(e.row_token + r);
      if (token >= 0) {
        turn = __ldg(e.row_turn + r);
        weight = view.row_weight(r);
      }
    }
    std::uint16_t* counter = e.turns + (token >= 0 ? token * e.turn_tiles + view.tile.n0 / kTileColumns : 0);
    unsigned pending = __ballot_sync(kAll, token >= 0);
    while (pending != 0) {
      const bool mine = (pending >> lane & 1) != 0 && (turn == 0 || ptx::load_turn(counter) == turn);
      const unsigned ready = __ballot_sync(kAll, mine);
      if (ready == 0) {
        __nanosleep(64);
        continue;
      }
      __syncwarp();  // orders the other lanes' reads behind the acquire; a ballot alone orders no memory
      Sum old[kBatch][kLaneColumns];
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const std::int64_t row_token = __shfl_sync(kAll, token, u);
        const int row_turn = __shfl_sync(kAll, turn, u);
        if (ready >> u & 1) load_old_sum(view, row_token, row_turn, whole, old[u]);
      }
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const std::int64_t row_token = __shfl_sync(kAll, token, u);
        const bool starts = __shfl_sync(kAll, turn, u) == 0 && e.add_to == nullptr;
        const Sum row_weight = __shfl_sync(kAll, weight, u);
        if ((ready >> u & 1) == 0) continue;
        Sum p[kLaneColumns];
        view.product(first + u, bias, old[u], row_weight, p);
        if (!starts)
#pragma unroll
          for (int j = 0; j < kLaneColumns; ++j) p[j] = add_rn(old[u][j], p[j]);
        store_four<Sum>(e.sums, row_token * e.sums_ld + column, kSumType, whole, count, p);
      }
      __syncwarp();  // all lanes have stored before the turn is passed on
      if (mine) ptx::store_turn(counter, static_cast<std::uint16_t>(turn + 1));
      pending &= ~ready;
    }
  }
}

}  // namespace ggm::cuda
