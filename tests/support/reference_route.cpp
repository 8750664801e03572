#include "support/reference_route.h"

#include <algorithm>

namespace ggm_test {

Faults operator+(const Faults& a, const Faults& b) {
  Faults sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

std::int64_t clamp_tokens(std::int64_t tokens, bool has_num_tokens, std::int64_t num_tokens, Faults* faults) {
  if (!has_num_tokens) return tokens;
  const std::int64_t clamped = std::clamp<std::int64_t>(num_tokens, 0, tokens);
  if (clamped != num_tokens) ++(*faults)[GGM_FAULT_SIZE_CLAMPED];
  return clamped;
}

Routing route_reference(const RouteInput& in) {
  Routing out;
  const std::int64_t total = in.experts_total ? in.experts_total : in.first_expert + in.experts;
  const std::int64_t bound = in.row_bound();
  const std::int64_t tokens = clamp_tokens(in.tokens, in.has_num_tokens, in.num_tokens, &out.faults);

  std::vector<std::int64_t> expert(static_cast<std::size_t>(in.tokens * in.top_k), -1);
  for (std::int64_t a = 0; a < tokens * in.top_k; ++a) {
    const std::int64_t id = in.ids[static_cast<std::size_t>(a)];
    if (id == -1) continue;
    if (id < -1 || id >= total) {
      ++out.faults[GGM_FAULT_BAD_ID];
    } else if (!in.expert_map.empty()) {
      const std::int64_t local = in.expert_map[static_cast<std::size_t>(id)];
      if (local >= 0 && local < in.experts) {
        expert[static_cast<std::size_t>(a)] = local;
      } else if (local != -1) {
        ++out.faults[GGM_FAULT_BAD_ID];
      }
    } else if (id >= in.first_expert && id < in.first_expert + in.experts) {
      expert[static_cast<std::size_t>(a)] = id - in.first_expert;
    }
  }

  out.row_assignment.assign(static_cast<std::size_t>(bound), -1);
  out.assignment_row.assign(expert.size(), -1);
  std::vector<std::vector<std::int64_t>> of_expert(static_cast<std::size_t>(in.experts));
  for (std::size_t a = 0; a < expert.size(); ++a)
    if (expert[a] >= 0) of_expert[static_cast<std::size_t>(expert[a])].push_back(static_cast<std::int64_t>(a));
  std::int64_t row = 0;
  for (const std::vector<std::int64_t>& list : of_expert) {
    out.group_offsets.push_back(row);
    for (std::int64_t a : list) {
      if (row == bound) {
        ++out.faults[GGM_FAULT_ROWS_DROPPED];
        continue;
      }
      out.row_assignment[static_cast<std::size_t>(row)] = a;
      out.assignment_row[static_cast<std::size_t>(a)] = row++;
    }
  }
  out.group_offsets.push_back(row);
  return out;
}

Routing check_routing(const Routing& given, std::int64_t tokens, std::int64_t top_k, std::int64_t max_rows, bool has_num_tokens,
                      std::int64_t num_tokens) {
  Routing out;
  const std::int64_t real = clamp_tokens(tokens, has_num_tokens, num_tokens, &out.faults);
  std::int64_t previous = 0;
  for (std::int64_t offset : given.group_offsets) {
    const std::int64_t fixed = std::max(previous, std::clamp<std::int64_t>(offset, 0, max_rows));
    if (fixed != offset) ++out.faults[GGM_FAULT_BAD_ROUTING];
    out.group_offsets.push_back(fixed);
    previous = fixed;
  }
  out.row_assignment.assign(static_cast<std::size_t>(max_rows), -1);
  out.assignment_row.assign(static_cast<std::size_t>(tokens * top_k), -1);
  for (std::int64_t r = out.group_offsets.front(); r < out.group_offsets.back(); ++r) {
    const std::int64_t a = given.row_assignment[static_cast<std::size_t>(r)];
    if (a >= 0 && a < real * top_k && given.assignment_row[static_cast<std::size_t>(a)] == r) {
      out.row_assignment[static_cast<std::size_t>(r)] = a;
      out.assignment_row[static_cast<std::size_t>(a)] = r;
    } else {
      ++out.faults[GGM_FAULT_BAD_ROUTING];
    }
  }
  return out;
}

}  // namespace ggm_test
