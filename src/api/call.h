// What every operation does before its backend sees it: handle, structs, problem, plan; then the size query ends, and a call
// goes on with its tensors, workspace and stream. One place, so that the query and the call cannot differ.
#pragma once

#include "api/guard.h"
#include "api/handle.h"
#include "api/read_struct.h"
#include "plan/plan.h"

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

template <typename Plan>
ggm_status_t answer_size(const Plan& plan, std::size_t* bytes) {
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

inline const char* kernel_name(int kernel) { return kernel < 0 ? "host" : kGemmKernels[kernel].name; }

// Logs how wide a call runs; on the host its threads count.
template <typename Plan>
void trace(ggm_handle_t handle, const char* operation, const Plan& plan) {
  handle->log.line(GGM_LOG_TRACE, "%s on %d multiprocessors", operation, plan.multiprocessors);
}

// Logs a failed call at GGM_LOG_ERROR and passes its status on.
inline ggm_status_t report(ggm_handle_t handle, const char* function, ggm_status_t status) {
  if (status != GGM_STATUS_SUCCESS && check_handle(handle) == GGM_STATUS_SUCCESS)
    handle->log.line(GGM_LOG_ERROR, "%s: %s: %s", function, status_name(status), last_error());
  return status;
}

}  // namespace ggm::api
