// The instruction-set families that this processor runs, for tests that compare them.
#pragma once

#include <cstdint>
#include <vector>

#include "host/family.h"
#include "host/host_backend.h"

namespace ggm_test {

inline std::vector<const ggm::host::Family*> usable_families() {
  std::vector<const ggm::host::Family*> usable;
  for (std::int32_t id : {GGM_KERNELS_HOST_PLAIN, GGM_KERNELS_HOST_AVX2, GGM_KERNELS_HOST_AVX512}) {
    ggm::Device device;
    if (ggm::host::describe_device(id, 1, &device) == GGM_STATUS_SUCCESS) usable.push_back(&ggm::host::family(id));
  }
  return usable;
}

}  // namespace ggm_test
