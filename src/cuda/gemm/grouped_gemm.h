// The steps of ggm_grouped_gemm and ggm_grouped_gemm_array on CUDA: group table, product, zeros in unused rows.
// Called by the backend object with a validated problem and checked pointers.
#pragma once

#include "cuda/runtime/launch.h"
#include "plan/plan.h"

namespace ggm::cuda {

ggm_status_t run_grouped_gemm(const GemmProblem& problem, const GemmPlan& plan, const ggm_grouped_gemm_tensors_t& tensors,
                              void* workspace, const Launch& launch);
ggm_status_t run_grouped_gemm_array(const GemmArrayProblem& problem, const GemmPlan& plan,
                                    const ggm_grouped_gemm_array_tensors_t& tensors, void* workspace, const Launch& launch);

}  // namespace ggm::cuda
