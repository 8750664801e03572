// From expert ids, or from a caller's untrusted routing arrays, to the arrays that every later step trusts.
// Called by the operations of src/cuda/moe and by the row_group form of the grouped products.
#pragma once

#include <cstdint>

#include "cuda/device/schedule/group_table.h"
#include "cuda/runtime/launch.h"
#include "plan/plan.h"

namespace ggm::cuda {

// RowArrays as pointers; a region that is not booked is nullptr.
struct RowPointers {
  std::int32_t* group_offsets = nullptr;
  std::int32_t* row_assignment = nullptr;
  std::int32_t* assignment_row = nullptr;
  std::int32_t* row_token = nullptr;
  void* row_weight = nullptr;  // accumulator type
  std::int32_t* row_turn = nullptr;
};
RowPointers row_pointers(const RowArrays& rows, void* workspace);

struct RouteInputs {
  const void* ids = nullptr;
  const std::int32_t* expert_map = nullptr;
  const std::int32_t* num_tokens = nullptr;
  std::uint32_t* faults = nullptr;
};

// Sorts the slots into rows: fills group_offsets, row_assignment and assignment_row of `out` as section 4b of ggm.h says.
ggm_status_t route_rows(const RouteProblem& problem, const RouteScratch& scratch, void* workspace, const RouteInputs& inputs,
                        const RowPointers& out, const Launch& launch);

// The routing weights, [tokens, top_k]; none without a type.
struct RowWeights {
  const void* data = nullptr;
  Type type = Type::none;
  std::int64_t ld = 0;
};

// route_rows and, where row_token is booked, prepare_rows, in as few launches as can be. A product over the rows may hand in
// the recipe of its table: then *table_made says whether that was made by the way, its counter zeroed and descriptors of groups
// without rows left out.
ggm_status_t route_and_prepare(const RouteProblem& problem, const RouteScratch& scratch, void* workspace,
                               const RouteInputs& inputs, const RowWeights& weights, const TableRecipe* table,
                               const RowPointers& out, bool* table_made, const Launch& launch);

// A caller's arrays. All may be nullptr when there is nothing in them.
struct GivenRows {
  const std::int32_t* group_offsets = nullptr;
  const std::int32_t* row_assignment = nullptr;
  const std::int32_t* assignment_row = nullptr;
  const std::int32_t* num_tokens = nullptr;
  std::uint32_t* faults = nullptr;
};

// Copies what is valid of them into `out`, as section 5 of ggm.h says: offsets monotone, -1 wherever the two maps disagree.
ggm_status_t check_rows(const RouteProblem& problem, const GivenRows& given, const RowPointers& out, const Launch& launch);

// Fills row_token, and row_weight and row_turn where they are booked, from the three arrays.
ggm_status_t prepare_rows(const RouteProblem& problem, const RowPointers& rows, const RowWeights& weights,
                          const Launch& launch);

// Loads every kernel of this folder.
ggm_status_t load_routing_kernels();

}  // namespace ggm::cuda
