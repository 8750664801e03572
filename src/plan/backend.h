// What a backend is: the operations, given a validated problem, its plan, the caller's pointers (already checked) and the
// workspace. Implemented by src/host and src/cuda, which do not see each other; owned by the handle (src/api).
#pragma once

#include "plan/plan.h"

namespace ggm {

// Memory of a backend object comes from the handle's allocator; see api/handle.cpp.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const Device& device() const = 0;

  // Cheap checks of the calling thread: current device, stream. `stream` as given by the caller.
  virtual ggm_status_t check_call(ggm_stream_t stream) const = 0;

  virtual ggm_status_t route(const RouteProblem&, const RoutePlan&, const ggm_route_tensors_t&, void* workspace,
                             ggm_stream_t) = 0;
  virtual ggm_status_t permute(const PermuteProblem&, const PermutePlan&, const ggm_permute_tensors_t&, void* workspace,
                               ggm_stream_t) = 0;
  virtual ggm_status_t unpermute(const PermuteProblem&, const PermutePlan&, const ggm_permute_tensors_t&, void* workspace,
                                 ggm_stream_t) = 0;
  virtual ggm_status_t unpermute_backward(const PermuteProblem&, const PermutePlan&, const ggm_unpermute_backward_tensors_t&,
                                          void* workspace, ggm_stream_t) = 0;
  virtual ggm_status_t grouped_gemm(const GemmProblem&, const GemmPlan&, const ggm_grouped_gemm_tensors_t&, void* workspace,
                                    ggm_stream_t) = 0;
  virtual ggm_status_t grouped_gemm_array(const GemmArrayProblem&, const GemmPlan&, const ggm_grouped_gemm_array_tensors_t&,
                                          void* workspace, ggm_stream_t) = 0;
  virtual ggm_status_t moe_forward(const MoeProblem&, const MoeForwardPlan&, const ggm_moe_forward_tensors_t&, void* workspace,
                                   ggm_stream_t) = 0;
  virtual ggm_status_t moe_backward(const MoeProblem&, const MoeBackwardPlan&, const ggm_moe_backward_tensors_t&,
                                    void* workspace, ggm_stream_t) = 0;
};

}  // namespace ggm
