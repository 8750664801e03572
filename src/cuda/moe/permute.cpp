// permute, unpermute, unpermute_backward: check the caller's arrays, then one pass over the rows.
#include "base/status.h"
#include "cuda/moe/moe.h"
#include "cuda/routing/routing.h"
#include "cuda/rows/rows.h"

namespace ggm::cuda {
namespace {

template <typename Tensors>
ggm_status_t check_and_prepare(const PermuteProblem& problem, const Tensors& tensors, const RowPointers& rows,
                               const Launch& launch) {
  const GivenRows given{tensors.group_offsets, tensors.row_assignment, tensors.assignment_row, tensors.num_tokens,
                        tensors.faults};
  GGM_TRY(check_rows(problem.routing, given, rows, launch));
  if (rows.row_weight == nullptr) return GGM_STATUS_SUCCESS;  // nothing here reads row_token
  return prepare_rows(problem.routing, rows, {tensors.routing_weights, problem.routing_weight_type, problem.routing_weights_ld},
                      launch);
}

// Rows from tokens: permute without weights, d_rows with them.
CopyRows rows_from_tokens(const PermuteProblem& problem, const RowPointers& rows, const void* in, void* out) {
  CopyRows copy{};
  copy.in = in;
  copy.out = out;
  copy.in_type = problem.token_type;
  copy.out_type = problem.row_type;
  copy.tokens = problem.routing.tokens;
  copy.top_k = problem.routing.top_k;
  copy.rows = problem.routing.max_rows;
  copy.features = problem.features;
  copy.in_ld = problem.token_ld;
  copy.out_ld = problem.row_ld;
  copy.assignment_row = rows.assignment_row;
  copy.row_assignment = rows.row_assignment;
  copy.weight = rows.row_weight;
  copy.keep_unused = problem.keep_unused_rows;
  return copy;
}

}  // namespace

ggm_status_t run_permute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                         void* workspace, const Launch& launch) {
  const RowPointers rows = row_pointers(plan.rows, workspace);
  GGM_TRY(check_and_prepare(problem, tensors, rows, launch));
  return copy_rows(rows_from_tokens(problem, rows, tensors.input, tensors.output), launch);
}

ggm_status_t run_unpermute(const PermuteProblem& problem, const PermutePlan& plan, const ggm_permute_tensors_t& tensors,
                           void* workspace, const Launch& launch) {
  const RowPointers rows = row_pointers(plan.rows, workspace);
  GGM_TRY(check_and_prepare(problem, tensors, rows, launch));
  CombineRows combine{};
  combine.in = tensors.input;
  combine.out = tensors.output;
  combine.in_type = problem.row_type;
  combine.out_type = problem.token_type;
  combine.tokens = problem.routing.tokens;
  combine.top_k = problem.routing.top_k;
  combine.features = problem.features;
  combine.in_ld = problem.row_ld;
  combine.out_ld = problem.token_ld;
  combine.assignment_row = rows.assignment_row;
  combine.weight = rows.row_weight;
  combine.num_tokens = tensors.num_tokens;
  combine.keep_unused = problem.keep_unused_rows;
  combine.add = problem.add_to_output;
  return combine_rows(combine, launch);
}

ggm_status_t run_unpermute_backward(const PermuteProblem& problem, const PermutePlan& plan,
                                    const ggm_unpermute_backward_tensors_t& tensors, void* workspace, const Launch& launch) {
  const RowPointers rows = row_pointers(plan.rows, workspace);
  GGM_TRY(check_and_prepare(problem, tensors, rows, launch));
  if (tensors.d_rows != nullptr) GGM_TRY(copy_rows(rows_from_tokens(problem, rows, tensors.dy, tensors.d_rows), launch));
  if (tensors.d_routing_weights == nullptr) return GGM_STATUS_SUCCESS;
  DotRows dot{};
  dot.result = tensors.d_routing_weights;
  dot.assignments = problem.routing.assignments;
  dot.top_k = problem.routing.top_k;
  dot.experts = problem.routing.experts;
  dot.assignment_row = rows.assignment_row;
  dot.u = problem.features > 0 ? tensors.dy : nullptr;
  dot.v = tensors.rows;
  dot.u_type = problem.token_type;
  dot.v_type = problem.row_type;
  dot.u_index = DotRows::Index::token;
  dot.v_index = DotRows::Index::row;
  dot.features = problem.features;
  dot.u_ld = problem.token_ld;
  dot.v_ld = problem.row_ld;
  return dot_rows(dot, launch);
}

}  // namespace ggm::cuda
