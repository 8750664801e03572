// ggm_route, ggm_permute, ggm_unpermute, ggm_unpermute_backward.
#include "api/call.h"
#include "api/routing_tensors.h"

namespace ggm::api {
namespace {

ggm_status_t prepare_route(ggm_handle_t handle, const ggm_route_problem_t* in, RouteProblem* problem, RoutePlan* plan) {
  return prepare(
      handle, in, [](const ggm_route_problem_t& full, RouteProblem* p) { return make_problem(full, p); },
      [](const RouteProblem& p, const Device& d, RoutePlan* out) { return make_plan(p, d, out); }, problem, plan);
}

template <PermuteKind kind>
ggm_status_t prepare_permute(ggm_handle_t handle, const ggm_permute_problem_t* in, PermuteProblem* problem, PermutePlan* plan) {
  return prepare(
      handle, in, [](const ggm_permute_problem_t& full, PermuteProblem* p) { return make_problem(kind, full, p); },
      [](const PermuteProblem& p, const Device& d, PermutePlan* out) { return make_plan(p, d, out); }, problem, plan);
}

ggm_status_t route(ggm_handle_t handle, const ggm_route_problem_t* in, const ggm_route_tensors_t* tensors, void* workspace,
                   std::size_t workspace_bytes, ggm_stream_t stream) {
  RouteProblem problem;
  RoutePlan plan;
  GGM_TRY(prepare_route(handle, in, &problem, &plan));
  ggm_route_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  TensorList list;
  GGM_TRY(list.required("ids", t.ids, ids_cover(problem), Access::read));
  GGM_TRY(add_expert_map(problem, t.expert_map, &list));
  GGM_TRY(add_counts(t, &list));
  GGM_TRY(list.required("group_offsets", t.group_offsets, vector(problem.experts + 1, 4), Access::write));
  GGM_TRY(list.required("row_assignment", t.row_assignment, vector(problem.max_rows, 4), Access::write));
  GGM_TRY(list.required("assignment_row", t.assignment_row, vector(problem.assignments, 4), Access::write));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  handle->log.line(GGM_LOG_PLAN, "route tokens=%lld top_k=%lld experts=%lld max_rows=%lld workspace=%lld",
                   static_cast<long long>(problem.tokens), static_cast<long long>(problem.top_k),
                   static_cast<long long>(problem.experts), static_cast<long long>(problem.max_rows),
                   static_cast<long long>(plan.workspace_bytes));
  trace(handle, "route", plan);
  return handle->backend->route(problem, plan, t, workspace, stream);
}

Cover token_cover(const PermuteProblem& p) { return matrix(p.routing.tokens, p.token_ld, p.features, p.token_type); }
Cover row_cover(const PermuteProblem& p) { return matrix(p.routing.max_rows, p.row_ld, p.features, p.row_type); }

template <typename Tensors>
ggm_status_t add_routing_weights(const PermuteProblem& p, const Tensors& t, TensorList* list) {
  return list->typed("routing_weights", t.routing_weights, "routing_weight_type",
                     static_cast<std::int32_t>(p.routing_weight_type),
                     matrix(p.routing.tokens, p.routing_weights_ld, p.routing.top_k, p.routing_weight_type), Access::read);
}

void log_permute(ggm_handle_t handle, const char* name, const PermuteProblem& p, const PermutePlan& plan) {
  handle->log.line(GGM_LOG_PLAN, "%s tokens=%lld top_k=%lld max_rows=%lld features=%lld workspace=%lld", name,
                   static_cast<long long>(p.routing.tokens), static_cast<long long>(p.routing.top_k),
                   static_cast<long long>(p.routing.max_rows), static_cast<long long>(p.features),
                   static_cast<long long>(plan.workspace_bytes));
  trace(handle, name, plan);
}

template <PermuteKind kind>
ggm_status_t permute(ggm_handle_t handle, const ggm_permute_problem_t* in, const ggm_permute_tensors_t* tensors,
                     void* workspace, std::size_t workspace_bytes, ggm_stream_t stream) {
  PermuteProblem problem;
  PermutePlan plan;
  GGM_TRY(prepare_permute<kind>(handle, in, &problem, &plan));
  ggm_permute_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  const bool forward = kind == PermuteKind::permute;
  TensorList list;
  GGM_TRY(add_given_routing(problem.routing, t, &list));
  GGM_TRY(add_routing_weights(problem, t, &list));
  GGM_TRY(list.required("input", t.input, forward ? token_cover(problem) : row_cover(problem), Access::read));
  GGM_TRY(list.required("output", t.output, forward ? row_cover(problem) : token_cover(problem), Access::write));
  GGM_TRY(add_counts(t, &list));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  log_permute(handle, forward ? "permute" : "unpermute", problem, plan);
  return forward ? handle->backend->permute(problem, plan, t, workspace, stream)
                 : handle->backend->unpermute(problem, plan, t, workspace, stream);
}

ggm_status_t unpermute_backward(ggm_handle_t handle, const ggm_permute_problem_t* in,
                                const ggm_unpermute_backward_tensors_t* tensors, void* workspace, std::size_t workspace_bytes,
                                ggm_stream_t stream) {
  PermuteProblem problem;
  PermutePlan plan;
  GGM_TRY(prepare_permute<PermuteKind::unpermute_backward>(handle, in, &problem, &plan));
  ggm_unpermute_backward_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  const Cover dw = vector(problem.routing.assignments, 4);
  TensorList list;
  GGM_TRY(add_given_routing(problem.routing, t, &list));
  GGM_TRY(add_routing_weights(problem, t, &list));
  if (t.d_rows == nullptr && t.d_routing_weights == nullptr && problem.routing.assignments > 0 &&
      (problem.features > 0 || problem.routing.tokens > 0))
    return fail(GGM_STATUS_NULL_POINTER, "d_rows and d_routing_weights are both NULL; at least one result must be asked for");
  if (t.d_routing_weights != nullptr) {
    GGM_TRY(list.required("rows", t.rows, row_cover(problem), Access::read));
  } else {
    GGM_TRY(list.absent("rows", t.rows, "only d_routing_weights reads it, and that is NULL"));
  }
  GGM_TRY(list.required("dy", t.dy, token_cover(problem), Access::read));
  GGM_TRY(list.optional("d_rows", t.d_rows, row_cover(problem), Access::write));
  GGM_TRY(list.optional("d_routing_weights", t.d_routing_weights, dw, Access::write));
  GGM_TRY(add_counts(t, &list));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  log_permute(handle, "unpermute_backward", problem, plan);
  return handle->backend->unpermute_backward(problem, plan, t, workspace, stream);
}

}  // namespace
}  // namespace ggm::api

