#include <cmath>

#include "fuzz/routing.h"
#include "support/reference_moe.h"

namespace ggm_test::fuzz {
namespace {

enum class Kind { permute, unpermute, unpermute_backward };

ggm_permute_problem_t draw_problem(Draw& draw, Kind kind) {
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  draw_sizes(draw, &p);
  p.features = draw.extent();
  p.token_ld = draw.leading(p.features);
  p.row_ld = draw.leading(p.features);
  p.token_type = draw.float_type();
  const bool wide = p.token_type == GGM_TYPE_FLOAT64;
  p.row_type = wide ? draw.any_of<std::int32_t>({0, GGM_TYPE_FLOAT64}) : draw.choice(0, GGM_TYPE_FLOAT16);
  if (kind != Kind::permute && draw.chance(70)) {
    p.routing_weight_type = wide ? GGM_TYPE_FLOAT64 : draw.choice(GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT16);
    p.routing_weights_ld = draw.leading(p.top_k);
  }
  p.sm_limit = draw.choice(0, 2);
  if (draw.chance(30)) p.flags |= GGM_FLAG_KEEP_UNUSED_ROWS;
  if (kind == Kind::unpermute && draw.chance(30)) p.flags |= GGM_FLAG_ADD_TO_Y;
  return p;
}

ggm_permute_problem_t plain_problem() {
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.tokens = 4;
  p.top_k = 2;
  p.experts = 3;
  p.features = 5;
  p.token_type = GGM_TYPE_FLOAT32;
  return p;
}

// Routing, both tensors and the weights of a problem, and what the references read of them.
struct Operands {
  GivenRouting routing;
  Tensor *tokens = nullptr, *rows = nullptr, *weights = nullptr;
  PermuteInput in;
  bool any_work = true;

  // `in` holds what is written as well: the old content of the output.
  Operands(Round& round, const ggm_permute_problem_t& p, Kind kind) {
    const RouteInput source = draw_routing(round.draw, p.tokens, p.top_k, p.experts, 0, 0, p.max_rows, 0);
    routing = give_routing(round, source);
    const Index rows_bound = source.row_bound();
    in.problem = p;
    in.routing = routing.checked;
    in.num_tokens = real_tokens(source);
    any_work = p.features > 0 && p.tokens > 0;
    const auto make = [&](const char* name, std::int32_t type, Index count, Index ld, bool written, auto used) {
      const Shape shape{1, count, p.features, ld};
      Tensor& tensor = written ? round.scene.output(name, type, shape, round.draw.between(0, 3))
                               : round.scene.input(name, type, shape, round.draw.between(0, 3));
      return &tensor.fill([&](Index, Index r, Index) -> double {
        return !used(r) ? NAN : written ? round.draw.old_value() : round.draw.choice(-3, 3);
      });
    };
    const bool writes_tokens = kind == Kind::unpermute, writes_rows = kind == Kind::permute;
    tokens = make("tokens", p.token_type, p.tokens, p.token_ld, writes_tokens,
                  [&](Index t) { return writes_tokens || t < in.num_tokens; });
    rows = make("rows", p.row_type ? p.row_type : p.token_type, rows_bound, p.row_ld, writes_rows,
                [&](Index r) { return writes_rows || in.routing.row_assignment[at(r)] >= 0; });
    in.tokens = tokens->initial_values();
    in.rows = rows->initial_values();
    if (!p.routing_weight_type) return;
    weights = &round.scene.input("routing_weights", p.routing_weight_type, {1, p.tokens, p.top_k, p.routing_weights_ld});
    weights->fill([&](Index, Index t, Index j) {
      return in.routing.assignment_row[at(t * p.top_k + j)] < 0 ? NAN : draw_weight(round.draw);
    });
    in.weights = weights->initial_values();
  }
};

bool affordable(const Round& round, const ggm_permute_problem_t& p) {
  const Index all = p.tokens * p.top_k, rows = p.max_rows ? std::min(p.max_rows, all) : all;
  return round.affordable({static_cast<double>(all), static_cast<double>(p.experts),
                           span(1, 0, p.tokens, packed_if_zero(p.token_ld, p.features), p.features),
                           span(1, 0, rows, packed_if_zero(p.row_ld, p.features), p.features),
                           span(1, 0, p.tokens, packed_if_zero(p.routing_weights_ld, p.top_k), p.top_k)});
}

template <Kind kind>
void permutation(Round& round) {
  const auto& operation = kind == Kind::permute ? op::permute : op::unpermute;
  ggm_permute_problem_t p = draw_problem(round.draw, kind);
  const bool accepted = round.accepted(operation, &p, offsetof(ggm_permute_problem_t, token_type));
  const ggm_permute_problem_t fit = accepted ? p : plain_problem();
  if (!affordable(round, fit)) return;
  const Operands operands(round, fit, kind);
  Tensor* const input = kind == Kind::permute ? operands.tokens : operands.rows;
  Tensor* const output = kind == Kind::permute ? operands.rows : operands.tokens;
  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  operands.routing.set(&t);
  t.routing_weights = operands.weights ? operands.weights->data() : nullptr;
  t.input = input->data();
  t.output = output->data();
  t.faults = round.faults();
  using Tensors = ggm_permute_tensors_t;
  const bool ran = round.call(
      operation, p, t,
      {{true, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->group_offsets = nullptr; }},
       {output->size() > 0, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->output = nullptr; }},
       {input->size() > 0, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->input = nullptr; }},
       {output->size() > 0, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->output = static_cast<char*>(m->output) + 1; }},
       {input->size() > 0 && output->size() > 0 && input->type() == output->type(), GGM_STATUS_ALIASING,
        [](Tensors* m) { m->output = const_cast<void*>(m->input); }},
       {operands.weights && fit.tokens > 0, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->routing_weights = nullptr; }},
       {!operands.weights, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->routing_weights = m->group_offsets; }}});
  if (!ran) return;
  round.compare(*output, kind == Kind::permute ? permute_reference(operands.in) : unpermute_reference(operands.in));
  round.compare_faults(operands.in.routing.faults, operands.any_work);
}

