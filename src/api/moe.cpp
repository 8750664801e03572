// ggm_moe_forward, ggm_moe_backward.
#include "api/call.h"
#include "api/routing_tensors.h"

namespace ggm::api {
namespace {

const char* combine_name(const CombinePlan& plan) {
  if (!plan.ordered) return "two-step";
  return plan.in_turn() ? "ordered" : "ordered-in-parts";
}

template <MoeKind kind, typename Plan>
ggm_status_t prepare_moe(ggm_handle_t handle, const ggm_moe_problem_t* in, MoeProblem* problem, Plan* plan) {
  return prepare(
      handle, in, [](const ggm_moe_problem_t& full, MoeProblem* p) { return make_problem(kind, full, p); },
      [](const MoeProblem& p, const Device& d, Plan* out) { return make_plan(p, d, out); }, problem, plan);
}

// Ids, or the arrays of ggm_route: exactly one of them.
template <typename Tensors>
ggm_status_t add_routing(const MoeProblem& p, const Tensors& t, TensorList* list) {
  const RouteProblem& routing = p.routing;
  const auto id_type = static_cast<std::int32_t>(routing.id_type);
  GGM_TRY(list->typed("ids", t.ids, "id_type", id_type, ids_cover(routing), Access::read));
  if (routing.id_type == IndexType::none) {
    GGM_TRY(list->absent("expert_map", t.expert_map, "the routing arrays are given (id_type is 0)"));
    GGM_TRY(add_given_routing(routing, t, list));
  } else {
    const char* routed = "the call routes by itself (id_type is set)";
    GGM_TRY(add_expert_map(routing, t.expert_map, list));
    GGM_TRY(list->absent("group_offsets", t.group_offsets, routed));
    GGM_TRY(list->absent("row_assignment", t.row_assignment, routed));
    GGM_TRY(list->absent("assignment_row", t.assignment_row, routed));
  }
  GGM_TRY(list->typed("routing_weights", t.routing_weights, "routing_weight_type",
                      static_cast<std::int32_t>(p.routing_weight_type),
                      matrix(routing.tokens, p.routing_weights_ld, routing.top_k, p.routing_weight_type), Access::read));
  return add_counts(t, list);
}

std::int64_t input_rows(const MoeProblem& p) { return p.input_grouped ? p.routing.max_rows : p.routing.tokens; }
std::int64_t output_rows(const MoeProblem& p) { return p.output_grouped ? p.routing.max_rows : p.routing.tokens; }

Cover weight_cover(const MoeProblem& p, std::int64_t ld, std::int64_t stride, Type type) {
  const bool nk = p.weight_order == Order::inner_contiguous;
  return {p.routing.experts, stride, nk ? p.out_features : p.in_features, ld, nk ? p.in_features : p.out_features,
          bytes_of(type)};
}
Cover bias_cover(const MoeProblem& p, std::int64_t stride, Type type) {
  return {p.routing.experts, stride, 1, p.out_features, p.out_features, bytes_of(type)};
}
// Parameters of experts are read only where there are rows.
Cover if_rows(const MoeProblem& p, Cover cover) {
  if (p.routing.max_rows == 0) cover.groups = 0;
  return cover;
}

ggm_status_t moe_forward(ggm_handle_t handle, const ggm_moe_problem_t* in, const ggm_moe_forward_tensors_t* tensors,
                         void* workspace, std::size_t workspace_bytes, ggm_stream_t stream) {
  MoeProblem p;
  MoeForwardPlan plan;
  GGM_TRY(prepare_moe<MoeKind::forward>(handle, in, &p, &plan));
  ggm_moe_forward_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  TensorList list;
  GGM_TRY(add_routing(p, t, &list));
  GGM_TRY(list.required("x", t.x, matrix(input_rows(p), p.x_ld, p.in_features, p.x_type), Access::read));
  GGM_TRY(list.required("weight", t.weight, if_rows(p, weight_cover(p, p.weight_ld, p.weight_stride, p.weight_type)),
                        Access::read));
  GGM_TRY(list.typed("bias", t.bias, "bias_type", static_cast<std::int32_t>(p.bias_type),
                     if_rows(p, bias_cover(p, p.bias_stride, p.bias_type)), Access::read));
  GGM_TRY(list.required("y", t.y, matrix(output_rows(p), p.y_ld, p.out_features, p.y_type), Access::write));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  handle->log.line(
      GGM_LOG_PLAN,
      "moe_forward kernel=%s combine=%s type=%s tokens=%lld top_k=%lld experts=%lld in=%lld out=%lld rows=%s,%s workspace=%lld",
      kernel_name(plan.kernels), p.output_grouped ? "none" : combine_name(plan.combine), name_of(p.x_type),
      static_cast<long long>(p.routing.tokens), static_cast<long long>(p.routing.top_k),
      static_cast<long long>(p.routing.experts), static_cast<long long>(p.in_features), static_cast<long long>(p.out_features),
      p.input_grouped ? "grouped" : "tokens", p.output_grouped ? "grouped" : "tokens",
      static_cast<long long>(plan.workspace_bytes));
  trace(handle, "moe_forward", plan);
  return handle->backend->moe_forward(p, plan, t, workspace, stream);
}

// An output is given exactly when its bit of `gradients` is set.
ggm_status_t add_gradient(const MoeProblem& p, std::uint32_t bit, const char* name, const void* pointer, Cover cover,
                          TensorList* list) {
  if (!p.wants(bit)) return list->absent(name, pointer, "its bit of gradients is not set");
  return list->required(name, pointer, cover, Access::write);
}

// An input that only some gradients read.
ggm_status_t add_if_read(bool read, const char* name, const void* pointer, Cover cover, TensorList* list) {
  return read ? list->required(name, pointer, cover, Access::read) : list->optional(name, pointer, cover, Access::read);
}

ggm_status_t add_backward_tensors(const MoeProblem& p, const ggm_moe_backward_tensors_t& t, TensorList* list) {
  const bool dx = p.wants(GGM_GRADIENT_X), dw = p.wants(GGM_GRADIENT_ROUTING_WEIGHTS), d_weight = p.wants(GGM_GRADIENT_WEIGHT);
  GGM_TRY(add_if_read(dw || d_weight, "x", t.x, matrix(input_rows(p), p.x_ld, p.in_features, p.x_type), list));
  GGM_TRY(add_if_read(dx || dw, "weight", t.weight, if_rows(p, weight_cover(p, p.weight_ld, p.weight_stride, p.weight_type)),
                      list));
  if (p.bias_type == Type::none) {
    GGM_TRY(list->typed("bias", t.bias, "bias_type", 0, {}, Access::read));
  } else {
    GGM_TRY(add_if_read(dw, "bias", t.bias, if_rows(p, bias_cover(p, p.bias_stride, p.bias_type)), list));
  }
  GGM_TRY(list->required("dy", t.dy, matrix(output_rows(p), p.dy_ld, p.out_features, p.dy_type), Access::read));
  GGM_TRY(add_gradient(p, GGM_GRADIENT_X, "dx", t.dx, matrix(input_rows(p), p.dx_ld, p.in_features, p.dx_type), list));
  GGM_TRY(add_gradient(p, GGM_GRADIENT_WEIGHT, "d_weight", t.d_weight,
                       weight_cover(p, p.d_weight_ld, p.d_weight_stride, p.d_weight_type), list));
  GGM_TRY(add_gradient(p, GGM_GRADIENT_BIAS, "d_bias", t.d_bias, bias_cover(p, p.d_bias_stride, p.d_bias_type), list));
  return add_gradient(p, GGM_GRADIENT_ROUTING_WEIGHTS, "d_routing_weights", t.d_routing_weights,
                      vector(p.routing.assignments, 4), list);
}

ggm_status_t moe_backward(ggm_handle_t handle, const ggm_moe_problem_t* in, const ggm_moe_backward_tensors_t* tensors,
                          void* workspace, std::size_t workspace_bytes, ggm_stream_t stream) {
  MoeProblem p;
  MoeBackwardPlan plan;
  GGM_TRY(prepare_moe<MoeKind::backward>(handle, in, &p, &plan));
  ggm_moe_backward_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  TensorList list;
  GGM_TRY(add_routing(p, t, &list));
  GGM_TRY(add_backward_tensors(p, t, &list));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  handle->log.line(GGM_LOG_PLAN,
                   "moe_backward kernel=%s d_weight_kernel=%s combine=%s type=%s gradients=0x%x tokens=%lld top_k=%lld "
                   "experts=%lld in=%lld out=%lld "
                   "rows=%s,%s workspace=%lld",
                   kernel_name(plan.dx_kernels), kernel_name(plan.d_weight_kernels), combine_name(plan.combine),
                   name_of(p.x_type), p.gradients, static_cast<long long>(p.routing.tokens),
                   static_cast<long long>(p.routing.top_k), static_cast<long long>(p.routing.experts),
                   static_cast<long long>(p.in_features), static_cast<long long>(p.out_features),
                   p.input_grouped ? "grouped" : "tokens", p.output_grouped ? "grouped" : "tokens",
                   static_cast<long long>(plan.workspace_bytes));
  trace(handle, "moe_backward", plan);
  return handle->backend->moe_backward(p, plan, t, workspace, stream);
}

}  // namespace
}  // namespace ggm::api

extern "C" {

GGM_API ggm_status_t ggm_moe_forward_workspace_size(ggm_handle_t handle, const ggm_moe_problem_t* problem, size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_moe_forward_workspace_size", [&] {
    return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_moe<ggm::MoeKind::forward, ggm::MoeForwardPlan>);
  });
}

GGM_API ggm_status_t ggm_moe_forward(ggm_handle_t handle, const ggm_moe_problem_t* problem,
                                     const ggm_moe_forward_tensors_t* tensors, void* workspace, size_t workspace_bytes,
                                     ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_moe_forward", [&] {
    return ggm::api::moe_forward(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

GGM_API ggm_status_t ggm_moe_backward_workspace_size(ggm_handle_t handle, const ggm_moe_problem_t* problem, size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_moe_backward_workspace_size", [&] {
    return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_moe<ggm::MoeKind::backward, ggm::MoeBackwardPlan>);
  });
}

GGM_API ggm_status_t ggm_moe_backward(ggm_handle_t handle, const ggm_moe_problem_t* problem,
                                      const ggm_moe_backward_tensors_t* tensors, void* workspace, size_t workspace_bytes,
                                      ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_moe_backward", [&] {
    return ggm::api::moe_backward(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

}  // extern "C"
