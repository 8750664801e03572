// Products over rows that come through a list, weights with K outside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_gather_strided(Type type) { return wgmma_instance<1, true, false>(type); }

}  // namespace ggm::cuda
