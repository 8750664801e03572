// Plain references of ggm_route and of the check of routing arrays that a caller gives (sections 4b and 5 of ggm.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ggm/ggm.h"

namespace ggm_test {

using Faults = std::array<std::uint32_t, GGM_FAULT_WORDS>;

struct Routing {
  std::vector<std::int64_t> group_offsets, row_assignment, assignment_row;
  Faults faults{};

  std::int64_t rows() const { return group_offsets.back(); }
};

struct RouteInput {
  std::int64_t tokens = 0, top_k = 1, experts = 1, experts_total = 0, first_expert = 0, max_rows = 0;
  std::vector<std::int64_t> ids;         // packed [tokens, top_k]
  std::vector<std::int64_t> expert_map;  // empty: none
  bool has_num_tokens = false;
  std::int64_t num_tokens = 0;

  std::int64_t row_bound() const { return max_rows == 0 || max_rows > tokens * top_k ? tokens * top_k : max_rows; }
};

Routing route_reference(const RouteInput& in);

// What the operations make of untrusted arrays: offsets clamped and monotone, rows without a valid assignment at -1 in both
// maps. faults counts what they count.
Routing check_routing(const Routing& given, std::int64_t tokens, std::int64_t top_k, std::int64_t max_rows, bool has_num_tokens,
                      std::int64_t num_tokens);

// num_tokens clamped to 0..tokens; adds to GGM_FAULT_SIZE_CLAMPED when it had to be.
std::int64_t clamp_tokens(std::int64_t tokens, bool has_num_tokens, std::int64_t num_tokens, Faults* faults);

// Words of b added to a.
Faults operator+(const Faults& a, const Faults& b);

}  // namespace ggm_test
