// y = combine of x W_e^T + bias: rows and groups, product, sum of each token's rows.
#include "cuda/gemm/product.h"
#include "cuda/moe/moe.h"
#include "cuda/moe/steps.h"

namespace ggm::cuda {

ggm_status_t run_moe_forward(const MoeProblem& problem, const MoeForwardPlan& plan, const ggm_moe_forward_tensors_t& tensors,
                             void* workspace, const Launch& launch) {
  const RowPointers rows = row_pointers(plan.rows, workspace);
  bool table_made = false;
  if (problem.out_features == 0 || problem.routing.max_rows == 0)  // without rows there are no tokens
    return make_rows(problem, plan.scratch, tensors, workspace, rows, nullptr, &table_made, launch);

  const RowResult y{.out = tensors.y,
                    .features = problem.out_features,
                    .ld = problem.y_ld,
                    .type = problem.y_type,
                    .product_type = problem.forward_product_type,
                    .grouped = problem.output_grouped,
                    .add = problem.add_to_y,
                    .ordered = plan.ordered,
                    .products = plan.products.at<void>(workspace),
                    .sums = plan.sums.at<void>(workspace),
                    .turns = plan.turns.at<std::uint16_t>(workspace),
                    .turns_bytes = plan.turns.bytes};
  const RowOperand x{tensors.x, problem.x_ld, problem.x_type, problem.input_grouped};
  const TablePointers table = table_pointers(plan.table, workspace);

  GroupBuild build = row_groups(problem, rows);
  build.n = problem.out_features;
  build.k = problem.in_features;
  build.a = x.operand();
  build.b = {tensors.weight, 0, problem.weight_stride * bytes_of(problem.weight_type), problem.weight_ld};

  GemmCall call = row_call(problem, rows);
  call.b_order = problem.weight_order;
  call.a_rows = x.rows(rows);
  if (problem.bias_type != Type::none) {
    call.epilogue.bias = tensors.bias;
    call.epilogue.bias_stride = problem.bias_stride;
    call.epilogue.bias_type = problem.bias_type;
  }
  GGM_TRY(begin_result(y, problem, rows, &build, &call.epilogue, launch));
  const Product product(plan.kernels, build, call, table);
  GGM_TRY(make_rows(problem, plan.scratch, tensors, workspace, rows, &product, &table_made, launch));
  GGM_TRY(run_product(product, table_made, launch));
  return end_result(y, problem, rows, tensors.num_tokens, launch);
}

}  // namespace ggm::cuda
