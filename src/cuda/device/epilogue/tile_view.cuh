// The accumulators of one tile in shared memory, and the arithmetic that every kind of epilogue shares: from an accumulator to
// the weighted product of ggm.h. A warp works on whole rows; a lane owns four neighbouring columns of each.
#pragma once

#include "cuda/device/epilogue/values.cuh"
#include "cuda/device/schedule/tile_claim.cuh"

namespace ggm::cuda {

inline constexpr int kTileColumns = 128;  // of every kernel
inline constexpr int kLaneColumns = kTileColumns / 32;
inline constexpr int kStagingPitch = kTileColumns + 8;  // see WarpTile::stage

template <typename Sum>
struct TileView {
  const GemmCall& call;
  const Tile& tile;
  const Sum* staging;     // [tile m][kStagingPitch]
  std::int32_t row0 = 0;  // the tile's row that is row 0 here, for a part of a tile

  __device__ __forceinline__ int lane_column() const { return static_cast<int>(threadIdx.x % 32) * kLaneColumns; }
  // Columns of this lane that exist.
  __device__ __forceinline__ int lane_count() const { return min(max(tile.n_left - lane_column(), 0), kLaneColumns); }
  __device__ __forceinline__ int rows(int tile_m) const { return min(tile.m_left - row0, tile_m); }

  // Row i within the group, and its index in every per-row array. 64 bits: the tail of a tile may pass 2^31.
  __device__ __forceinline__ std::int64_t group_row(int i) const { return std::int64_t{tile.m0} + row0 + i; }
  __device__ __forceinline__ std::int64_t sorted_row(int i) const { return tile.desc.first_row + group_row(i); }

  // Rows of a strided A are inner indices: then row_valid does not speak of rows of D.
  __device__ __forceinline__ bool row_valid(std::int64_t r) const {
    return call.row_valid == nullptr || call.a_order != Order::inner_contiguous || __ldg(call.row_valid + r) >= 0;
  }

  __device__ __forceinline__ void load_bias(Sum (&bias)[kLaneColumns]) const {
    const Epilogue& e = call.epilogue;
    const int count = lane_count();
#pragma unroll
    for (int j = 0; j < kLaneColumns; ++j) {
      const std::int64_t at = tile.group * e.bias_stride + tile.n0 + lane_column() + j;
      bias[j] = e.bias != nullptr && j < count ? load_value<Sum>(e.bias, at, e.bias_type) : Sum(0);
    }
  }

  // p of GemmCall's epilogue for the lane's columns of row i; c = the old C, read only with use_beta.
  __device__ __forceinline__ void product(int i, const Sum (&bias)[kLaneColumns], const Sum (&c)[kLaneColumns], Sum weight,
                                          Sum (&p)[kLaneColumns]) const {
    const Sum* from = staging + i * kStagingPitch + lane_column();
#pragma unroll
    for (int j = 0; j < kLaneColumns; ++j) p[j] = from[j];
    finish(bias, c, weight, p);
  }

  // p from the sum that it holds.
  template <int columns>
  __device__ __forceinline__ void finish(const Sum (&bias)[columns], const Sum (&c)[columns], Sum weight,
                                         Sum (&p)[columns]) const {
    const Epilogue& e = call.epilogue;
    if (e.bias != nullptr)
#pragma unroll
      for (int j = 0; j < columns; ++j) p[j] = add_rn(p[j], bias[j]);
    // The sum of a group with k = 0 is +0 whatever alpha is.
    if (e.use_alpha && (tile.desc.k > 0 || e.bias != nullptr))
#pragma unroll
      for (int j = 0; j < columns; ++j) p[j] = multiply_rn(static_cast<Sum>(e.alpha), p[j]);
    if (e.use_beta)
#pragma unroll
      for (int j = 0; j < columns; ++j) p[j] = add_rn(p[j], multiply_rn(static_cast<Sum>(e.beta), c[j]));
    if (e.product_type != Type::none)
#pragma unroll
      for (int j = 0; j < columns; ++j) p[j] = round_value<Sum>(p[j], e.product_type);
    if (e.row_weight != nullptr)
#pragma unroll
      for (int j = 0; j < columns; ++j) p[j] = multiply_rn(weight, p[j]);
  }

  __device__ __forceinline__ Sum row_weight(std::int64_t r) const {
    const Sum* weights = static_cast<const Sum*>(call.epilogue.row_weight);
    return weights != nullptr ? __ldg(weights + r) : Sum(1);
  }
};

}  // namespace ggm::cuda
