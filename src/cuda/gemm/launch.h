// The product kernels as launchable entries. Each launch_*.cu instantiates one group of them, so that they compile in parallel;
// launch.cu alone calls these.
#pragma once

#include "base/types.h"
#include "plan/kernel_table.h"
#include "problem/problem.h"

namespace ggm::cuda {

// The device function of kGemmKernels[kernel] for these inputs, as cudaLaunchKernel takes it; nullptr when that row is of other
// math.
const void* mma_kernel_contiguous_contiguous(int kernel, Type type);
const void* mma_kernel_contiguous_strided(int kernel, Type type);
const void* mma_kernel_strided_contiguous(int kernel, Type type);
const void* mma_kernel_strided_strided(int kernel, Type type);
// Of tiles alone that take the general main loop; both orders are contiguous.
const void* mma_kernel_unaligned(int kernel, Type type);
const void* simt_kernel(int kernel, Order a_order, Order b_order);
const void* simple64_kernel(int kernel);

}  // namespace ggm::cuda
