// From the registers of a warpgroup to rows of D, whatever the epilogue asks for but the ordered combine and inner products: a
// pair of columns at a time. The way of weight gradients that are added to what is there, and of rows that are not aligned.
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

template <typename Sums>
class GeneralRows {
 public:
  __device__ __forceinline__ GeneralRows(const GemmCall& call, const Tile& tile, const Sums& sums)
      : view_{call, tile, nullptr}, sums_(sums), thread_(ptx::fresh_thread()) {}

  __device__ __forceinline__ void run() const {
#pragma unroll
    for (int u = 0; u < 2 * Sums::kFragmentsM; ++u) {
      const int row = Sums::row(u, thread_);
      if (row >= view_.tile.m_left) continue;
      const Epilogue& e = view_.call.epilogue;
      const std::int64_t r = view_.sorted_row(row);
      const bool live = view_.row_valid(r);
      const std::int64_t to = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.group_row(row);
      if (to < 0 || (!live && e.keep_invalid)) continue;
      const float weight = live ? view_.row_weight(r) : 0.0f;
#pragma unroll
      for (int j = 0; j < Sums::kFragmentsN; ++j) store_pair(u, j, r, to, live, weight);
    }
  }

 private:
  __device__ __forceinline__ void store_pair(int u, int j, std::int64_t r, std::int64_t to, bool live, float weight) const {
    const Epilogue& e = view_.call.epilogue;
    const GroupDesc& d = view_.tile.desc;
    const int first = Sums::column(thread_) + 8 * j + thread_ % 4 * 2;
    const float2 sum = sums_.pair(u, j);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (first + i >= view_.tile.n_left) continue;
      const std::int64_t column = std::int64_t{view_.tile.n0} + first + i;
      float p[1] = {0.0f};
      if (live) {
        float bias[1] = {0.0f}, c[1] = {0.0f};
        if (e.bias != nullptr) bias[0] = load_value<float>(e.bias, view_.tile.group * e.bias_stride + column, e.bias_type);
        if (e.use_beta) c[0] = load_value<float>(d.c, to * d.ldc + column, e.c_type);
        p[0] = i == 0 ? sum.x : sum.y;
        view_.finish(bias, c, weight, p);
        if (e.add_to != nullptr) p[0] = add_rn(load_value<float>(e.add_to, r * e.add_to_ld + column, e.add_to_type), p[0]);
      }
      store_value<float>(d.d, to * d.ldd + column, e.d_type, p[0]);
    }
  }

  TileView<float> view_;
  const Sums& sums_;
  int thread_;
};

}  // namespace ggm::cuda
