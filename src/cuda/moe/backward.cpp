// The gradients, each on its own, so that asking for them together or apart gives the same bits:
//   dy W_e          one product, whose rows are summed into dx and whose inner products with x are the routing gradient
//   (w dy) (x) x    one product over the rows of each expert: d_weight
//   w dy            summed over the rows of each expert: d_bias
#include "cuda/gemm/product.h"
#include "cuda/moe/moe.h"
#include "cuda/moe/steps.h"
#include "cuda/rows/rows.h"

namespace ggm::cuda {
namespace {

// What every part reads.
struct Backward {
  const MoeProblem& problem;
  const MoeBackwardPlan& plan;
  const ggm_moe_backward_tensors_t& tensors;
  void* workspace;
  const Launch& launch;
  RowPointers rows;
  RowOperand x, dy;
};

// d_routing_weights[t,j] = sum of the partial inner products of its row + <dy, bias>.
ggm_status_t finish_routing_weights(const Backward& b) {
  const MoeProblem& problem = b.problem;
  DotRows dot{};
  dot.result = b.tensors.d_routing_weights;
  dot.assignments = problem.routing.assignments;
  dot.top_k = problem.routing.top_k;
  dot.experts = problem.routing.experts;
  dot.assignment_row = b.rows.assignment_row;
  dot.group_offsets = b.rows.group_offsets;
  dot.dots = b.plan.dots.at<void>(b.workspace);
  dot.dot_blocks = ceil_div(problem.in_features, kDotColumns);
  dot.u_type = problem.dy_type;
  dot.v_type = problem.bias_type != Type::none ? problem.bias_type : problem.dy_type;
  if (problem.bias_type != Type::none && problem.out_features > 0) {
    dot.u = b.dy.base;
    dot.u_index = b.dy.grouped ? DotRows::Index::row : DotRows::Index::token;
    dot.u_ld = b.dy.ld;
    dot.v = b.tensors.bias;
    dot.v_index = DotRows::Index::expert;
    dot.v_ld = problem.bias_stride;
    dot.features = problem.out_features;
  }
  return dot_rows(dot, b.launch);
}

// Whether the rows of dy that were sorted for dx are those of the weight gradient as well: without weights to scale them by.
bool sorted_dy_serves_twice(const Backward& b) {
  return b.plan.sorted_dy.bytes > 0 && b.plan.scaled_dy.bytes > 0 && b.rows.row_weight == nullptr;
}

// Whether rows that no assignment has may hold anything: a kernel that gathers leaves them out; wgmma kernels read them as
// zeros.
bool keeps_unused(const Backward& b) { return b.plan.d_weight_kernels.wgmma < 0; }

RowOperand sorted_x(const Backward& b) {
  return {b.plan.sorted_x.at<void>(b.workspace), b.problem.in_features, b.problem.x_type, true};
}
ggm_status_t sort_x(const Backward& b) {
  return sort_rows(b.problem, b.rows, b.x, b.problem.in_features, nullptr, keeps_unused(b), sorted_x(b), b.launch);
}

RowResult dx_result(const Backward& b) {
  const MoeProblem& problem = b.problem;
  RowResult dx{.out = b.tensors.dx,
               .features = problem.in_features,
               .ld = problem.dx_ld,
               .type = problem.dx_type,
               .product_type = problem.backward_product_type,
               .grouped = problem.input_grouped,
               .add = problem.add_to_dx};
  combine_as(b.plan.combine, b.workspace, &dx);
  return dx;
}

// Whether there is a product dy @ W.
bool has_dx_product(const Backward& b) {
  return b.problem.wants(GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS) && b.problem.in_features > 0 &&
         b.problem.routing.max_rows > 0;
}

// The rows of dy as that product reads them.
RowOperand dx_operand(const Backward& b) {
  if (b.plan.sorted_dy.bytes == 0) return b.dy;
  return {b.plan.sorted_dy.at<void>(b.workspace), b.problem.out_features, b.problem.dy_type, true};
}

// The product for dx and d_routing_weights. The weights are read the other way round: the inner index runs over their
// out_features. What must be zero before it is cleared here.
ggm_status_t begin_dx(const Backward& b, const ColumnPart& part, GroupBuild* build, GemmCall* call) {
  const MoeProblem& problem = b.problem;
  *build = row_groups(problem, b.rows);
  build->n = problem.in_features;
  build->k = problem.out_features;
  const RowOperand dy = dx_operand(b);
  build->a = dy.operand();
  build->b = {b.tensors.weight, 0, problem.weight_stride * bytes_of(problem.weight_type), problem.weight_ld};
  *call = row_call(problem, b.rows);
  call->a_rows = dy.rows(b.rows);
  call->b_order = problem.weight_order == Order::inner_contiguous ? Order::inner_strided : Order::inner_contiguous;
  if (problem.wants(GGM_GRADIENT_ROUTING_WEIGHTS)) {
    const RowOperand x = b.plan.dots_of_sorted_x ? sorted_x(b) : b.x;
    call->epilogue.dots = b.plan.dots.at<void>(b.workspace);
    call->epilogue.dot_blocks = ceil_div(problem.in_features, kDotColumns);
    call->epilogue.dot_x = x.base;
    call->epilogue.dot_x_ld = x.ld;
    call->epilogue.dot_rows = x.rows(b.rows);
  }
  take_columns(part, build, call);
  if (problem.wants(GGM_GRADIENT_X))
    return begin_result(columns_of(dx_result(b), part), problem, b.rows, build, &call->epilogue, b.launch);
  call->epilogue.kind = EpilogueKind::none;
  return GGM_STATUS_SUCCESS;
}

// The routing arrays, and what of x and dy that product reads in sorted rows.
ggm_status_t make_rows_for_dx(const Backward& b, const Product& product, bool* table_made) {
  GGM_TRY(make_rows(b.problem, b.plan.scratch, b.tensors, b.workspace, b.rows, &product, table_made, b.launch));
  if (b.plan.sorted_dy.bytes > 0)
    GGM_TRY(sort_rows(b.problem, b.rows, b.dy, b.problem.out_features, nullptr, !sorted_dy_serves_twice(b), dx_operand(b),
                      b.launch));
  return b.plan.dots_of_sorted_x ? sort_x(b) : GGM_STATUS_SUCCESS;
}

ggm_status_t run_dx_columns(const Backward& b, const ColumnPart& part) {
  GroupBuild build;
  GemmCall call;
  GGM_TRY(begin_dx(b, part, &build, &call));
  const Product product(b.plan.dx_kernels, build, call, table_pointers(b.plan.dx_table, b.workspace));
  bool table_made = false;
  if (part.first == 0) GGM_TRY(make_rows_for_dx(b, product, &table_made));
  GGM_TRY(run_product(product, table_made, b.launch));
  if (!b.problem.wants(GGM_GRADIENT_X)) return GGM_STATUS_SUCCESS;
  return end_result(columns_of(dx_result(b), part), b.problem, b.rows, b.tensors.num_tokens, b.launch);
}

// The routing arrays, and dx with the partial sums of d_routing_weights.
ggm_status_t run_rows_and_dx(const Backward& b) {
  if (!has_dx_product(b)) {
    bool table_made = false;
    return make_rows(b.problem, b.plan.scratch, b.tensors, b.workspace, b.rows, nullptr, &table_made, b.launch);
  }
  const std::int64_t features = b.problem.in_features;
  const std::int64_t columns = b.plan.combine.columns_at_a_time(features);
  for (std::int64_t first = 0; first < features; first += columns)
    GGM_TRY(run_dx_columns(b, {first, min64(columns, features - first)}));
  return GGM_STATUS_SUCCESS;
}

// d_weight_e [N,K] = (w dy)^T x for NK weights, [K,N] = x^T (w dy) for KN: the inner index runs over the rows of the expert.
ggm_status_t run_d_weight(const Backward& b) {
  const MoeProblem& problem = b.problem;
  const bool add = problem.add_to_d_weight;
  if (problem.in_features == 0 || problem.out_features == 0) return GGM_STATUS_SUCCESS;
  if (add && problem.routing.max_rows == 0) return GGM_STATUS_SUCCESS;
  const bool dy_first = problem.weight_order == Order::inner_contiguous;
  const bool scaled_before = b.plan.scaled_dy.bytes > 0;
  RowOperand dy = b.dy, x = b.x;
  if (scaled_before) {
    dy = {b.plan.scaled_dy.at<void>(b.workspace), problem.out_features, problem.dy_type, true};
    if (!sorted_dy_serves_twice(b))
      GGM_TRY(sort_rows(problem, b.rows, b.dy, problem.out_features, b.rows.row_weight, keeps_unused(b), dy, b.launch));
  }
  if (b.plan.sorted_x.bytes > 0) {
    x = sorted_x(b);
    if (!b.plan.dots_of_sorted_x) GGM_TRY(sort_x(b));
  }
  const RowOperand& first = dy_first ? dy : x;
  const RowOperand& second = dy_first ? x : dy;
  const TablePointers table = table_pointers(b.plan.d_weight_table, b.workspace);

  GroupBuild build = row_groups(problem, b.rows);
  build.rows_are_k = true;
  build.m = dy_first ? problem.out_features : problem.in_features;
  build.n = dy_first ? problem.in_features : problem.out_features;
  build.a = first.operand();
  build.b = second.operand();
  build.d = {b.tensors.d_weight, 0, problem.d_weight_stride * bytes_of(problem.d_weight_type), problem.d_weight_ld};
  if (add) {
    build.c = build.d;
    build.skip_without = b.rows.row_token;  // an expert without rows stays as it is
  }

  GemmCall call = row_call(problem, b.rows);
  call.a_order = call.b_order = Order::inner_strided;
  call.a_rows = first.rows(b.rows);
  call.b_rows = second.rows(b.rows);
  if (b.rows.row_weight != nullptr && !scaled_before) {
    call.scaled = dy_first ? GemmCall::Scale::a : GemmCall::Scale::b;
    call.scale = static_cast<const float*>(b.rows.row_weight);
  }
  call.epilogue.d_type = problem.d_weight_type;
  if (add) {
    call.epilogue.use_beta = true;
    call.epilogue.beta = 1;
    call.epilogue.c_type = problem.d_weight_type;
  }
  return run_product(Product(b.plan.d_weight_kernels, build, call, table), false, b.launch);
}

ggm_status_t run_d_bias(const Backward& b) {
  const MoeProblem& problem = b.problem;
  SumRows sum{};
  sum.dy = b.dy.base;
  sum.out = b.tensors.d_bias;
  sum.dy_type = problem.dy_type;
  sum.out_type = problem.d_bias_type;
  sum.experts = problem.routing.experts;
  sum.features = problem.out_features;
  sum.dy_ld = problem.dy_ld;
  sum.out_stride = problem.d_bias_stride;
  sum.group_offsets = b.rows.group_offsets;
  sum.row_token = b.rows.row_token;
  sum.by_token = !b.dy.grouped;
  sum.weight = b.rows.row_weight;
  sum.add = problem.add_to_d_bias;
  return sum_rows(sum, b.launch);
}

}  // namespace

ggm_status_t run_moe_backward(const MoeProblem& problem, const MoeBackwardPlan& plan, const ggm_moe_backward_tensors_t& tensors,
                              void* workspace, const Launch& launch) {
  const Backward b{problem,
                   plan,
                   tensors,
                   workspace,
                   launch,
                   rows_of(plan, workspace),
                   {tensors.x, problem.x_ld, problem.x_type, problem.input_grouped},
                   {tensors.dy, problem.dy_ld, problem.dy_type, problem.output_grouped}};
  GGM_TRY(run_rows_and_dx(b));
  if (problem.wants(GGM_GRADIENT_ROUTING_WEIGHTS)) GGM_TRY(finish_routing_weights(b));
  if (problem.wants(GGM_GRADIENT_WEIGHT)) GGM_TRY(run_d_weight(b));
  if (problem.wants(GGM_GRADIENT_BIAS)) GGM_TRY(run_d_bias(b));
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
