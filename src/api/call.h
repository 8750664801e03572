// What every operation does before its backend sees it: handle, structs, problem, plan; then the size query ends, and a call
// goes on with its tensors, workspace and stream. One place, so that the query and the call cannot differ.
#pragma once

#include "api/guard.h"
#include "api/handle.h"
#include "api/read_struct.h"
#include "plan/plan.h"
#include "plan/tableless_table.h"
#include "plan/wgmma_table.h"

namespace ggm::api {

// Reads and validates `in` with `make(full struct, problem)` and plans it for the handle's device.
template <typename In, typename Problem, typename Plan, typename Make, typename MakePlan>
ggm_status_t prepare(ggm_handle_t handle, const In* in, Make make, MakePlan plan_it, Problem* problem, Plan* plan) {
  GGM_TRY(check_handle(handle));
  In full;
  GGM_TRY(read_struct("problem", in, sizeof(In), &full));
  GGM_TRY(make(full, problem));
  return plan_it(*problem, handle->device, plan);
}

// The whole size query; `prepare_it` is the operation's own form of `prepare`.
template <typename In, typename Problem, typename Plan>
ggm_status_t answer_size(ggm_handle_t handle, const In* in, std::size_t* bytes,
                         ggm_status_t (*prepare_it)(ggm_handle_t, const In*, Problem*, Plan*)) {
  Problem problem;
  Plan plan;
  GGM_TRY(prepare_it(handle, in, &problem, &plan));
  if (bytes == nullptr) return fail(GGM_STATUS_NULL_POINTER, "bytes is NULL");
  *bytes = static_cast<std::size_t>(plan.workspace_bytes);
  return GGM_STATUS_SUCCESS;
}

// Reads the tensors struct; its reserved field must be 0.
template <typename Tensors>
ggm_status_t read_tensors(const Tensors* in, Tensors* full) {
  GGM_TRY(read_struct("tensors", in, sizeof(Tensors), full));
  if (full->reserved != 0) return fail(GGM_STATUS_RESERVED_NOT_ZERO, "tensors.reserved = %u; must be 0", full->reserved);
  return GGM_STATUS_SUCCESS;
}

// The kernel that the plan would rather take.
inline const char* kernel_name(const ProductKernels& kernels) {
  if (kernels.tableless >= 0) return kTablelessKernels[kernels.tableless].name;
  if (kernels.wgmma >= 0) return kWgmmaKernels[kernels.wgmma].name;
  return kernels.portable < 0 ? "host" : kGemmKernels[kernels.portable].name;
}

// Logs how wide a call runs; on the host its threads count.
template <typename Plan>
void trace(ggm_handle_t handle, const char* operation, const Plan& plan) {
  handle->log.line(GGM_LOG_TRACE, "%s on %d multiprocessors", operation, plan.multiprocessors);
}

// Runs the body of a call behind the guard and logs its failure.
template <typename Body>
ggm_status_t guard_call(ggm_handle_t handle, const char* function, Body&& body) {
  const ggm_status_t status = guard(function, body);
  if (status != GGM_STATUS_SUCCESS && check_handle(handle) == GGM_STATUS_SUCCESS)
    handle->log.line(GGM_LOG_ERROR, "%s: %s: %s", function, status_name(status), last_error());
  return status;
}

}  // namespace ggm::api
