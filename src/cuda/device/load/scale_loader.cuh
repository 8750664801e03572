// Variable K: the routing weights of the rows of one step of K, into shared memory beside the operands. A row that reads as
// zeros has factor 0 whatever memory says, else a NaN there would spoil the zeros.
#pragma once

#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/schedule/tile_claim.cuh"

namespace ggm::cuda {

struct ScaleRows {
  const float* scale;         // of the group's rows; nullptr: no scaling
  const std::int32_t* valid;  // nullptr: all valid
  std::int32_t k;             // rows of the group
};

__device__ __forceinline__ ScaleRows scale_rows(const GemmCall& call, const Tile& tile) {
  const std::int32_t row0 = tile.desc.first_row;
  return {call.scaled != GemmCall::Scale::none ? call.scale + row0 : nullptr,
          call.row_valid != nullptr ? call.row_valid + row0 : nullptr, tile.desc.k};
}

// begin() and issue() come after the ScaleRows are in shared memory.
template <int tile_k>
class ScaleLoader {
 public:
  __device__ __forceinline__ explicit ScaleLoader(const ScaleRows& rows) : rows_(rows) {}

  __device__ __forceinline__ void begin() { fetch(0); }

  // Steps must come in ascending order from 0.
  __device__ __forceinline__ void issue(float* stage, int step) {
    const float* scale = rows_.scale;
    if (scale == nullptr || threadIdx.x >= tile_k) return;
    const std::int64_t row = std::int64_t{step} * tile_k + threadIdx.x;
    ptx::cp_async_4(ptx::shared_address(stage + threadIdx.x), live_ ? scale + row : scale, live_ ? 4 : 0);
    fetch(step + 1);
  }

 private:
  __device__ __forceinline__ void fetch(int step) {
    if (rows_.scale == nullptr || threadIdx.x >= tile_k) return;
    const std::int64_t row = std::int64_t{step} * tile_k + threadIdx.x;
    live_ = row < rows_.k && (rows_.valid == nullptr || __ldg(rows_.valid + row) >= 0);
  }

  const ScaleRows& rows_;
  bool live_ = false;
};

}  // namespace ggm::cuda
