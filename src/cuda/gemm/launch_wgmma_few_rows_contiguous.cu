// Products of groups of few rows: rows of groups in order, weights with K inside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_few_rows_contiguous(Type type) { return wgmma_instance<3, false, false>(type); }

}  // namespace ggm::cuda
