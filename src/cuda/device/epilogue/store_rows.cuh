// EpilogueKind::store: rows of the tile to D, each to its own memory row.
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"

namespace ggm::cuda {

template <typename Sum, int tile_m, int warps>
__device__ __forceinline__ void store_rows(const TileView<Sum>& view) {
  constexpr int kBatch = 4;  // rows whose index, weight and old C are read together, so that their latencies overlap
  const Epilogue& e = view.call.epilogue;
  const GroupDesc& d = view.tile.desc;
  const int rows = view.rows(tile_m), count = view.lane_count();
  const std::int64_t column = std::int64_t{view.tile.n0} + view.lane_column();
  const bool d_whole = count == kLaneColumns && fours_aligned(d.d, d.ldd, e.d_type);
  const bool c_whole = count == kLaneColumns && e.use_beta && fours_aligned(d.c, d.ldc, e.c_type);
  Sum bias[kLaneColumns];
  view.load_bias(bias);

  for (int first = static_cast<int>(threadIdx.x / 32 % warps) * kBatch; first < rows; first += warps * kBatch) {
    std::int64_t to[kBatch];  // memory row; negative: not stored
    bool valid[kBatch];
    Sum weight[kBatch];
    Sum c[kBatch][kLaneColumns];
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      const std::int64_t r = view.sorted_row(first + u);
      const bool exists = first + u < rows;
      to[u] = !exists ? -1 : e.d_rows != nullptr ? __ldg(e.d_rows + r) : view.group_row(first + u);
      valid[u] = exists && view.row_valid(r);
      weight[u] = valid[u] ? view.row_weight(r) : Sum(0);
      if (exists && !valid[u] && e.keep_invalid) to[u] = -1;
    }
    if (e.use_beta)
#pragma unroll
      for (int u = 0; u < kBatch; ++u)
        if (to[u] >= 0 && valid[u]) load_four<Sum>(d.c, to[u] * d.ldc + column, e.c_type, c_whole, count, c[u]);
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      if (to[u] < 0) continue;
      Sum p[kLaneColumns] = {0, 0, 0, 0};
      if (valid[u]) {
        view.product(first + u, bias, c[u], weight[u], p);
        if (e.add_to != nullptr) {
          Sum old[kLaneColumns] = {0, 0, 0, 0};
          load_four<Sum>(e.add_to, view.sorted_row(first + u) * e.add_to_ld + column, e.add_to_type, false, count, old);
#pragma unroll
          for (int j = 0; j < kLaneColumns; ++j) p[j] = add_rn(old[j], p[j]);
        }
      }
      store_four<Sum>(d.d, to[u] * d.ldd + column, e.d_type, d_whole, count, p);
    }
  }
}

}  // namespace ggm::cuda
