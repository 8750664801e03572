#include "plan/choose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "base/status.h"
#include "plan/plan.h"
#include "plan/tableless_table.h"
#include "plan/wgmma_table.h"

namespace ggm {

namespace {

// GGM_KERNELS, for tests and for the bench: the one kernel that products may take, by its name in a table.
struct ForcedKernel {
  const char* name = nullptr;  // nullptr: not set
  int portable = -1, wgmma = -1, tableless = -1;

  bool names_none() const { return name != nullptr && portable < 0 && wgmma < 0 && tableless < 0; }
};

ForcedKernel forced_kernel() {
  ForcedKernel forced;
  forced.name = std::getenv("GGM_KERNELS");
  if (forced.name == nullptr) return forced;
  for (int i = 0; i < kGemmKernelCount; ++i)
    if (std::strcmp(forced.name, kGemmKernels[i].name) == 0) forced.portable = i;
  for (int i = 0; i < kWgmmaKernelCount; ++i)
    if (std::strcmp(forced.name, kWgmmaKernels[i].name) == 0) forced.wgmma = i;
  for (int i = 0; i < kTablelessKernelCount; ++i)
    if (std::strcmp(forced.name, kTablelessKernels[i].name) == 0) forced.tableless = i;
  return forced;
}

double average_rows(const ProductShape& shape) {
  return static_cast<double>(shape.rows) / static_cast<double>(max64(shape.groups, 1));
}

// The mean of what groups need, from what one of so many rows does.
template <typename Need>
double expected(double average, std::int64_t max_rows, const Need& need) {
  // Eight equally likely values of a normal distribution: its octiles' midpoints, in standard deviations.
  constexpr double kSpread[] = {-1.53, -0.89, -0.49, -0.16, 0.16, 0.49, 0.89, 1.53};
  double sum = 0;
  for (double deviations : kSpread)
    sum += need(std::min(average + deviations * std::sqrt(average), static_cast<double>(max_rows)));
  return sum / static_cast<double>(std::size(kSpread));
}

// Whether hardly a group has more rows than a tile: not even those three standard deviations above the average. Of few rows in
// all two will do for a kernel that the length of K is right for (docs/kernels-tried.md).
bool suits_groups(const TablelessKernel& kernel, const ProductShape& shape) {
  constexpr std::int64_t kLongInner = 2048, kFewRows = 512;
  const bool long_inner = shape.inner >= kLongInner;
  if (kernel.long_inner && !long_inner) return false;
  const double average = average_rows(shape), deviation = std::sqrt(average);
  if (static_cast<double>(shape.max_rows) <= kernel.rows || average + 3 * deviation + 1 <= kernel.rows) return true;
  return shape.rows <= kFewRows && long_inner == kernel.long_inner && average + 2 * deviation <= kernel.rows;
}

// Whether the blocks fill the multiprocessors once and a part of them again, each for so long that this costs more than the
// kernel saves. The groups that have rows are as many as uniform random routing makes them.
bool has_short_second_wave(const TablelessKernel& kernel, const ProductShape& shape, const Device& device) {
  constexpr std::int64_t kLongInner = 4096;
  const auto groups = static_cast<double>(shape.groups), rows = static_cast<double>(shape.rows);
  const double used = groups * (1 - std::pow(1 - 1 / groups, rows));
  const double waves =
      used * static_cast<double>(ceil_div(shape.columns, kernel.columns)) / (device.multiprocessors * kernel.blocks);
  return shape.inner > kLongInner && waves > 1 && waves < 2;
}

// Whether the kernel takes rows of A as they come.
bool takes_rows(const WgmmaKernel& kernel, const ProductShape& shape) {
  if (kernel.relayed) return shape.gathered && shape.may_relay;
  if (kernel.gathered) return shape.gathered;
  return !shape.gathered || shape.may_sort;
}

// Whether rows are better relayed than gathered: groups are long, rows go through enough columns for one more copy, and the
// window holds enough of them (docs/kernels-tried.md has the measurements).
bool suits_relay(const ProductShape& shape) {
  constexpr double kLeastRows = 256, kLeastRatio = 1024;
  constexpr std::int64_t kLeastColumns = 1536, kMostInner = 4096;
  const double average = average_rows(shape);
  return average >= kLeastRows && shape.columns >= kLeastColumns && shape.inner <= kMostInner &&
         average * static_cast<double>(shape.columns) >= kLeastRatio * static_cast<double>(shape.inner);
}

}  // namespace

const char* rejection(const GemmKernel& kernel, const ProductShape& shape, const Device& device) {
  if (kernel.math != math_of(shape.type)) return "other input type";
  if (device.capability < kernel.min_capability) return "capability too low";
  if (kernel.shared_bytes > device.shared_memory_bytes) return "more shared memory than a block has";
  if (shape.ordered && kernel.tile_n != kTurnColumns) return "column tile is not one turn of the ordered combine";
  return nullptr;
}

double expected_row_tiles(double average, std::int64_t max_rows, int tile_m) {
  return expected(average, max_rows, [&](double rows) { return std::max(std::ceil(rows / tile_m), 1.0); });
}

double expected_wgmma_work(const WgmmaKernel& kernel, const ProductShape& shape) {
  constexpr std::int64_t kInnerStep = 64, kPart = 128;  // a warpgroup's, of the left tile
  constexpr double kStep = 8;
  const auto lefts = static_cast<double>(ceil_div(shape.columns, kernel.left_tile()));
  const auto parts = static_cast<double>(ceil_div(shape.inner, kInnerStep) * (kernel.left_tile() / kPart));
  return expected(average_rows(shape), shape.max_rows, [&](double rows) {
    rows = std::max(std::ceil(rows), 1.0);
    double rights = std::ceil(rows / kernel.max_right);
    const bool shared = rights > 1;
    if (shared) rights = 2 * std::ceil(rights / 2);
    const double width = 8 * std::ceil(std::ceil(rows / rights) / 8);
    const double pairs = shared ? lefts * rights / 2 : std::ceil(lefts / 2);
    return pairs * (parts * ((shared ? kPart / 2 : kPart) + width + kStep) + kernel.pair_work);
  });
}

ggm_status_t choose_kernel(const ProductShape& shape, const Device& device, int* kernel) {
  const double average = average_rows(shape);
  const auto cost = [&](const GemmKernel& k) {
    return expected_row_tiles(std::min(average, static_cast<double>(shape.max_rows)), shape.max_rows, k.tile_m) * k.tile_m /
           k.rate;
  };
  const ForcedKernel forced = forced_kernel();
  if (forced.names_none()) return fail(GGM_STATUS_INVALID_VALUE, "GGM_KERNELS = %s is the name of no kernel", forced.name);
  int best = -1;
  char reasons[1024];
  int used = 0;
  reasons[0] = '\0';
  for (int i = 0; i < kGemmKernelCount; ++i) {
    const GemmKernel& candidate = kGemmKernels[i];
    const char* why = rejection(candidate, shape, device);
    if (why == nullptr && forced.portable >= 0 && forced.portable != i) why = "GGM_KERNELS names another";
    if (why != nullptr) {
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

ggm_status_t choose_wgmma(const ProductShape& shape, const Device& device, int multiprocessors, int* kernel) {
  *kernel = -1;
  if (device.kernel_family != GGM_KERNELS_CUDA_HOPPER || !is_16bit(shape.type) || multiprocessors < 2 || shape.portable)
    return GGM_STATUS_SUCCESS;
  const ForcedKernel forced = forced_kernel();
  if (forced.portable >= 0 || forced.tableless >= 0) return GGM_STATUS_SUCCESS;
  // NOTE: kernels for few rows were never better from two tiles a group on, so the estimate is not asked there.
  const bool may_be_few = average_rows(shape) < 2 * kFewRight;
  for (int i = 0; i < kWgmmaKernelCount; ++i) {
    const WgmmaKernel& row = kWgmmaKernels[i];
    if (row.over_k != shape.variable_k || !takes_rows(row, shape)) continue;
    if (forced.wgmma >= 0) {
      if (forced.wgmma == i) *kernel = i;
      continue;
    }
    if (row.relayed && !suits_relay(shape)) continue;
    // Rows in order come first in the table, and are faster even with the copy. Of those for few rows and for many the one that
    // is expected to need less. A kernel that relays rows, where it suits, is taken before all of these; it is last in the
    // table, so nothing replaces it.
    const bool better = *kernel >= 0 && row.gathered == kWgmmaKernels[*kernel].gathered && may_be_few &&
                        expected_wgmma_work(row, shape) < expected_wgmma_work(kWgmmaKernels[*kernel], shape);
    if (*kernel < 0 || better || row.relayed) *kernel = i;
  }
  if (forced.wgmma >= 0 && *kernel < 0)
    return fail(GGM_STATUS_UNSUPPORTED, "GGM_KERNELS = %s does not serve this product", kWgmmaKernels[forced.wgmma].name);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t choose_tableless(const ProductShape& shape, const Device& device, int multiprocessors, int* kernel) {
  *kernel = -1;
  // The blocks are as many as there are tiles, so a call with a limit cannot have these kernels.
  const bool serves = device.capability >= kTablelessCapability && is_16bit(shape.type) && !shape.variable_k &&
                      !shape.ordered && !shape.portable && shape.plain && multiprocessors >= device.multiprocessors &&
                      shape.groups >= 1 && shape.groups <= kTablelessGroups && shape.rows >= 1 &&
                      shape.rows <= kTablelessMostRows && shape.columns <= kTablelessMostColumns;
  const ForcedKernel forced = forced_kernel();
  for (int i = 0; i < kTablelessKernelCount && serves && *kernel < 0; ++i) {
    const TablelessKernel& row = kTablelessKernels[i];
    if (device.shared_memory_bytes < row.shared_bytes) continue;
    const bool better = suits_groups(row, shape) && !has_short_second_wave(row, shape, device);
    if (forced.name == nullptr ? better : forced.tableless == i) *kernel = i;
  }
  if (forced.tableless >= 0 && *kernel < 0)
    return fail(GGM_STATUS_UNSUPPORTED, "GGM_KERNELS = %s does not serve this product",
                kTablelessKernels[forced.tableless].name);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t choose_kernels(const ProductShape& shape, const Device& device, int multiprocessors, ProductKernels* kernels) {
  GGM_TRY(choose_kernel(shape, device, &kernels->portable));
  GGM_TRY(choose_tableless(shape, device, multiprocessors, &kernels->tableless));
  return choose_wgmma(shape, device, multiprocessors, &kernels->wgmma);
}

}  // namespace ggm