extern "C" {

GGM_API ggm_status_t ggm_route_workspace_size(ggm_handle_t handle, const ggm_route_problem_t* problem, size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_route_workspace_size",
                              [&] { return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_route); });
}

GGM_API ggm_status_t ggm_route(ggm_handle_t handle, const ggm_route_problem_t* problem, const ggm_route_tensors_t* tensors,
                               void* workspace, size_t workspace_bytes, ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_route",
                              [&] { return ggm::api::route(handle, problem, tensors, workspace, workspace_bytes, stream); });
}

GGM_API ggm_status_t ggm_permute_workspace_size(ggm_handle_t handle, const ggm_permute_problem_t* problem, size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_permute_workspace_size", [&] {
    return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_permute<ggm::PermuteKind::permute>);
  });
}

GGM_API ggm_status_t ggm_permute(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                 const ggm_permute_tensors_t* tensors, void* workspace, size_t workspace_bytes,
                                 ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_permute", [&] {
    return ggm::api::permute<ggm::PermuteKind::permute>(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

GGM_API ggm_status_t ggm_unpermute_workspace_size(ggm_handle_t handle, const ggm_permute_problem_t* problem, size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_unpermute_workspace_size", [&] {
    return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_permute<ggm::PermuteKind::unpermute>);
  });
}

GGM_API ggm_status_t ggm_unpermute(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                   const ggm_permute_tensors_t* tensors, void* workspace, size_t workspace_bytes,
                                   ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_unpermute", [&] {
    return ggm::api::permute<ggm::PermuteKind::unpermute>(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

GGM_API ggm_status_t ggm_unpermute_backward_workspace_size(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                                           size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_unpermute_backward_workspace_size", [&] {
    return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_permute<ggm::PermuteKind::unpermute_backward>);
  });
}

GGM_API ggm_status_t ggm_unpermute_backward(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                            const ggm_unpermute_backward_tensors_t* tensors, void* workspace,
                                            size_t workspace_bytes, ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_unpermute_backward", [&] {
    return ggm::api::unpermute_backward(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

}  // extern "C"
