#include "plan/choose.h"

#include <cstdio>

#include "base/checked.h"
#include "base/status.h"
#include "plan/plan.h"

namespace ggm {

const char* rejection(const GemmKernel& kernel, const ProductShape& shape, const Device& device) {
  if (kernel.math != math_of(shape.type)) return "other input type";
  if (device.capability < kernel.min_capability) return "capability too low";
  if (kernel.shared_bytes > device.shared_memory_bytes) return "more shared memory than a block has";
  if (shape.ordered && kernel.tile_n != kTurnColumns) return "column tile is not one turn of the ordered combine";
  return nullptr;
}

ggm_status_t choose_kernel(const ProductShape& shape, const Device& device, int* kernel) {
  const std::int64_t average = ceil_div(shape.rows, max64(shape.groups, 1));
  const std::int64_t expected = min64(average, shape.max_rows);
  int best = -1;
  char reasons[1024];
  int used = 0;
  reasons[0] = '\0';
  for (int i = 0; i < kGemmKernelCount; ++i) {
    const GemmKernel& candidate = kGemmKernels[i];
    if (const char* why = rejection(candidate, shape, device)) {
      if (used < static_cast<int>(sizeof reasons)) {
        used += std::snprintf(reasons + used, sizeof reasons - used, "%s%s: %s", used ? "; " : "", candidate.name, why);
      }
      continue;
    }
    if (best < 0) {
      best = i;
      continue;
    }
    const bool holds = candidate.tile_m >= expected, best_holds = kGemmKernels[best].tile_m >= expected;
    const bool smaller = candidate.tile_m < kGemmKernels[best].tile_m;
    if (holds != best_holds ? holds : holds == smaller) best = i;
  }
  if (best < 0)
    return fail(GGM_STATUS_UNSUPPORTED, "no product kernel for %s on capability %d.%d with %d bytes of shared memory: %s",
                name_of(shape.type), device.capability / 10, device.capability % 10, device.shared_memory_bytes, reasons);
  *kernel = best;
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm
