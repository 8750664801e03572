// Products of groups of few rows: rows that come through a list, weights with K inside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_few_gather_contiguous(Type type) { return wgmma_instance<4, false, false>(type); }

}  // namespace ggm::cuda
