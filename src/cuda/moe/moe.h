// The order of steps of the permutations and of the fused operations on CUDA, and nothing else: every kernel lives with its
// subject. Called by the backend object with a validated problem, its plan and checked pointers.
#pragma once

#include "cuda/runtime/launch.h"
#include "plan/plan.h"

namespace ggm::cuda {

ggm_status_t run_permute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                         void* workspace, const Launch& launch);
ggm_status_t run_unpermute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                           void* workspace, const Launch& launch);
ggm_status_t run_unpermute_backward(const PermuteProblem& problem, const PermutePlan& plan,
                                    const ggm_unpermute_backward_tensors_t& tensors, void* workspace, const Launch& launch);
ggm_status_t run_moe_forward(const MoeProblem& problem, const MoeForwardPlan& plan, const ggm_moe_forward_tensors_t& tensors,
                             void* workspace, const Launch& launch);
ggm_status_t run_moe_backward(const MoeProblem& problem, const MoeBackwardPlan& plan, const ggm_moe_backward_tensors_t& tensors,
                              void* workspace, const Launch& launch);

}  // namespace ggm::cuda
