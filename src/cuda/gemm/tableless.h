// Launching the kernels for few rows, which find their groups themselves: a product in one launch.
#pragma once

#include "cuda/device/gemm_call.h"
#include "cuda/gemm/groups.h"
#include "cuda/runtime/launch.h"
#include "problem/device.h"

namespace ggm::cuda {

// Why they cannot serve a product whose plan takes one: nullptr when it can. That the operands are aligned as for the copy
// engine is the caller's to see to.
const char* tableless_obstacle(const GroupBuild& build, const GemmCall& call);

// Puts kTablelessKernels[kernel] on the stream. It counts the faults of the groups' sizes, and clears unused rows: what the
// table and a pass behind the product do otherwise.
ggm_status_t launch_tableless(int kernel, const GroupBuild& build, const GemmCall& call, const Launch& launch);

ggm_status_t load_tableless_kernels(const Device& device);

}  // namespace ggm::cuda
