// ggm_grouped_gemm, ggm_grouped_gemm_array.
#include "api/call.h"
#include "api/tensors.h"

namespace ggm::api {
namespace {

ggm_status_t prepare_gemm(ggm_handle_t handle, const ggm_grouped_gemm_problem_t* in, GemmProblem* problem, GemmPlan* plan) {
  return prepare(
      handle, in, [](const ggm_grouped_gemm_problem_t& full, GemmProblem* p) { return make_problem(full, p); },
      [](const GemmProblem& p, const Device& d, GemmPlan* out) { return make_plan(p, d, out); }, problem, plan);
}

ggm_status_t prepare_array(ggm_handle_t handle, const ggm_grouped_gemm_array_problem_t* in, GemmArrayProblem* problem,
                           GemmPlan* plan) {
  return prepare(
      handle, in, [](const ggm_grouped_gemm_array_problem_t& full, GemmArrayProblem* p) { return make_problem(full, p); },
      [](const GemmArrayProblem& p, const Device& d, GemmPlan* out) { return make_plan(p, d, out); }, problem, plan);
}

// The arrays that say where the groups are: each form has its own, and the others must be NULL.
ggm_status_t add_group_arrays(const GemmProblem& p, const ggm_grouped_gemm_tensors_t& t, TensorList* list) {
  const int bytes = bytes_of(p.index_type);
  const GroupForm form = p.group_form;
  const char* other = "this group_form does not use it";
  const bool sizes = form == GroupForm::sizes || form == GroupForm::starts_sizes;
  const bool offsets = form == GroupForm::offsets || form == GroupForm::ends || form == GroupForm::starts_sizes;
  const std::int64_t entries = form == GroupForm::offsets && p.groups > 0 ? p.groups + 1 : p.groups;
  if (sizes) {
    GGM_TRY(list->required("group_sizes", t.group_sizes, vector(p.groups, bytes), Access::read));
  } else {
    GGM_TRY(list->absent("group_sizes", t.group_sizes, other));
  }
  if (offsets) {
    GGM_TRY(list->required("group_offsets", t.group_offsets, vector(entries, bytes), Access::read));
  } else {
    GGM_TRY(list->absent("group_offsets", t.group_offsets, other));
  }
  if (form == GroupForm::row_group) {
    // Without groups no entry can name one, so none is read.
    return list->required("row_group", t.row_group, vector(p.groups > 0 ? p.rows() : 0, bytes), Access::read);
  }
  return list->absent("row_group", t.row_group, other);
}

ggm_status_t add_operands(const GemmProblem& p, const ggm_grouped_gemm_tensors_t& t, TensorList* list) {
  const bool variable_k = p.layout == Layout::variable_k;
  const std::int64_t a_groups = p.layout == Layout::masked ? p.groups : (p.groups > 0 ? 1 : 0);
  const std::int64_t d_groups = p.layout == Layout::contiguous ? 1 : p.groups;
  // Without rows the other operand is not read either.
  const std::int64_t b_groups = p.rows() == 0 ? 0 : (variable_k ? (p.groups > 0 ? 1 : 0) : p.groups);
  const Cover a = variable_k ? Cover{a_groups, 0, p.k, p.lda, p.m, bytes_of(p.a_type)}
                             : Cover{a_groups, p.stride_a, p.m, p.lda, p.k, bytes_of(p.a_type)};
  const bool kn = p.b_order == Order::inner_strided;
  const Cover b{b_groups, p.stride_b, kn ? p.k : p.n, p.ldb, kn ? p.n : p.k, bytes_of(p.b_type)};
  const Cover c{d_groups, p.stride_c, p.m, p.ldc, p.n, bytes_of(p.c_type)};
  const Cover d{d_groups, p.stride_d, p.m, p.ldd, p.n, bytes_of(p.d_type)};
  GGM_TRY(list->required("a", t.a, a, Access::read));
  GGM_TRY(list->required("b", t.b, b, Access::read));
  GGM_TRY(list->typed("c", t.c, "c_type", static_cast<std::int32_t>(p.c_type), c, Access::read));
  GGM_TRY(list->required("d", t.d, d, Access::write));
  if (p.c_type == p.d_type && p.ldc == p.ldd && p.stride_c == p.stride_d) list->allow_same("c", "d");
  return GGM_STATUS_SUCCESS;
}

ggm_status_t grouped_gemm(ggm_handle_t handle, const ggm_grouped_gemm_problem_t* in, const ggm_grouped_gemm_tensors_t* tensors,
                          void* workspace, std::size_t workspace_bytes, ggm_stream_t stream) {
  GemmProblem problem;
  GemmPlan plan;
  GGM_TRY(prepare_gemm(handle, in, &problem, &plan));
  ggm_grouped_gemm_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  TensorList list;
  GGM_TRY(add_group_arrays(problem, t, &list));
  GGM_TRY(add_operands(problem, t, &list));
  GGM_TRY(list.optional("faults", t.faults, vector(GGM_FAULT_WORDS, 4), Access::write));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  handle->log.line(
      GGM_LOG_PLAN, "grouped_gemm kernel=%s layout=%d form=%d type=%s groups=%lld m=%lld n=%lld k=%lld workspace=%lld",
      kernel_name(plan.kernels), static_cast<int>(problem.layout), static_cast<int>(problem.group_form),
      name_of(problem.a_type), static_cast<long long>(problem.groups), static_cast<long long>(problem.m),
      static_cast<long long>(problem.n), static_cast<long long>(problem.k), static_cast<long long>(plan.workspace_bytes));
  trace(handle, "grouped_gemm", plan);
  return handle->backend->grouped_gemm(problem, plan, t, workspace, stream);
}

ggm_status_t grouped_gemm_array(ggm_handle_t handle, const ggm_grouped_gemm_array_problem_t* in,
                                const ggm_grouped_gemm_array_tensors_t* tensors, void* workspace, std::size_t workspace_bytes,
                                ggm_stream_t stream) {
  GemmArrayProblem problem;
  GemmPlan plan;
  GGM_TRY(prepare_array(handle, in, &problem, &plan));
  ggm_grouped_gemm_array_tensors_t t;
  GGM_TRY(read_tensors(tensors, &t));
  const Cover index = vector(problem.groups, bytes_of(problem.index_type));
  const bool work = problem.max_m > 0 && problem.max_n > 0;
  const Cover outputs = vector(work ? problem.groups : 0, sizeof(void*));
  const Cover inputs = vector(work && problem.max_k > 0 ? problem.groups : 0, sizeof(void*));
  TensorList list;
  GGM_TRY(list.optional("m", t.m, index, Access::read));
  GGM_TRY(list.optional("n", t.n, index, Access::read));
  GGM_TRY(list.optional("k", t.k, index, Access::read));
  GGM_TRY(list.optional("lda", t.lda, index, Access::read));
  GGM_TRY(list.optional("ldb", t.ldb, index, Access::read));
  GGM_TRY(list.optional("ldc", t.ldc, index, Access::read));
  GGM_TRY(list.optional("ldd", t.ldd, index, Access::read));
  GGM_TRY(list.required("a", t.a, inputs, Access::read));
  GGM_TRY(list.required("b", t.b, inputs, Access::read));
  GGM_TRY(list.typed("c", t.c, "c_type", static_cast<std::int32_t>(problem.c_type), outputs, Access::read));
  GGM_TRY(list.required("d", t.d, outputs, Access::read));  // the array is read; what it points to is the caller's word
  GGM_TRY(list.optional("faults", t.faults, vector(GGM_FAULT_WORDS, 4), Access::write));
  GGM_TRY(list.finish(workspace, workspace_bytes, plan.workspace_bytes));
  GGM_TRY(handle->backend->check_call(stream));
  handle->log.line(
      GGM_LOG_PLAN, "grouped_gemm_array kernel=%s orders=%d,%d type=%s groups=%lld m<=%lld n<=%lld k<=%lld workspace=%lld",
      kernel_name(plan.kernels), static_cast<int>(problem.a_order), static_cast<int>(problem.b_order), name_of(problem.a_type),
      static_cast<long long>(problem.groups), static_cast<long long>(problem.max_m), static_cast<long long>(problem.max_n),
      static_cast<long long>(problem.max_k), static_cast<long long>(plan.workspace_bytes));
  trace(handle, "grouped_gemm_array", plan);
  return handle->backend->grouped_gemm_array(problem, plan, t, workspace, stream);
}

}  // namespace
}  // namespace ggm::api

