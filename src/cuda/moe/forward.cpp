// y = combine of x W_e^T + bias: rows and groups, product, sum of each token's rows; where the combine asks for it, so many
// columns at a time.
#include "base/checked.h"
#include "cuda/gemm/product.h"
#include "cuda/moe/moe.h"
#include "cuda/moe/steps.h"
#include "cuda/rows/rows.h"

namespace ggm::cuda {
namespace {

// What every part reads.
struct Forward {
  const MoeProblem& problem;
  const MoeForwardPlan& plan;
  const ggm_moe_forward_tensors_t& tensors;
  void* workspace;
  const Launch& launch;
  RowPointers rows;
};

RowResult y_result(const Forward& f) {
  const MoeProblem& problem = f.problem;
  RowResult y{.out = f.tensors.y,
              .features = problem.out_features,
              .ld = problem.y_ld,
              .type = problem.y_type,
              .product_type = problem.forward_product_type,
              .grouped = problem.output_grouped,
              .add = problem.add_to_y};
  combine_as(f.plan.combine, f.workspace, &y);
  return y;
}

// The product of all columns, but for where its results go.
void describe_product(const Forward& f, GroupBuild* build, GemmCall* call) {
  const MoeProblem& problem = f.problem;
  const RowOperand x{f.tensors.x, problem.x_ld, problem.x_type, problem.input_grouped};
  *build = row_groups(problem, f.rows);
  build->n = problem.out_features;
  build->k = problem.in_features;
  build->a = x.operand();
  build->b = {f.tensors.weight, 0, problem.weight_stride * bytes_of(problem.weight_type), problem.weight_ld};
  *call = row_call(problem, f.rows);
  call->b_order = problem.weight_order;
  call->a_rows = x.rows(f.rows);
  if (problem.bias_type == Type::none) return;
  call->epilogue.bias = f.tensors.bias;
  call->epilogue.bias_stride = problem.bias_stride;
  call->epilogue.bias_type = problem.bias_type;
}

// The ids, where they are few and every assignment may have a row; behind a product of all columns nothing but the sum of each
// token's rows reads what a routing makes.
FewIds few_ids(const Forward& f) {
  const RouteProblem& routing = f.problem.routing;
  FewIds few;
  if (routing.id_type == IndexType::none || routing.assignments > FewIds::kMost || routing.max_rows < routing.assignments ||
      f.problem.output_grouped || f.plan.combine.ordered)
    return few;
  few.ids = f.tensors.ids;
  few.id_type = routing.id_type;
  few.expert_map = f.tensors.expert_map;
  few.num_tokens = f.tensors.num_tokens;
  few.faults = f.tensors.faults;
  few.ids_ld = routing.ids_ld;
  few.tokens = static_cast<std::int32_t>(routing.tokens);
  few.top_k = static_cast<std::int32_t>(routing.top_k);
  few.experts = static_cast<std::int32_t>(routing.experts);
  few.experts_total = static_cast<std::int32_t>(routing.experts_total);
  few.first_expert = static_cast<std::int32_t>(routing.first_expert);
  few.assignment_row = f.rows.assignment_row;
  few.row_weight = static_cast<float*>(f.rows.row_weight);  // 16-bit products add in float32
  few.weights = f.tensors.routing_weights;
  few.weight_type = f.problem.routing_weight_type;
  few.weights_ld = f.problem.routing_weights_ld;
  return few;
}

Relay relay_of(const Forward& f, const Product& product, std::int64_t columns) {
  const MoeProblem& problem = f.problem;
  const RelayPlan& plan = f.plan.relay;
  Relay relay;
  relay.from = static_cast<const char*>(f.tensors.x);
  relay.from_ld_bytes = problem.x_ld * bytes_of(problem.x_type);
  relay.row_bytes = static_cast<std::int32_t>(problem.in_features * bytes_of(problem.x_type));
  relay.ld_bytes = static_cast<std::int32_t>(plan.ld_bytes);
  relay.window = plan.window.at<char>(f.workspace);
  relay.rows = static_cast<std::int32_t>(plan.window_rows);
  relay.pieces = plan.pieces;
  relay.batch_rows = plan.batch_rows;
  relay.part_rows = static_cast<std::int32_t>(plan.part_rows);
  relay.left_tiles = static_cast<std::uint32_t>(ceil_div(columns, product.grid().left_tile));
  relay.row_count = f.rows.group_offsets + problem.routing.experts;
  relay.next_batch = plan.counts.at<unsigned long long>(f.workspace);
  relay.copied = reinterpret_cast<std::uint32_t*>(relay.next_batch + 1);
  relay.used = relay.copied + plan.chunks;
  return relay;
}

ggm_status_t run_columns(const Forward& f, const ColumnPart& part) {
  GroupBuild build;
  GemmCall call;
  describe_product(f, &build, &call);
  take_columns(part, &build, &call);
  build.ids = few_ids(f);
  const RowResult y = columns_of(y_result(f), part);
  GGM_TRY(begin_result(y, f.problem, f.rows, &build, &call.epilogue, f.launch));
  Product product(f.plan.kernels, build, call, table_pointers(f.plan.table, f.workspace));
  if (product.relays()) {
    product.relay = relay_of(f, product, part.count);
    GGM_TRY(clear(product.relay.next_batch, f.plan.relay.counts.bytes, f.launch));
  }
  bool table_made = false;
  if (part.first == 0 && !product.finds_rows())
    GGM_TRY(make_rows(f.problem, f.plan.scratch, f.tensors, f.workspace, f.rows, &product, &table_made, f.launch));
  GGM_TRY(run_product(product, table_made, f.launch));
  return end_result(y, f.problem, f.rows, f.tensors.num_tokens, f.launch);
}

}  // namespace

ggm_status_t run_moe_forward(const MoeProblem& problem, const MoeForwardPlan& plan, const ggm_moe_forward_tensors_t& tensors,
                             void* workspace, const Launch& launch) {
  const Forward f{problem, plan, tensors, workspace, launch, rows_of(plan, workspace)};
  if (problem.out_features == 0 || problem.routing.max_rows == 0) {  // without rows there are no tokens
    bool table_made = false;
    return make_rows(problem, plan.scratch, tensors, workspace, f.rows, nullptr, &table_made, launch);
  }
  const std::int64_t columns = plan.combine.columns_at_a_time(problem.out_features);
  for (std::int64_t first = 0; first < problem.out_features; first += columns)
    GGM_TRY(run_columns(f, {first, min64(columns, problem.out_features - first)}));
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::cuda
