// The wgmma kernels as launchable entries; each launch_wgmma_*.cu instantiates one, so that they compile in parallel.
#pragma once

#include "base/types.h"

namespace ggm::cuda {

// Products over rows, by the order of the weights; A has K inside.
const void* wgmma_kernel_rows_contiguous(Type type);
const void* wgmma_kernel_rows_strided(Type type);
// The same with rows of A that come through a list.
const void* wgmma_kernel_gather_contiguous(Type type);
const void* wgmma_kernel_gather_strided(Type type);
// Through a list and a window of memory.
const void* wgmma_kernel_relay_contiguous(Type type);
const void* wgmma_kernel_relay_strided(Type type);
// Both for groups of few rows.
const void* wgmma_kernel_few_rows_contiguous(Type type);
const void* wgmma_kernel_few_rows_strided(Type type);
const void* wgmma_kernel_few_gather_contiguous(Type type);
const void* wgmma_kernel_few_gather_strided(Type type);
// Products whose K runs over the rows.
const void* wgmma_kernel_k(Type type);

}  // namespace ggm::cuda
