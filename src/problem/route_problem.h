// The part of a problem that every routed operation shares: tokens, slots, experts, routing weights.
#pragma once

#include "problem/problem.h"

namespace ggm {

struct RoutingSizes {
  std::int64_t tokens, top_k, experts, max_rows;
  std::int32_t sm_limit;
};

// Sizes alone; id_type stays none, as where the caller gives the routing arrays.
ggm_status_t make_routing_sizes(const RoutingSizes& in, RouteProblem* out);

// Adds what ids need to a problem that make_routing_sizes made.
ggm_status_t resolve_ids(std::int64_t experts_total, std::int64_t first_expert, std::int64_t ids_ld, std::int32_t id_type,
                         RouteProblem* problem);

ggm_status_t resolve_routing_weights(std::int32_t type, std::int64_t ld, Type data_type, const RouteProblem& routing,
                                     Type* out_type, std::int64_t* out_ld);

}  // namespace ggm
