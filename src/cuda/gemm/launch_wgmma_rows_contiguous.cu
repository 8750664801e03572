// Products over rows, weights with K inside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_rows_contiguous(Type type) { return wgmma_instance<0, false, false>(type); }

}  // namespace ggm::cuda
