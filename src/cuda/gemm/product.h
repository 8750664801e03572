// One product over groups, from operands to launch: which kernel can serve them, its table of groups, and its launch. The one
// door between the operations and the product kernels.
#pragma once

#include "cuda/device/gemm_call.h"
#include "cuda/gemm/groups.h"
#include "plan/plan.h"

namespace ggm::cuda {

// `build` and `call` describe the same product. The plan's wgmma kernel runs when the copy engine can read the operands, else
// the portable one; both give the same bits. Pointers of `call` to the table are filled in here.
ggm_status_t run_product(const ProductKernels& kernels, const GroupBuild& build, GemmCall call, const TablePointers& table,
                         const Launch& launch);

// The same for the general groups of ggm_grouped_gemm_array.
ggm_status_t run_array_product(const ProductKernels& kernels, const ArrayBuild& build, GemmCall call,
                               const TablePointers& table, const Launch& launch);

}  // namespace ggm::cuda
