// Choice of a product kernel from the table, with the reason for every rejection.
#pragma once

#include "plan/kernel_table.h"
#include "plan/plan.h"
#include "plan/wgmma_table.h"
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
  std::int64_t columns = 0;  // of a result, and terms of its inner products: of products over rows
  std::int64_t inner = 0;
  bool variable_k = false;  // K runs over the rows
  bool gathered = false;    // rows of A come through a list
  bool may_sort = false;    // or may be copied into sorted order before
  bool may_relay = false;   // or pass through a window of memory
  bool portable = false;    // no wgmma kernel serves it, and no tableless one
  bool plain = true;        // groups follow each other, and their results are rounded and stored: what tableless kernels do
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

// What a wgmma kernel of products over rows is expected to need for one group, to be compared among those that take rows the
// same way. A pair of tiles (cut as tile_pairs.h does) needs for each 64 terms, and for each 128 rows of its left tile, the
// rows of it that one block copies (64 where both blocks share it), the width of the right tile, and 8 for the step; besides
// pair_work. Groups are as uneven as above. docs/kernels.md has the measurements that the numbers are from.
double expected_wgmma_work(const WgmmaKernel& kernel, const ProductShape& shape);

// The wgmma kernel for it, as an index into kWgmmaKernels; -1 when the device has none, or the call may use fewer than the two
// multiprocessors of a cluster.
ggm_status_t choose_wgmma(const ProductShape& shape, const Device& device, int multiprocessors, int* kernel);

// The tableless kernel for it, as an index into kTablelessKernels: for 16-bit products over few rows, on all multiprocessors;
// -1 where another is expected to be faster. NOTE: what the sizes of the groups are only the device knows.
ggm_status_t choose_tableless(const ProductShape& shape, const Device& device, int multiprocessors, int* kernel);

// All of them.
ggm_status_t choose_kernels(const ProductShape& shape, const Device& device, int multiprocessors, ProductKernels* kernels);

}  // namespace ggm
