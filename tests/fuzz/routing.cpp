#include "fuzz/routing.h"

namespace ggm_test::fuzz {

RouteInput draw_routing(Draw& draw, Index tokens, Index top_k, Index experts, Index experts_total, Index first_expert,
                        Index max_rows, std::int32_t id_type) {
  RouteInput in;
  in.tokens = tokens;
  in.top_k = top_k;
  in.experts = experts;
  in.experts_total = experts_total;
  in.first_expert = first_expert;
  in.max_rows = max_rows;
  const Index total = experts_total ? experts_total : first_expert + experts;
  const bool wide = id_type == GGM_INDEX_INT64;
  for (Index i = 0; i < tokens * top_k; ++i) {
    const int kind = draw.choice(1, 100);
    in.ids.push_back(kind <= 75 ? draw.between(0, total - 1) : kind <= 88 ? -1 : draw.hostile_element(wide));
  }
  if (id_type && first_expert == 0 && total <= 100000 && draw.chance(40))
    for (Index e = 0; e < total; ++e)
      in.expert_map.push_back(draw.chance(10) ? draw.hostile_element(false) : draw.between(-1, experts - 1));
  in.has_num_tokens = draw.chance(50);
  if (in.has_num_tokens) in.num_tokens = draw.chance(60) ? draw.between(0, tokens) : draw.hostile_element(false);
  return in;
}

GivenRouting give_routing(Round& round, const RouteInput& in) {
  GivenRouting out;
  Routing given = route_reference(in);
  if (round.draw.chance(50)) spoil(&given, static_cast<std::uint32_t>(round.draw.bits()));
  out.checked = check_routing(given, in.tokens, in.top_k, in.row_bound(), in.has_num_tokens, in.num_tokens);
  const auto array = [&](const char* name, const std::vector<Index>& content) {
    const Index misalign = round.draw.between(0, 3);
    return &round.scene.input(name, kInt32, {1, 1, static_cast<Index>(content.size())}, misalign).assign(content);
  };
  out.group_offsets = array("group_offsets", given.group_offsets);
  out.row_assignment = array("row_assignment", given.row_assignment);
  out.assignment_row = array("assignment_row", given.assignment_row);
  out.num_tokens = routing_tensors(&round.scene, in, 0, 0, false).num_tokens;
  return out;
}

double draw_weight(Draw& draw) { return draw.any_of<double>({0, 1, 1, -1, 2, 0.5}); }

}  // namespace ggm_test::fuzz