void backward(Round& round) {
  ggm_permute_problem_t p = draw_problem(round.draw, Kind::unpermute_backward);
  const bool accepted = round.accepted(op::unpermute_backward, &p, offsetof(ggm_permute_problem_t, token_type));
  const ggm_permute_problem_t fit = accepted ? p : plain_problem();
  if (!affordable(round, fit)) return;
  const Operands operands(round, fit, Kind::unpermute_backward);
  const bool want_rows = round.draw.chance(80), want_weights = !want_rows || round.draw.chance(80);
  const Tensor& rows = *operands.rows;
  Tensor& d_rows = round.scene.output("d_rows", rows.type(), {1, rows.shape().rows, fit.features, fit.row_ld});
  d_rows.fill([&](auto, auto, auto) { return round.draw.old_value(); });
  Tensor& d_weights = round.scene.output("d_routing_weights", GGM_TYPE_FLOAT32, {1, fit.tokens, fit.top_k});
  ggm_unpermute_backward_tensors_t t = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  operands.routing.set(&t);
  t.routing_weights = operands.weights ? operands.weights->data() : nullptr;
  t.rows = want_weights ? rows.data() : nullptr;
  t.dy = operands.tokens->data();
  t.d_rows = want_rows ? d_rows.data() : nullptr;
  t.d_routing_weights = want_weights ? static_cast<float*>(d_weights.data()) : nullptr;
  t.faults = round.faults();
  using Tensors = ggm_unpermute_backward_tensors_t;
  const bool any = rows.size() > 0, alike = rows.type() == operands.tokens->type();
  const bool ran =
      round.call(op::unpermute_backward, p, t,
                 {{any, GGM_STATUS_NULL_POINTER,
                   [](Tensors* m) { m->rows = nullptr, m->d_rows = nullptr, m->d_routing_weights = nullptr; }},
                  {any, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->dy = nullptr; }},
                  {any && want_rows && alike, GGM_STATUS_ALIASING, [](Tensors* m) { m->d_rows = const_cast<void*>(m->dy); }},
                  {any && want_rows, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->d_rows = static_cast<char*>(m->d_rows) + 1; }},
                  {!want_weights, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->rows = m->dy; }}});
  if (!ran) return;
  const UnpermuteBackward want = unpermute_backward_reference(operands.in, d_rows.initial_values());
  if (want_rows) round.compare(d_rows, want.d_rows);
  if (want_weights) round.compare(d_weights, want.d_weights);
  round.compare_faults(operands.in.routing.faults, operands.any_work);
}

}  // namespace
}  // namespace ggm_test::fuzz

GGM_FUZZ("ggm_permute", ggm_test::fuzz::permutation<ggm_test::fuzz::Kind::permute>)
GGM_FUZZ("ggm_unpermute", ggm_test::fuzz::permutation<ggm_test::fuzz::Kind::unpermute>)
GGM_FUZZ("ggm_unpermute_backward", ggm_test::fuzz::backward)
