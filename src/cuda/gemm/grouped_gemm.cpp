#include "cuda/gemm/grouped_gemm.h"

#include "base/status.h"
#include "cuda/gemm/product.h"
#include "cuda/routing/routing.h"
#include "cuda/rows/rows.h"

namespace ggm::cuda {
namespace {

RowSource source_of(const GemmProblem& problem) {
  if (problem.layout == Layout::masked) return RowSource::masked;
  switch (problem.group_form) {
    case GroupForm::sizes: return RowSource::sizes;
    case GroupForm::offsets: return RowSource::offsets;
    case GroupForm::ends: return RowSource::ends;
    case GroupForm::starts_sizes: return RowSource::starts_sizes;
    default: return RowSource::row_offsets;
  }
}

// One operand of one matrix whose rows the groups divide. Rows sorted by group are gathered from its base instead.
GroupOperand divided(const void* base, std::int64_t ld, Type type, bool gathered) {
  return {base, gathered ? 0 : ld * bytes_of(type), 0, ld};
}
// One operand with a matrix of its own for each group.
GroupOperand apart(const void* base, std::int64_t ld, std::int64_t stride, Type type) {
  return {base, 0, stride * bytes_of(type), ld};
}

GroupBuild group_build(const GemmProblem& problem, const ggm_grouped_gemm_tensors_t& tensors, const RowPointers& rows) {
  const bool gathered = problem.group_form == GroupForm::row_group;
  GroupBuild build;
  build.source = source_of(problem);
  build.index_type = problem.index_type;
  build.sizes = tensors.group_sizes;
  build.offsets = gathered ? rows.group_offsets : tensors.group_offsets;
  build.faults = tensors.faults;
  build.group_count = problem.groups;
  build.rows = problem.rows();
  build.rows_are_k = problem.layout == Layout::variable_k;
  build.m = problem.m;
  build.n = problem.n;
  build.k = problem.k;
  build.clear_unused = !problem.keep_unused_rows;
  const void* c = problem.beta != 0 ? tensors.c : nullptr;
  if (problem.layout == Layout::masked) {
    build.a = apart(tensors.a, problem.lda, problem.stride_a, problem.a_type);
  } else {
    build.a = divided(tensors.a, problem.lda, problem.a_type, gathered);
  }
  if (problem.layout == Layout::variable_k) {
    build.b = divided(tensors.b, problem.ldb, problem.b_type, gathered);
  } else {
    build.b = apart(tensors.b, problem.ldb, problem.stride_b, problem.b_type);
  }
  if (problem.layout == Layout::contiguous) {
    build.c = divided(c, problem.ldc, problem.c_type, gathered);
    build.d = divided(tensors.d, problem.ldd, problem.d_type, gathered);
  } else {
    build.c = apart(c, problem.ldc, problem.stride_c, problem.c_type);
    build.d = apart(tensors.d, problem.ldd, problem.stride_d, problem.d_type);
  }
  return build;
}

template <typename Problem>
GemmCall gemm_call(const Problem& problem) {
  GemmCall call;
  call.type = problem.a_type;
  call.b_order = problem.b_order;
  call.epilogue.use_alpha = problem.alpha != 1;
  call.epilogue.alpha = problem.alpha;
  call.epilogue.use_beta = problem.beta != 0;
  call.epilogue.beta = problem.beta;
  call.epilogue.c_type = problem.beta != 0 ? problem.c_type : Type::none;
  call.epilogue.d_type = problem.d_type;
  return call;
}

ggm_status_t zero_unused(const GemmProblem& problem, const GemmPlan& plan, const TablePointers& table, const RowPointers& rows,
                         void* d, void* workspace, const Launch& launch) {
  if (problem.layout == Layout::variable_k || problem.keep_unused_rows) return GGM_STATUS_SUCCESS;
  const bool masked = problem.layout == Layout::masked;
  const std::int64_t bytes = bytes_of(problem.d_type);
  ZeroRows zero{};
  zero.out = d;
  zero.rows = masked ? problem.groups * problem.m : problem.m;
  zero.row_bytes = problem.n * bytes;
  zero.ld_bytes = problem.ldd * bytes;
  zero.groups = table.groups;
  zero.group_count = problem.groups;
  zero.unused = masked ? ZeroRows::Unused::masked : ZeroRows::Unused::outside;
  if (masked) {
    zero.rows_per_group = problem.m;
    zero.group_bytes = problem.stride_d * bytes;
  } else if (problem.group_form == GroupForm::row_group) {
    zero.unused = ZeroRows::Unused::negative;
    zero.index = rows.assignment_row;
  } else if (problem.group_form == GroupForm::starts_sizes) {
    std::uint8_t* used = plan.row_used.at<std::uint8_t>(workspace);
    GGM_TRY(mark_used_rows(used, problem.m, table.groups, problem.groups, launch));
    zero.unused = ZeroRows::Unused::unmarked;
    zero.used = used;
  }
  return zero_rows(zero, launch);
}

}  // namespace

ggm_status_t run_grouped_gemm(const GemmProblem& problem, const GemmPlan& plan, const ggm_grouped_gemm_tensors_t& tensors,
                              void* workspace, const Launch& launch) {
  const TablePointers table = table_pointers(plan.table, workspace);
  const RowPointers rows = row_pointers(plan.rows, workspace);
  const bool by_row = problem.group_form == GroupForm::row_group;
  const auto route = [&](const TableRecipe* recipe, bool* table_made) {
    const RouteInputs inputs{tensors.row_group, nullptr, nullptr, tensors.faults};
    RowPointers sorted = rows;
    sorted.row_token = nullptr;  // nobody reads it
    return route_and_prepare(routing_of_rows(problem), plan.scratch, workspace, inputs, RowWeights{}, recipe, sorted,
                             table_made, launch);
  };
  bool table_made = false;
  const GroupBuild build = group_build(problem, tensors, rows);
  if (problem.groups > 0 && problem.m > 0 && problem.n > 0) {
    GemmCall call = gemm_call(problem);
    if (by_row) call.a_rows = rows.row_assignment;
    if (problem.layout == Layout::variable_k) {
      call.a_order = Order::inner_strided;
      call.b_rows = call.a_rows;
    } else {
      call.epilogue.d_rows = call.a_rows;
    }
    const Product product(plan.kernels, build, call, table);
    const TableRecipe recipe = product.recipe();
    if (by_row) GGM_TRY(route(product.has_recipe() ? &recipe : nullptr, &table_made));
    GGM_TRY(run_product(product, table_made, launch));
    if (!product.has_table()) return GGM_STATUS_SUCCESS;  // which a pass over unused rows would read
  } else {
    if (by_row) GGM_TRY(route(nullptr, &table_made));
    GGM_TRY(build_groups(build, kGemmKernels[plan.kernels.portable], table, launch));  // sizes are checked all the same
  }
  return zero_unused(problem, plan, table, rows, tensors.d, workspace, launch);
}

ggm_status_t run_grouped_gemm_array(const GemmArrayProblem& problem, const GemmPlan& plan,
                                    const ggm_grouped_gemm_array_tensors_t& tensors, void* workspace, const Launch& launch) {
  if (problem.groups == 0) return GGM_STATUS_SUCCESS;
  const TablePointers table = table_pointers(plan.table, workspace);
  ArrayBuild build;
  build.index_type = problem.index_type;
  build.m = tensors.m;
  build.n = tensors.n;
  build.k = tensors.k;
  build.lda = tensors.lda;
  build.ldb = tensors.ldb;
  build.ldc = tensors.ldc;
  build.ldd = tensors.ldd;
  build.a = tensors.a;
  build.b = tensors.b;
  build.c = problem.beta != 0 ? tensors.c : nullptr;
  build.d = tensors.d;
  build.faults = tensors.faults;
  build.group_count = problem.groups;
  build.max_m = problem.max_m;
  build.max_n = problem.max_n;
  build.max_k = problem.max_k;
  build.a_order = problem.a_order;
  build.b_order = problem.b_order;
  build.input_bytes = bytes_of(problem.a_type);
  build.c_bytes = bytes_of(problem.c_type);
  build.d_bytes = bytes_of(problem.d_type);
  build.min_alignment = problem.min_alignment;
  GemmCall call = gemm_call(problem);
  call.a_order = problem.a_order;
  return run_array_product(plan.kernels, build, call, table, launch);
}

}  // namespace ggm::cuda
