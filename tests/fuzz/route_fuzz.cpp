#include "fuzz/routing.h"

namespace ggm_test::fuzz {
namespace {

ggm_route_problem_t plain_problem() {
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  p.tokens = 4;
  p.top_k = 2;
  p.experts = 3;
  p.id_type = GGM_INDEX_INT32;
  return p;
}

void route(Round& round) {
  Draw& draw = round.draw;
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  draw_sizes(draw, &p);
  draw_ids(draw, &p);
  p.sm_limit = draw.choice(0, 3);
  const bool accepted = round.accepted(op::route, &p, offsetof(ggm_route_problem_t, id_type));
  const ggm_route_problem_t fit = accepted ? p : plain_problem();
  const Index ids_ld = packed_if_zero(fit.ids_ld, fit.top_k);
  if (!round.affordable({span(1, 0, fit.tokens, ids_ld, fit.top_k), static_cast<double>(fit.experts)})) return;

  const RouteInput in =
      draw_routing(draw, fit.tokens, fit.top_k, fit.experts, fit.experts_total, fit.first_expert, fit.max_rows, fit.id_type);
  const Routing want = route_reference(in);
  const RoutingTensors inputs = routing_tensors(&round.scene, in, fit.id_type, ids_ld);
  const auto output = [&](const char* name, const std::vector<Index>& like) {
    return &round.scene.output(name, kInt32, {1, 1, static_cast<Index>(like.size())}, draw.between(0, 3));
  };
  Tensor* const offsets = output("group_offsets", want.group_offsets);
  Tensor* const rows = output("row_assignment", want.row_assignment);
  Tensor* const assignments = output("assignment_row", want.assignment_row);

  ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
  t.ids = inputs.ids_data();
  t.expert_map = inputs.expert_map_data();
  t.num_tokens = inputs.num_tokens_data();
  t.faults = round.faults();
  t.group_offsets = static_cast<std::int32_t*>(offsets->data());
  t.row_assignment = static_cast<std::int32_t*>(rows->data());
  t.assignment_row = static_cast<std::int32_t*>(assignments->data());
  const bool any = fit.tokens > 0;
  using Tensors = ggm_route_tensors_t;
  const bool ran = round.call(op::route, p, t,
                              {{true, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->group_offsets = nullptr; }},
                               {any, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->ids = nullptr; }},
                               {any, GGM_STATUS_ALIASING, [](Tensors* m) { m->row_assignment = m->assignment_row; }},
                               {any, GGM_STATUS_ALIASING, [](Tensors* m) { m->group_offsets = m->assignment_row; }},
                               {any, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->ids = static_cast<const char*>(m->ids) + 1; }},
                               {true, GGM_STATUS_MISALIGNED, [](Tensors* m) {
                                  m->group_offsets =
                                      reinterpret_cast<std::int32_t*>(reinterpret_cast<char*>(m->group_offsets) + 2);
                                }}});
  if (!ran) return;
  round.compare(*offsets, want.group_offsets);
  round.compare(*rows, want.row_assignment);
  round.compare(*assignments, want.assignment_row);
  round.compare_faults(want.faults);
}

}  // namespace
}  // namespace ggm_test::fuzz

GGM_FUZZ("ggm_route", ggm_test::fuzz::route)
