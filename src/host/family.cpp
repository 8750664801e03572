#include "host/family.h"

#include "ggm/ggm.h"

namespace ggm::host {

const Family& family(std::int32_t kernel_family) {
#if defined(__x86_64__)
  if (kernel_family == GGM_KERNELS_HOST_AVX512) return kAvx512Family;
  if (kernel_family == GGM_KERNELS_HOST_AVX2) return kAvx2Family;
#endif
  return kPlainFamily;
}

}  // namespace ggm::host
