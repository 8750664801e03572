// y = combine of x W_e^T + bias.
#include "host/backend.h"
#include "host/moe.h"

namespace ggm::host {
namespace {

template <typename T>
void run_forward(const Engine& engine, const MoeProblem& problem, const MoeForwardPlan& plan,
                 const ggm_moe_forward_tensors_t& tensors, void* workspace) {
  const Rows rows = make_moe_rows(engine, problem, plan.rows, plan.scratch, tensors, workspace);
  RowProduct p = row_product(problem, plan.multiprocessors, plan.host_scratch.at<void>(workspace));
  p.n = problem.out_features;
  p.k = problem.in_features;
  p.a = tensors.x;
  p.a_type = problem.x_type;
  p.a_ld = problem.x_ld;
  p.a_grouped = problem.input_grouped;
  p.b = tensors.weight;
  p.b_order = problem.weight_order;
  p.bias = tensors.bias;
  p.bias_type = problem.bias_type;
  p.bias_stride = problem.bias_stride;
  const CombinedOutput y{.data = tensors.y,
                         .type = problem.y_type,
                         .product_type = problem.forward_product_type,
                         .ld = problem.y_ld,
                         .grouped = problem.output_grouped,
                         .ordered = plan.combine.ordered,
                         .add = problem.add_to_y,
                         .keep_unused = problem.keep_unused_rows,
                         .products = plan.combine.products.at<void>(workspace),
                         .sums = plan.combine.sums.at<void>(workspace)};
  set_output(y, &p);
  run_row_product<T>(engine, rows, p);
  combine_products<T>(engine, rows, y, p);
}

}  // namespace

ggm_status_t HostBackend::moe_forward(const MoeProblem& problem, const MoeForwardPlan& plan,
                                      const ggm_moe_forward_tensors_t& tensors, void* workspace, ggm_stream_t) {
  if (problem.x_type == Type::float64)
    run_forward<double>(engine_, problem, plan, tensors, workspace);
  else
    run_forward<float>(engine_, problem, plan, tensors, workspace);
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::host