extern "C" {

GGM_API ggm_status_t ggm_grouped_gemm_workspace_size(ggm_handle_t handle, const ggm_grouped_gemm_problem_t* problem,
                                                     size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_grouped_gemm_workspace_size",
                              [&] { return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_gemm); });
}

GGM_API ggm_status_t ggm_grouped_gemm(ggm_handle_t handle, const ggm_grouped_gemm_problem_t* problem,
                                      const ggm_grouped_gemm_tensors_t* tensors, void* workspace, size_t workspace_bytes,
                                      ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_grouped_gemm", [&] {
    return ggm::api::grouped_gemm(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

GGM_API ggm_status_t ggm_grouped_gemm_array_workspace_size(ggm_handle_t handle, const ggm_grouped_gemm_array_problem_t* problem,
                                                           size_t* bytes) {
  return ggm::api::guard_call(handle, "ggm_grouped_gemm_array_workspace_size",
                              [&] { return ggm::api::answer_size(handle, problem, bytes, ggm::api::prepare_array); });
}

GGM_API ggm_status_t ggm_grouped_gemm_array(ggm_handle_t handle, const ggm_grouped_gemm_array_problem_t* problem,
                                            const ggm_grouped_gemm_array_tensors_t* tensors, void* workspace,
                                            size_t workspace_bytes, ggm_stream_t stream) {
  return ggm::api::guard_call(handle, "ggm_grouped_gemm_array", [&] {
    return ggm::api::grouped_gemm_array(handle, problem, tensors, workspace, workspace_bytes, stream);
  });
}

}  // extern "C"
