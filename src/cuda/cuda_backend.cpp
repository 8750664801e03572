#include "cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <new>

#include "cuda/gemm/gemm.h"
#include "cuda/gemm/grouped_gemm.h"
#include "cuda/gemm/groups.h"
#include "cuda/gemm/tableless.h"
#include "cuda/moe/moe.h"
#include "cuda/routing/routing.h"
#include "cuda/rows/rows.h"
#include "cuda/runtime/device.h"

namespace ggm::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Device& device, bool kernels_wait) : device_(device), kernels_wait_(kernels_wait) {}

  const Device& device() const override { return device_; }

  ggm_status_t check_call(ggm_stream_t) const override { return check_current_device(device_.ordinal); }

  ggm_status_t route(const RouteProblem& problem, const RoutePlan& plan, const ggm_route_tensors_t& tensors, void* workspace,
                     ggm_stream_t stream) override {
    RowPointers out;
    out.group_offsets = tensors.group_offsets;
    out.row_assignment = tensors.row_assignment;
    out.assignment_row = tensors.assignment_row;
    const RouteInputs inputs{tensors.ids, tensors.expert_map, tensors.num_tokens, tensors.faults};
    return route_rows(problem, plan.scratch, workspace, inputs, out, launch(plan.multiprocessors, stream));
  }

  ggm_status_t permute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                       void* workspace, ggm_stream_t stream) override {
    return run_permute(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

  ggm_status_t unpermute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                         void* workspace, ggm_stream_t stream) override {
    return run_unpermute(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

  ggm_status_t unpermute_backward(const PermuteProblem& problem, const PermutePlan& plan,
                                  const ggm_unpermute_backward_tensors_t& tensors, void* workspace,
                                  ggm_stream_t stream) override {
    return run_unpermute_backward(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

  ggm_status_t grouped_gemm(const GemmProblem& problem, const GemmPlan& plan, const ggm_grouped_gemm_tensors_t& tensors,
                            void* workspace, ggm_stream_t stream) override {
    return run_grouped_gemm(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

  ggm_status_t grouped_gemm_array(const GemmArrayProblem& problem, const GemmPlan& plan,
                                  const ggm_grouped_gemm_array_tensors_t& tensors, void* workspace,
                                  ggm_stream_t stream) override {
    return run_grouped_gemm_array(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

  ggm_status_t moe_forward(const MoeProblem& problem, const MoeForwardPlan& plan, const ggm_moe_forward_tensors_t& tensors,
                           void* workspace, ggm_stream_t stream) override {
    return run_moe_forward(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

  ggm_status_t moe_backward(const MoeProblem& problem, const MoeBackwardPlan& plan, const ggm_moe_backward_tensors_t& tensors,
                            void* workspace, ggm_stream_t stream) override {
    return run_moe_backward(problem, plan, tensors, workspace, launch(plan.multiprocessors, stream));
  }

 private:
  Launch launch(int multiprocessors, ggm_stream_t stream) const {
    // A limited call keeps what its waiting kernels would take for others.
    const bool limited = multiprocessors < device_.multiprocessors;
    return {stream, multiprocessors, limited, kernels_wait_ && !limited};
  }

  const Device device_;
  const bool kernels_wait_;  // for the work before them (kernels_wait())
};

}  // namespace

std::size_t backend_bytes() { return sizeof(CudaBackend); }

ggm_status_t make_backend(const Device& device, void* storage, Backend** backend) {
  *backend = nullptr;
  CreateScope scope;
  GGM_TRY(scope.enter(device.ordinal));
  GGM_TRY(load_routing_kernels());
  GGM_TRY(load_row_kernels());
  GGM_TRY(load_group_kernels());
  GGM_TRY(load_gemm_kernels(device));
  GGM_TRY(load_tableless_kernels(device));
  static_assert(alignof(CudaBackend) <= 64, "the handle aligns the storage of a backend to 64 bytes");
  bool wait = false;
  GGM_TRY(kernels_wait(&wait));
  *backend = new (storage) CudaBackend(device, wait);
  return GGM_STATUS_SUCCESS;
}

void destroy_backend(Backend* backend) {
  if (backend != nullptr) backend->~Backend();
}

const char* toolkit_version() {
  static_assert(CUDART_VERSION >= 12080, "the CUDA toolkit is too old");
  // CUDART_VERSION is 1000 * major + 10 * minor.
  static constexpr char kText[] = {'0' + CUDART_VERSION / 10000 % 10, '0' + CUDART_VERSION / 1000 % 10, '.',
                                   '0' + CUDART_VERSION / 10 % 10, 0};
  return kText;
}

const char* architectures() { return GGM_CUDA_ARCHITECTURES_TEXT; }

}  // namespace ggm::cuda
