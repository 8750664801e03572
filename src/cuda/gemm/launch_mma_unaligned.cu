// Tensor-core kernels with the main loop for rows along K that may start anywhere, and with no other.
#include "cuda/gemm/mma_kernels.cuh"

namespace ggm::cuda {

const void* mma_kernel_unaligned(int kernel, Type type) {
  return find_mma_kernel<Order::inner_contiguous, Order::inner_contiguous, true>(kernel, type);
}

}  // namespace ggm::cuda
