// Tensor-core kernels whose A is inner_strided and whose B is inner_strided.
#include "cuda/gemm/mma_kernels.cuh"

namespace ggm::cuda {

const void* mma_kernel_strided_strided(int kernel, Type type) {
  return find_mma_kernel<Order::inner_strided, Order::inner_strided>(kernel, type);
}

}  // namespace ggm::cuda
