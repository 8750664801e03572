// Products over rows, weights with K outside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_rows_strided(Type type) { return wgmma_instance<0, true, false>(type); }

}  // namespace ggm::cuda
