#include "cuda/moe/steps.h"

#include "cuda/rows/rows.h"

namespace ggm::cuda {
namespace {

// none when a rounding to it would change nothing.
Type rounding_type(Type product, Type input) { return product == accumulator_of(input) ? Type::none : product; }

}  // namespace

ggm_status_t sort_rows(const MoeProblem& problem, const RowPointers& rows, const RowOperand& from, std::int64_t features,
                       const void* weight, bool keep_unused, const RowOperand& to, const Launch& launch) {
  CopyRows copy{};
  copy.in = from.base;
  copy.out = const_cast<void*>(to.base);
  copy.in_type = copy.out_type = from.type;
  copy.tokens = problem.routing.tokens;
  copy.top_k = problem.routing.top_k;
  copy.rows = problem.routing.max_rows;
  copy.features = features;
  copy.in_ld = from.ld;
  copy.out_ld = to.ld;
  copy.assignment_row = rows.assignment_row;
  copy.row_assignment = rows.row_assignment;
  copy.weight = weight;
  copy.keep_unused = keep_unused;
  return copy_rows(copy, launch);
}

GroupBuild row_groups(const MoeProblem& problem, const RowPointers& rows) {
  GroupBuild build;
  build.source = RowSource::row_offsets;
  build.offsets = rows.group_offsets;
  build.group_count = problem.routing.experts;
  build.rows = problem.routing.max_rows;
  return build;
}

GemmCall row_call(const MoeProblem& problem, const RowPointers& rows) {
  GemmCall call;
  call.type = problem.x_type;
  call.row_valid = rows.row_token;
  return call;
}

void take_columns(const ColumnPart& part, GroupBuild* build, GemmCall* call) {
  build->n = part.count;
  const std::int64_t step = call->b_order == Order::inner_contiguous ? build->b.ld : 1;
  build->b.base = static_cast<const char*>(build->b.base) + part.first * step * bytes_of(call->type);
  Epilogue& e = call->epilogue;
  if (e.bias != nullptr) e.bias = static_cast<const char*>(e.bias) + part.first * bytes_of(e.bias_type);
  if (e.dots == nullptr) return;
  e.dots = static_cast<char*>(e.dots) + part.first / kDotColumns * bytes_of(accumulator_of(call->type));
  e.dot_x = static_cast<const char*>(e.dot_x) + part.first * bytes_of(call->type);
}

void combine_as(const CombinePlan& plan, void* workspace, RowResult* result) {
  result->in_turn = plan.in_turn();
  // What rows of some columns are stored in is the sum's place otherwise.
  result->products = (plan.part_columns > 0 ? plan.sums : plan.products).at<void>(workspace);
  result->sums = plan.sums.at<void>(workspace);
  result->turns = plan.turns.at<std::uint16_t>(workspace);
  result->turns_bytes = plan.turns.bytes;
}

RowResult columns_of(const RowResult& result, const ColumnPart& part) {
  RowResult columns = result;
  columns.out = static_cast<char*>(result.out) + part.first * bytes_of(result.type);
  columns.features = part.count;
  return columns;
}

ggm_status_t begin_result(const RowResult& result, const MoeProblem& problem, const RowPointers& rows, GroupBuild* build,
                          Epilogue* epilogue, const Launch& launch) {
  epilogue->product_type = rounding_type(result.product_type, problem.x_type);
  if (result.grouped) {
    epilogue->d_type = result.type;
    epilogue->row_weight = rows.row_weight;
    epilogue->keep_invalid = problem.keep_unused_rows;
    if (result.add) {
      epilogue->add_to = result.out;
      epilogue->add_to_ld = result.ld;
      epilogue->add_to_type = result.type;
    }
    build->d = {result.out, result.ld * bytes_of(result.type), 0, result.ld};
    return GGM_STATUS_SUCCESS;
  }
  if (!result.in_turn) {  // weights come with the sum
    epilogue->d_type = result.product_type;
    epilogue->drop_invalid = true;
    build->d = {result.products, result.features * bytes_of(result.product_type), 0, result.features};
    return GGM_STATUS_SUCCESS;
  }
  epilogue->kind = EpilogueKind::ordered;
  epilogue->row_weight = rows.row_weight;
  epilogue->row_token = rows.row_token;
  epilogue->row_turn = rows.row_turn;
  epilogue->sums = result.sums != nullptr ? result.sums : result.out;
  epilogue->sums_ld = result.sums != nullptr ? result.features : result.ld;
  epilogue->turns = result.turns;
  epilogue->turn_tiles = ceil_div(result.features, kTurnColumns);
  if (result.add) {
    epilogue->add_to = result.out;
    epilogue->add_to_ld = result.ld;
    epilogue->add_to_type = result.type;
  }
  return clear(result.turns, result.turns_bytes, launch);
}

ggm_status_t end_result(const RowResult& result, const MoeProblem& problem, const RowPointers& rows,
                        const std::int32_t* num_tokens, const Launch& launch) {
  const RouteProblem& routing = problem.routing;
  if (result.grouped) {
    if (problem.keep_unused_rows) return GGM_STATUS_SUCCESS;
    ZeroRows zero{};
    zero.out = result.out;
    zero.rows = routing.max_rows;
    zero.row_bytes = result.features * bytes_of(result.type);
    zero.ld_bytes = result.ld * bytes_of(result.type);
    zero.unused = ZeroRows::Unused::negative;
    zero.index = rows.row_token;
    return zero_rows(zero, launch);
  }
  if (result.in_turn) {
    FinishSums finish{};
    finish.sums = result.sums != nullptr ? result.sums : result.out;
    finish.out = result.out;
    finish.out_type = result.type;
    finish.tokens = routing.tokens;
    finish.top_k = routing.top_k;
    finish.features = result.features;
    finish.sums_ld = result.sums != nullptr ? result.features : result.ld;
    finish.out_ld = result.ld;
    finish.assignment_row = rows.assignment_row;
    finish.num_tokens = num_tokens;
    finish.keep_unused = problem.keep_unused_rows;
    finish.add = result.add;
    return finish_sums(finish, behind(launch));
  }
  CombineRows combine{};
  combine.in = result.products;
  combine.out = result.out;
  combine.in_type = result.product_type;
  combine.out_type = result.type;
  combine.tokens = routing.tokens;
  combine.top_k = routing.top_k;
  combine.features = result.features;
  combine.in_ld = result.features;
  combine.out_ld = result.ld;
  combine.assignment_row = rows.assignment_row;
  combine.weight = rows.row_weight;
  combine.num_tokens = num_tokens;
  combine.keep_unused = problem.keep_unused_rows;
  combine.add = result.add;
  return combine_rows(combine, behind(launch));
}

}  // namespace ggm::cuda
