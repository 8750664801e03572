// Running ggm_route on the input of its plain reference, and comparing.
#pragma once

#include "cases/case.h"
#include "support/reference_route.h"

namespace ggm_test::cases {

Routing route(const Handle& handle, const RouteInput& in, std::int32_t id_type = GGM_INDEX_INT32,
              const CallOptions& options = {});
// Runs, compares all three arrays and the faults with the reference, and returns the result.
Routing require_route(const Handle& handle, const RouteInput& in, std::int32_t id_type = GGM_INDEX_INT32,
                      const CallOptions& options = {});

template <typename Rule>
RouteInput route_input(std::int64_t tokens, std::int64_t top_k, std::int64_t experts, Rule ids) {
  RouteInput in;
  in.tokens = tokens;
  in.top_k = top_k;
  in.experts = experts;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t j = 0; j < top_k; ++j) in.ids.push_back(ids(t, j));
  return in;
}

// Rows of local expert e.
inline std::int64_t count_of(const Routing& routing, std::int64_t e) {
  return routing.group_offsets[static_cast<std::size_t>(e + 1)] - routing.group_offsets[static_cast<std::size_t>(e)];
}

}  // namespace ggm_test::cases
