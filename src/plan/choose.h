// Choice of a product kernel from the table, with the reason for every rejection.
#pragma once

#include "plan/kernel_table.h"
#include "plan/plan.h"
#include "problem/device.h"

namespace ggm {

// What the choice may depend on: never a pointer, a stream or an alignment.
struct ProductShape {
  Type type;  // of the inputs
  std::int64_t groups;
  std::int64_t rows;      // bound on the rows of all groups together
  std::int64_t max_rows;  // bound on the rows of one group
  bool ordered = false;   // the ordered combine needs tiles of kTurnColumns columns
  // What the wgmma kernels ask besides.
  bool variable_k = false;  // K runs over the rows
  bool gathered = false;    // rows of A come through a list
  bool may_sort = false;    // or may be copied into sorted order before
  bool portable = false;    // no wgmma kernel serves it
};

// Why `kernel` cannot serve: nullptr when it can.
const char* rejection(const GemmKernel& kernel, const ProductShape& shape, const Device& device);

// Row tiles that a group is expected to take. Groups are taken to be as uneven as uniform random routing makes them: a standard
// deviation of the square root of the average, and none above max_rows. At least 1: a weight that is read for one row is read
// whole.
double expected_row_tiles(double average, std::int64_t max_rows, int tile_m);

// The index of the kernel in kGemmKernels: among those that can run, the one that is expected to need the least time for a
// column of tiles, rows beyond a group's end included. GGM_STATUS_UNSUPPORTED lists each rejected kernel with its reason.
ggm_status_t choose_kernel(const ProductShape& shape, const Device& device, int* kernel);

// The wgmma kernel for it, as an index into kWgmmaKernels; -1 when the device has none, or the call may use fewer than the two
// multiprocessors of a cluster.
ggm_status_t choose_wgmma(const ProductShape& shape, const Device& device, int multiprocessors, int* kernel);

// Both.
ggm_status_t choose_kernels(const ProductShape& shape, const Device& device, int multiprocessors, ProductKernels* kernels);

}  // namespace ggm
