// Products over rows, tiles of up to 192 rows, weights with K outside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_192_strided(Type type) { return wgmma_instance<1, true, false>(type); }

}  // namespace ggm::cuda
