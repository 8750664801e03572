// The float64 kernels: every simple64 row of the kernel table.
#include "cuda/device/gemm_simple64.cuh"
#include "cuda/gemm/launch.h"

namespace ggm::cuda {
namespace {

template <int kernel = 0>
const void* find(int wanted) {
  if constexpr (kernel < kGemmKernelCount) {
    constexpr GemmKernel row = kGemmKernels[kernel];
    if constexpr (row.math == KernelMath::simple64) {
      static_assert(sizeof(Simple64Shared<kernel>) == row.shared_bytes,
                    "shared_bytes of the kernel table must be the size of SharedStorage");
      if (wanted == kernel) return reinterpret_cast<const void*>(&gemm_simple64<kernel>);
    }
    return find<kernel + 1>(wanted);
  } else {
    return nullptr;
  }
}

}  // namespace

const void* simple64_kernel(int kernel) { return find(kernel); }

}  // namespace ggm::cuda
