// Tensor-core kernels whose A is inner_contiguous and whose B is inner_contiguous.
#include "cuda/gemm/mma_kernels.cuh"

namespace ggm::cuda {

const void* mma_kernel_contiguous_contiguous(int kernel, Type type) {
  return find_mma_kernel<Order::inner_contiguous, Order::inner_contiguous>(kernel, type);
}

}  // namespace ggm::cuda
