// Steps that forward and backward share.
#pragma once

#include "base/status.h"
#include "cuda/device/gemm_call.h"
#include "cuda/gemm/product.h"
#include "cuda/routing/routing.h"

namespace ggm::cuda {

// Where rows of a tensor lie: addressed by token (gathered), or sorted already.
struct RowOperand {
  const void* base;
  std::int64_t ld;
  Type type;
  bool grouped;

  GroupOperand operand() const { return {base, grouped ? ld * bytes_of(type) : 0, 0, ld}; }
  // Row indices of the gather; sorted rows need none.
  const std::int32_t* rows(const RowPointers& pointers) const { return grouped ? nullptr : pointers.row_token; }
};

// Copies rows by tokens into sorted order, times their weights when there are any, and rounded. Rows of `to` that no assignment
// has become zeros, or with keep_unused stay as they are.
ggm_status_t sort_rows(const MoeProblem& problem, const RowPointers& rows, const RowOperand& from, std::int64_t features,
                       const void* weight, bool keep_unused, const RowOperand& to, const Launch& launch);

// The arrays of a call's rows. Turns are made where rows add in turn.
template <typename Plan>
RowPointers rows_of(const Plan& plan, void* workspace) {
  RowPointers rows = row_pointers(plan.rows, workspace);
  if (!plan.combine.in_turn()) rows.row_turn = nullptr;
  return rows;
}

// One result over rows: y in the forward, dx in the backward; or some of its columns.
struct RowResult {
  void* out;
  std::int64_t features, ld;
  Type type, product_type;
  bool grouped, add;
  // From the plan: combine_as().
  bool in_turn = false;
  void* products = nullptr;
  void* sums = nullptr;
  std::uint16_t* turns = nullptr;
  std::int64_t turns_bytes = 0;
};
void combine_as(const CombinePlan& plan, void* workspace, RowResult* result);

// The routing arrays: made from the ids, or a caller's arrays checked; and the arrays of each row. `first` is the product that
// follows, or nullptr; *table_made says whether its table was made by the way.
template <typename Tensors>
ggm_status_t make_rows(const MoeProblem& problem, const RouteScratch& scratch, const Tensors& tensors, void* workspace,
                       const RowPointers& rows, const Product* first, bool* table_made, const Launch& launch) {
  *table_made = false;
  const RowWeights weights{tensors.routing_weights, problem.routing_weight_type, problem.routing_weights_ld};
  if (problem.routing.id_type == IndexType::none) {
    const GivenRows given{tensors.group_offsets, tensors.row_assignment, tensors.assignment_row, tensors.num_tokens,
                          tensors.faults};
    GGM_TRY(check_rows(problem.routing, given, rows, launch));
    return prepare_rows(problem.routing, rows, weights, launch);
  }
  const RouteInputs inputs{tensors.ids, tensors.expert_map, tensors.num_tokens, tensors.faults};
  TableRecipe recipe;
  const bool has_recipe = first != nullptr && first->has_recipe();
  if (has_recipe) recipe = first->recipe();
  return route_and_prepare(problem.routing, scratch, workspace, inputs, weights, has_recipe ? &recipe : nullptr, rows,
                           table_made, launch);
}

// Columns of a product and its result that are made at a time.
struct ColumnPart {
  std::int64_t first, count;
};
// What of the product, or of the result, has these columns, of one that has all.
void take_columns(const ColumnPart& part, GroupBuild* build, GemmCall* call);
RowResult columns_of(const RowResult& result, const ColumnPart& part);

// A product whose rows are the sorted rows; the operands and the inner size are the caller's to fill.
GroupBuild row_groups(const MoeProblem& problem, const RowPointers& rows);
GemmCall row_call(const MoeProblem& problem, const RowPointers& rows);

// The part of the epilogue that stores or adds the product of each row, and what must be zero before the launch.
ggm_status_t begin_result(const RowResult& result, const MoeProblem& problem, const RowPointers& rows, GroupBuild* build,
                          Epilogue* epilogue, const Launch& launch);

// What follows the product: the sum of each token's rows, and zeros where there are none.
ggm_status_t end_result(const RowResult& result, const MoeProblem& problem, const RowPointers& rows,
                        const std::int32_t* num_tokens, const Launch& launch);

}  // namespace ggm::cuda
