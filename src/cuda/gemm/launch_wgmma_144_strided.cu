// Products over rows, tiles of up to 144 rows, weights with K outside.
#include "cuda/gemm/wgmma_instance.cuh"

namespace ggm::cuda {

const void* wgmma_kernel_144_strided(Type type) { return wgmma_instance<0, true, false>(type); }

}  // namespace ggm::cuda
