// Choice of a product kernel from the table, with the reason for every rejection.
#pragma once

#include "plan/kernel_table.h"
#include "problem/device.h"

namespace ggm {

// What the choice may depend on: never a pointer, a stream or an alignment.
struct ProductShape {
  Type type;  // of the inputs
  std::int64_t groups;
  std::int64_t rows;      // bound on the rows of all groups together
  std::int64_t max_rows;  // bound on the rows of one group
  bool ordered = false;   // the ordered combine needs tiles of kTurnColumns columns
};

// Why `kernel` cannot serve: nullptr when it can.
const char* rejection(const GemmKernel& kernel, const ProductShape& shape, const Device& device);

// The index of the kernel in kGemmKernels. Among those that can run, the one with the smallest row tile that holds an average
// group, else the largest: rows beyond a group's end are multiplied for nothing, and fewer row tiles read the weights less
// often. GGM_STATUS_UNSUPPORTED lists each rejected kernel with its reason.
ggm_status_t choose_kernel(const ProductShape& shape, const Device& device, int* kernel);

}  // namespace ggm
