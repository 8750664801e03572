// The tensors that every routed operation shares.
#pragma once

#include "api/tensors.h"
#include "ggm/ggm.h"
#include "problem/problem.h"

namespace ggm::api {

// num_tokens and faults, of any operation that has both.
template <typename Tensors>
ggm_status_t add_counts(const Tensors& t, TensorList* list) {
  GGM_TRY(list->optional("num_tokens", t.num_tokens, vector(1, 4), Access::read));
  return list->optional("faults", t.faults, vector(GGM_FAULT_WORDS, 4), Access::write);
}

// The caller's routing arrays, as inputs.
template <typename Tensors>
ggm_status_t add_given_routing(const RouteProblem& routing, const Tensors& t, TensorList* list) {
  GGM_TRY(list->required("group_offsets", t.group_offsets, vector(routing.experts + 1, 4), Access::read));
  GGM_TRY(list->required("row_assignment", t.row_assignment, vector(routing.max_rows, 4), Access::read));
  return list->required("assignment_row", t.assignment_row, vector(routing.assignments, 4), Access::read);
}

inline Cover ids_cover(const RouteProblem& routing) {
  return {1, 0, routing.tokens, routing.ids_ld, routing.top_k, bytes_of(routing.id_type)};
}

inline ggm_status_t add_expert_map(const RouteProblem& routing, const std::int32_t* map, TensorList* list) {
  if (map != nullptr && routing.first_expert != 0)
    return fail(GGM_STATUS_INVALID_VALUE,
                "first_expert = %lld; must be 0 with an expert_map, which names the local experts itself",
                static_cast<long long>(routing.first_expert));
  return list->optional("expert_map", map, vector(routing.experts_total, 4), Access::read);
}

}  // namespace ggm::api
