// The ways out of a float32 kernel. The short one: sums go from registers to memory without a stop in shared memory, so that
// the copies of the next tile are under way meanwhile. For plain float32 results: no bias, alpha, beta, old values or inner
// products; rows of D aligned to 16 bytes. Everything else goes to shared memory, for run_epilogue. Both give the same bits.
//
// A thread holds fours of neighbouring columns, eight lanes those of 32 columns: a store of a warp covers whole 128 bytes of
// each of four rows.
#pragma once

#include "cuda/device/epilogue/tile_view.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

// Whether this tile may go the short way. The same for all threads. The columns that are left must be whole fours.
__device__ __forceinline__ bool goes_direct_in_fours(const GemmCall& call, const Tile& tile) {
  const Epilogue& e = call.epilogue;
  return e.kind == EpilogueKind::store && e.only_rounds(Type::float32) && e.dots == nullptr && e.d_type == Type::float32 &&
         fours_aligned(tile.desc.d, tile.desc.ldd, Type::float32) && (tile.n_left >= kTileColumns || tile.n_left % 4 == 0);
}

// The thread's part of the tile to rows of D or, for run_epilogue, to `staging` [tile m][kStagingPitch]; `Sums` is a SimtTile,
// of whose rows the first `fours` fours exist.
// NOTE: by the same stores, whose addresses are generic. With stores of their own for the staging, more of the sums lay in the
// bank of the column value that they meet (SimtTile).
template <typename Sums, int fours>
class FoursOut {
 public:
  __device__ __forceinline__ FoursOut(const GemmCall& call, const Tile& tile, const Sums& sums, float* staging)
      : view_{call, tile, nullptr}, sums_(sums), staging_(staging), thread_(ptx::fresh_thread()) {}

  __device__ __forceinline__ void run() const {
    // Looked up for all rows before the first store, so that their latencies overlap.
    std::int32_t to[kRows];
    float weight[kRows];
    unsigned valid = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) find_row(i, &to[i], &weight[i], &valid);
    const bool staged = staging_ != nullptr, weighted = !staged && view_.call.epilogue.row_weight != nullptr;
    float* first = staged ? staging_ : static_cast<float*>(view_.tile.desc.d) + view_.tile.n0;
    const std::int64_t pitch = staged ? kStagingPitch : view_.tile.desc.ldd;
    const int columns = staged ? kTileColumns : view_.tile.n_left;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (to[i] < 0) continue;
#pragma unroll
      for (int j = 0; j < Sums::kN; j += 4) {
        const int column = Sums::column(j, thread_);
        if (column >= columns) continue;
        float4 v = (valid >> i & 1) != 0 ? sums_.four(i, j) : make_float4(0, 0, 0, 0);
        if (weighted)
          v = make_float4(__fmul_rn(weight[i], v.x), __fmul_rn(weight[i], v.y), __fmul_rn(weight[i], v.z),
                          __fmul_rn(weight[i], v.w));
        *reinterpret_cast<float4*>(first + to[i] * pitch + column) = v;
      }
    }
  }

 private:
  static constexpr int kRows = 4 * fours;

  // Row of the target, -1: not stored; and whether it has a value or reads as zeros.
  __device__ __forceinline__ void find_row(int i, std::int32_t* to, float* weight, unsigned* valid) const {
    const Epilogue& e = view_.call.epilogue;
    const bool staged = staging_ != nullptr;
    const int row = Sums::row(i, thread_);
    *to = staged ? row : -1;
    *weight = 0;
    if (staged) *valid |= 1u << i;
    if (staged || row >= view_.tile.m_left) return;
    const std::int64_t r = view_.sorted_row(row);
    const bool live = view_.row_valid(r);
    *valid |= static_cast<unsigned>(live) << i;
    if (live) *weight = view_.row_weight(r);
    if (live || !e.keep_invalid) *to = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.tile.m0 + row;
  }

  TileView<float> view_;
  const Sums& sums_;
  float* staging_;
  int thread_;
};

}  // namespace ggm::cuda
