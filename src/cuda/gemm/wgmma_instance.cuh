// One wgmma kernel of the table for one pair of storage orders, both 16-bit types.
#pragma once

#include "cuda/device/hopper/gemm_wgmma.cuh"
#include "cuda/gemm/wgmma_kernels.h"
#include "plan/wgmma_table.h"

namespace ggm::cuda {

template <int kernel, bool left_outer, bool right_outer>
const void* wgmma_instance(Type type) {
  constexpr WgmmaKernel row = kWgmmaKernels[kernel];
  using Shared = HopperShared<row.max_right, right_outer, row.stages, row.staging, row.one_staging, row.gathered, row.relayed,
                              row.together, row.for_few()>;
  static_assert(!row.relayed || row.max_right <= kRelayTail, "a tile may begin in the last row of the window");
  static_assert(sizeof(Shared) <= kWgmmaSharedBytes, "more shared memory than the launch asks for");
  return type == Type::bfloat16 ? reinterpret_cast<const void*>(&gemm_wgmma<Shared, __nv_bfloat16, left_outer, right_outer>)
                                : reinterpret_cast<const void*>(&gemm_wgmma<Shared, __half, left_outer, right_outer>);
}

}  // namespace ggm::cuda
