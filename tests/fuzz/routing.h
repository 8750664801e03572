// Random routing: sizes, ids, maps and counts as a hostile program would give them, and routing arrays, whole or spoilt.
#pragma once

#include "conformance/routing_case.h"
#include "fuzz/fuzz.h"

namespace ggm_test::fuzz {

// tokens, top_k, experts, max_rows of a problem that has them.
template <typename P>
void draw_sizes(Draw& draw, P* p) {
  p->tokens = draw.chance(50) ? draw.any_of<Index>({0, 1, 2, 3, 5, 17, 33}) : draw.between(0, 60);
  p->top_k = draw.between(1, 5);
  if (draw.chance(5)) {
    p->top_k = draw.any_of<Index>({16, 64, GGM_MAX_TOP_K});
    p->tokens = std::min<Index>(p->tokens, 3);
  }
  p->experts = draw.chance(90) ? draw.between(1, 9) : draw.any_of<Index>({1, 64, 1025, 3000});
  p->max_rows = draw.chance(50) ? 0 : draw.between(0, p->tokens * p->top_k + 3);
}

// experts_total, first_expert, ids_ld, id_type of a problem that routes by itself.
template <typename P>
void draw_ids(Draw& draw, P* p) {
  p->first_expert = draw.chance(30) ? draw.between(0, 4) : 0;
  p->experts_total = draw.chance(50) ? 0 : p->first_expert + p->experts + draw.between(0, 4);
  p->ids_ld = draw.leading(p->top_k);
  p->id_type = draw.choice(GGM_INDEX_INT32, GGM_INDEX_INT64);
}

// Content of the device arrays of such sizes. id_type 0: ids of int32 that are only the source of routing arrays.
RouteInput draw_routing(Draw& draw, Index tokens, Index top_k, Index experts, Index experts_total, Index first_expert,
                        Index max_rows, std::int32_t id_type);

// Routing arrays of that input for a problem that takes them from the caller.
struct GivenRouting {
  Tensor *group_offsets = nullptr, *row_assignment = nullptr, *assignment_row = nullptr, *num_tokens = nullptr;
  Routing checked;  // what the operation must make of them, with its faults

  template <typename T>
  void set(T* tensors) const {
    tensors->group_offsets = data(group_offsets);
    tensors->row_assignment = data(row_assignment);
    tensors->assignment_row = data(assignment_row);
    tensors->num_tokens = data(num_tokens);
  }
  static const std::int32_t* data(const Tensor* tensor) {
    return tensor ? static_cast<const std::int32_t*>(tensor->data()) : nullptr;
  }
};
GivenRouting give_routing(Round& round, const RouteInput& in);

// 0, a power of two or a sign: products with small integers stay exact.
double draw_weight(Draw& draw);

}  // namespace ggm_test::fuzz
