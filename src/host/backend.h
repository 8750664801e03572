// The backend object and its operations, one source file a family of operations.
#pragma once

#include "host/engine.h"
#include "host/host_backend.h"

namespace ggm::host {

class HostBackend final : public Backend {
 public:
  explicit HostBackend(const Device& device) : device_(device), engine_{family(device.kernel_family), pool_} {}

  // Starts the threads; `storage` holds their ids, device.multiprocessors - 1 of them.
  ggm_status_t start(pthread_t* storage) { return pool_.start(storage, device_.multiprocessors - 1); }

  const Device& device() const override { return device_; }
  ggm_status_t check_call(ggm_stream_t stream) const override;

  ggm_status_t route(const RouteProblem&, const RoutePlan&, const ggm_route_tensors_t&, void* workspace, ggm_stream_t) override;
  ggm_status_t permute(const PermuteProblem&, const PermutePlan&, const ggm_permute_tensors_t&, void* workspace,
                       ggm_stream_t) override;
  ggm_status_t unpermute(const PermuteProblem&, const PermutePlan&, const ggm_permute_tensors_t&, void* workspace,
                         ggm_stream_t) override;
  ggm_status_t unpermute_backward(const PermuteProblem&, const PermutePlan&, const ggm_unpermute_backward_tensors_t&,
                                  void* workspace, ggm_stream_t) override;
  ggm_status_t grouped_gemm(const GemmProblem&, const GemmPlan&, const ggm_grouped_gemm_tensors_t&, void* workspace,
                            ggm_stream_t) override;
  ggm_status_t grouped_gemm_array(const GemmArrayProblem&, const GemmPlan&, const ggm_grouped_gemm_array_tensors_t&,
                                  void* workspace, ggm_stream_t) override;
  ggm_status_t moe_forward(const MoeProblem&, const MoeForwardPlan&, const ggm_moe_forward_tensors_t&, void* workspace,
                           ggm_stream_t) override;
  ggm_status_t moe_backward(const MoeProblem&, const MoeBackwardPlan&, const ggm_moe_backward_tensors_t&, void* workspace,
                            ggm_stream_t) override;

 private:
  Device device_;
  Pool pool_;
  Engine engine_;
};

}  // namespace ggm::host
