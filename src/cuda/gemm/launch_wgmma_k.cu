// Products whose K runs over the rows.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_k(Type type) { return wgmma_instance<2, true, true>(type); }

}  // namespace ggm::cuda
