// Launching products: the one door between the operations and the product kernels.
#pragma once

#include "cuda/device/gemm_call.h"
#include "cuda/runtime/launch.h"
#include "plan/kernel_table.h"
#include "problem/device.h"

namespace ggm::cuda {

// Puts the product kernel kGemmKernels[kernel] on the stream, persistent, on at most `launch.multiprocessors` of them.
// `unaligned`: rows along K of both operands may begin anywhere. Where there is a kernel for that alone it is taken, which is
// faster then, and right in any case. Tiles of one group are numbered so that in every column of tiles the rows are claimed in
// ascending order (the ordered combine depends on it).
ggm_status_t launch_gemm(int kernel, const GemmCall& call, bool unaligned, const Launch& launch);

// Touches every product kernel: loads its module, raises its shared-memory limit. Called by make_backend.
ggm_status_t load_gemm_kernels(const Device& device);

}  // namespace ggm::cuda
