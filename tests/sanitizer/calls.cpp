#include "calls.h"

#include <numeric>

namespace ggm_test {
namespace {

std::vector<std::int64_t> make_ids(std::int64_t count, std::int64_t experts) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    ids[static_cast<std::size_t>(i)] = i % 13 == 5 ? -1 : (i * i + i / 3) % (experts - 1);
  ids[0] = -7;
  return ids;
}

}  // namespace

Routing make_routing(DeviceMemory& memory, std::int64_t tokens, std::int64_t top_k, std::int64_t experts, std::int32_t id_type,
                     bool with_map) {
  Routing r{tokens, top_k, experts, id_type};
  r.ids = memory.integers(id_type, make_ids(r.rows(), experts));
  r.num_tokens = memory.put(std::vector<std::int32_t>{static_cast<std::int32_t>(tokens - 1)});
  r.faults = memory.put(std::vector<std::uint32_t>(GGM_FAULT_WORDS, 0));
  r.offsets = static_cast<std::int32_t*>(memory.fresh(static_cast<std::size_t>(experts + 1) * 4));
  r.row_assignment = static_cast<std::int32_t*>(memory.fresh(static_cast<std::size_t>(r.rows()) * 4));
  r.assignment_row = static_cast<std::int32_t*>(memory.fresh(static_cast<std::size_t>(r.rows()) * 4));
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = top_k;
  p.experts = experts;
  p.id_type = id_type;
  ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
  t.ids = r.ids;
  t.num_tokens = r.num_tokens;
  t.faults = r.faults;
  t.group_offsets = r.offsets;
  t.row_assignment = r.row_assignment;
  t.assignment_row = r.assignment_row;
  if (with_map) {
    std::vector<std::int32_t> map(static_cast<std::size_t>(experts));
    std::iota(map.rbegin(), map.rend(), 0);
    map[0] = -1;
    t.expert_map = memory.put(map);
  }
  run("route", ggm_route_workspace_size, ggm_route, p, t);
  return r;
}

}  // namespace ggm_test
