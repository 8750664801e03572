// From expert ids, or from a caller's untrusted routing arrays, to the arrays that every later step trusts.
// Called by the operations of this folder and by the row_group form of the grouped products.
#pragma once

#include "host/engine.h"
#include "host/faults.h"
#include "plan/plan.h"

namespace ggm::host {

// RowArrays as pointers; row_weight is of the accumulator type, nullptr without routing weights.
struct Rows {
  std::int32_t* group_offsets = nullptr;
  std::int32_t* row_assignment = nullptr;
  std::int32_t* assignment_row = nullptr;
  std::int32_t* row_token = nullptr;
  void* row_weight = nullptr;
  std::int64_t real_tokens = 0;  // num_tokens, clamped

  Rows() = default;
  Rows(const RowArrays& arrays, void* workspace)
      : group_offsets(arrays.group_offsets.at<std::int32_t>(workspace)),
        row_assignment(arrays.row_assignment.at<std::int32_t>(workspace)),
        assignment_row(arrays.assignment_row.at<std::int32_t>(workspace)),
        row_token(arrays.row_token.at<std::int32_t>(workspace)),
        row_weight(arrays.row_weight.at<void>(workspace)) {}

  template <typename T>
  const T* weights() const {
    return static_cast<const T*>(row_weight);
  }
};

std::int64_t clamp_tokens(const std::int32_t* num_tokens, std::int64_t tokens, Faults* faults);

struct RouteInputs {
  const void* ids = nullptr;
  const std::int32_t* expert_map = nullptr;
};

// Sorts the slots of rows->real_tokens tokens by (local expert, assignment) into rows, by counting: fills group_offsets,
// row_assignment and assignment_row. counts: [experts].
void route_rows(const RouteProblem& problem, const RouteInputs& inputs, std::int32_t* counts, const Rows& rows, Faults* faults);

struct GivenRows {
  const std::int32_t* group_offsets = nullptr;
  const std::int32_t* row_assignment = nullptr;
  const std::int32_t* assignment_row = nullptr;
};

// Copies what is valid of a caller's arrays: offsets monotone, -1 wherever the two maps disagree.
void check_rows(const RouteProblem& problem, const GivenRows& given, const Rows& rows, Faults* faults);

struct RoutingWeights {
  const void* values = nullptr;
  Type type = Type::none;
  std::int64_t ld = 0;
};

// Fills row_token, and row_weight when it is booked, from the three arrays.
void prepare_rows(const Engine& engine, const RouteProblem& problem, const RoutingWeights& weights, const Rows& rows);

}  // namespace ggm::host
