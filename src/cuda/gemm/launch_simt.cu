// float32 kernels: every simt32 row of the kernel table, all four pairs of storage orders.
#include "cuda/device/gemm_simt.cuh"
#include "cuda/gemm/launch.h"

namespace ggm::cuda {
namespace {

template <int kernel>
const void* simt_instance(Order a_order, Order b_order) {
  constexpr GemmKernel row = kGemmKernels[kernel];
  if constexpr (row.math == KernelMath::simt32) {
    static_assert(sizeof(SimtShared<kernel>) == row.shared_bytes,
                  "shared_bytes of the kernel table must be the size of SharedStorage");
    constexpr Order contiguous = Order::inner_contiguous, strided = Order::inner_strided;
    if (a_order == contiguous)
      return b_order == contiguous ? reinterpret_cast<const void*>(&gemm_simt<kernel, contiguous, contiguous>)
                                   : reinterpret_cast<const void*>(&gemm_simt<kernel, contiguous, strided>);
    return b_order == contiguous ? reinterpret_cast<const void*>(&gemm_simt<kernel, strided, contiguous>)
                                 : reinterpret_cast<const void*>(&gemm_simt<kernel, strided, strided>);
  } else {
    return nullptr;
  }
}

template <int kernel = 0>
const void* find(int wanted, Order a_order, Order b_order) {
  if constexpr (kernel < kGemmKernelCount) {
    return wanted == kernel ? simt_instance<kernel>(a_order, b_order) : find<kernel + 1>(wanted, a_order, b_order);
  } else {
    return nullptr;
  }
}

}  // namespace

const void* simt_kernel(int kernel, Order a_order, Order b_order) { return find(kernel, a_order, b_order); }

}  // namespace ggm::cuda
