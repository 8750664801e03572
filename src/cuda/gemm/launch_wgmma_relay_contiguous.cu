// Products over rows that come through a list and a window of memory, weights with K inside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_relay_contiguous(Type type) { return wgmma_instance<5, false, false>(type); }

}  // namespace ggm::cuda
