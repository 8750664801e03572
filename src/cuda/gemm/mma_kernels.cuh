// Instances of gemm_mma for one pair of storage orders: every mma16 row of the kernel table, both 16-bit types. `alone`: see
// there.
#pragma once

#include "cuda/device/gemm_mma.cuh"
#include "cuda/gemm/launch.h"

namespace ggm::cuda {

template <int kernel, Order a_order, Order b_order, bool alone>
const void* mma_instance(Type type) {
  constexpr GemmKernel row = kGemmKernels[kernel];
  if constexpr (row.math == KernelMath::mma16) {
    static_assert(sizeof(MmaShared<kernel>) == row.shared_bytes,
                  "shared_bytes of the kernel table must be the size of SharedStorage");
    return type == Type::bfloat16 ? reinterpret_cast<const void*>(&gemm_mma<kernel, __nv_bfloat16, a_order, b_order, alone>)
                                  : reinterpret_cast<const void*>(&gemm_mma<kernel, __half, a_order, b_order, alone>);
  } else {
    return nullptr;
  }
}

template <Order a_order, Order b_order, bool alone = false, int kernel = 0>
const void* find_mma_kernel(int wanted, Type type) {
  if constexpr (kernel < kGemmKernelCount) {
    if (wanted == kernel) return mma_instance<kernel, a_order, b_order, alone>(type);
    return find_mma_kernel<a_order, b_order, alone, kernel + 1>(wanted, type);
  } else {
    return nullptr;
  }
}

}  // namespace ggm::cuda
