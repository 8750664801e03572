// Products over rows that come through a list and a window of memory, weights with K outside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_relay_strided(Type type) { return wgmma_instance<5, true, false>(type); }

}  // namespace ggm::cuda
