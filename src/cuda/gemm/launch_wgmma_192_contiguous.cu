// Products over rows, tiles of up to 192 rows, weights with K inside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_192_contiguous(Type type) { return wgmma_instance<1, false, false>(type); }

}  // namespace ggm::cuda
