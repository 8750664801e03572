#include "plan/choose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

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

double expected_row_tiles(double average, std::int64_t max_rows, int tile_m) {
  // Eight equally likely values of a normal distribution: its octiles' midpoints, in standard deviations.
  constexpr double kSpread[] = {-1.53, -0.89, -0.49, -0.16, 0.16, 0.49, 0.89, 1.53};
  double tiles = 0;
  for (double deviations : kSpread) {
    const double rows = std::min(average + deviations * std::sqrt(average), static_cast<double>(max_rows));
    tiles += std::max(std::ceil(rows / tile_m), 1.0);
  }
  return tiles / static_cast<double>(std::size(kSpread));
}

ggm_status_t choose_kernel(const ProductShape& shape, const Device& device, int* kernel) {
  const double average = static_cast<double>(shape.rows) / static_cast<double>(max64(shape.groups, 1));
  const auto cost = [&](const GemmKernel& k) {
    return expected_row_tiles(std::min(average, static_cast<double>(shape.max_rows)), shape.max_rows, k.tile_m) * k.tile_m /
           k.rate;
  };
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
    if (best < 0 || cost(candidate) < cost(kGemmKernels[best])) best = i;
  }
  if (best < 0)
    return fail(GGM_STATUS_UNSUPPORTED, "no product kernel for %s on capability %d.%d with %d bytes of shared memory: %s",
                name_of(shape.type), device.capability / 10, device.capability % 10, device.shared_memory_bytes, reasons);
  *kernel = best;
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm
