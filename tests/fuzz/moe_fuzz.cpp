#include <algorithm>
#include <cmath>

#include "fuzz/routing.h"
#include "support/reference_moe.h"

namespace ggm_test::fuzz {
namespace {

constexpr std::int32_t kAllGradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;

ggm_moe_problem_t plain_problem() {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = 4;
  p.top_k = 2;
  p.experts = 3;
  p.in_features = 5;
  p.out_features = 6;
  p.id_type = GGM_INDEX_INT32;
  p.x_type = p.weight_type = GGM_TYPE_FLOAT32;
  p.weight_order = GGM_ORDER_NK;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  return p;
}

// Rows and columns of a weight as it is stored.
Index weight_rows(const ggm_moe_problem_t& p) { return p.weight_order == GGM_ORDER_NK ? p.out_features : p.in_features; }
Index weight_columns(const ggm_moe_problem_t& p) { return p.weight_order == GGM_ORDER_NK ? p.in_features : p.out_features; }

void draw_types(Draw& draw, bool backward, ggm_moe_problem_t* p) {
  const std::int32_t type = draw.float_type();
  const bool wide = type == GGM_TYPE_FLOAT64, narrow = is_16bit(type);
  const std::int32_t sum = accumulator(type);
  p->x_type = p->weight_type = type;
  if (draw.chance(70)) p->routing_weight_type = wide ? type : draw.choice(GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT16);
  if (draw.chance(50)) p->bias_type = draw.any_of<std::int32_t>({type, sum});
  if (narrow) p->y_type = draw.output_type(type);
  if (backward && p->y_type == GGM_TYPE_FLOAT32 && narrow) p->dy_type = type;
  if (draw.chance(30)) p->product_type = sum;
  if (narrow) {
    p->dx_type = draw.output_type(type);
    p->d_weight_type = draw.output_type(type);
  }
  if (!p->bias_type || draw.chance(50)) p->d_bias_type = draw.any_of<std::int32_t>({type, sum});
}

void draw_strides(Draw& draw, ggm_moe_problem_t* p) {
  const Index rows = weight_rows(*p), columns = weight_columns(*p);
  if (p->routing_weight_type) p->routing_weights_ld = draw.leading(p->top_k);
  p->x_ld = draw.leading(p->in_features);
  p->y_ld = draw.leading(p->out_features);
  p->dy_ld = draw.leading(p->out_features);
  p->dx_ld = draw.leading(p->in_features);
  p->weight_ld = draw.leading(columns);
  p->d_weight_ld = draw.leading(columns);
  const auto stride = [&](Index ld) { return std::max(columns, rows * packed_if_zero(ld, columns)) + draw.between(0, 7); };
  if (draw.chance(40)) p->weight_stride = draw.chance(30) ? GGM_STRIDE_SHARED : stride(p->weight_ld);
  if (draw.chance(40)) p->d_weight_stride = stride(p->d_weight_ld);
  if (p->bias_type && draw.chance(40))
    p->bias_stride = draw.chance(30) ? GGM_STRIDE_SHARED : p->out_features + draw.between(0, 5);
  if (draw.chance(40)) p->d_bias_stride = p->out_features + draw.between(0, 5);
}

ggm_moe_problem_t draw_problem(Draw& draw, bool backward) {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  draw_sizes(draw, &p);
  if (p.experts > 64) p.experts = draw.between(1, 40);
  p.in_features = draw.extent();
  p.out_features = draw.extent();
  if (draw.chance(60)) draw_ids(draw, &p);
  p.weight_order = draw.choice(GGM_ORDER_NK, GGM_ORDER_KN);
  p.input_rows = draw.choice(GGM_ROWS_TOKENS, GGM_ROWS_GROUPED);
  p.output_rows = draw.choice(GGM_ROWS_TOKENS, GGM_ROWS_GROUPED);
  p.combine = draw.choice(GGM_COMBINE_AUTO, GGM_COMBINE_TWO_STEP);
  p.sm_limit = draw.choice(0, 2);
  p.gradients = draw.choice(backward ? 1 : 0, kAllGradients);
  draw_types(draw, backward, &p);
  draw_strides(draw, &p);
  for (const int flag :
       {GGM_FLAG_KEEP_UNUSED_ROWS, GGM_FLAG_ADD_TO_Y, GGM_FLAG_ADD_TO_DX, GGM_FLAG_ADD_TO_DWEIGHT, GGM_FLAG_ADD_TO_DBIAS})
    if (draw.chance(25)) p.flags |= static_cast<std::uint32_t>(flag);
  return p;
}

Index row_bound(const ggm_moe_problem_t& p) {
  const Index all = p.tokens * p.top_k;
  return p.max_rows ? std::min(p.max_rows, all) : all;
}

bool can_follow(const Round& round, const ggm_moe_problem_t& p) {
  const Index K = p.in_features, N = p.out_features, rows = weight_rows(p), columns = weight_columns(p);
  if (!round.affordable({static_cast<double>(p.tokens) * static_cast<double>(p.top_k), static_cast<double>(p.experts),
                         static_cast<double>(K), static_cast<double>(N)}))
    return false;
  const auto matrices = [&](Index stride, Index ld) {
    const Index resolved = packed_if_zero(ld, columns);
    return span(p.experts, stride == GGM_STRIDE_SHARED ? 0 : packed_if_zero(stride, rows * resolved), rows, resolved, columns);
  };
  const auto matrix = [&](Index count, Index ld, Index width) { return span(1, 0, count, packed_if_zero(ld, width), width); };
  const Index bound = std::max(p.tokens, row_bound(p));
  if (!round.affordable({matrix(p.tokens, p.ids_ld, p.top_k), matrix(p.tokens, p.routing_weights_ld, p.top_k),
                         matrix(bound, p.x_ld, K), matrix(bound, p.dx_ld, K), matrix(bound, p.y_ld, N),
                         matrix(bound, p.dy_ld, N), matrices(p.weight_stride, p.weight_ld),
                         matrices(p.d_weight_stride, p.d_weight_ld),
                         matrix(p.experts, p.bias_stride == GGM_STRIDE_SHARED ? 0 : p.bias_stride, N),
                         matrix(p.experts, p.d_bias_stride, N)}))
    return false;
  const Index least = (rows - 1) * packed_if_zero(p.d_weight_ld, columns) + columns;
  if (p.experts > 1 && p.d_weight_stride && p.d_weight_stride < least) return false;  // outputs that overlap are undefined
  return round.affordable({}, static_cast<double>(row_bound(p)) * static_cast<double>(K) * static_cast<double>(N) +
                                  static_cast<double>(p.experts) * static_cast<double>(K) * static_cast<double>(N));
}

// Everything that both directions read.
struct Inputs {
  Round& round;
  const ggm_moe_problem_t& p;
  MoeInput in;
  RoutingTensors by_ids;
  GivenRouting given;
  Faults counted{};
  Tensor *weights = nullptr, *x = nullptr, *weight = nullptr, *bias = nullptr;

  Inputs(Round& r, const ggm_moe_problem_t& problem) : round(r), p(problem) {
    in.problem = p;
    make_routing();
    make_operands();
  }

  Index rows() const { return static_cast<Index>(in.routing.row_assignment.size()); }
  bool used(Index row) const { return in.routing.row_assignment[at(row)] >= 0; }
  // Rows of x or y that the call may read: by token or in sorted order.
  bool readable(bool grouped, Index i) const { return grouped ? used(i) : i < in.num_tokens; }
  bool expert_used(Index e) const {
    for (Index r = in.routing.group_offsets[at(e)]; r < in.routing.group_offsets[at(e + 1)]; ++r)
      if (used(r)) return true;
    return false;
  }

  void make_routing() {
    const RouteInput source = draw_routing(round.draw, p.tokens, p.top_k, p.experts, p.id_type ? p.experts_total : 0,
                                           p.id_type ? p.first_expert : 0, p.max_rows, p.id_type);
    in.num_tokens = real_tokens(source);
    if (p.id_type) {
      in.routing = route_reference(source);
      by_ids = routing_tensors(&round.scene, source, p.id_type, p.ids_ld);
    } else {
      given = give_routing(round, source);
      in.routing = given.checked;
    }
    counted = in.routing.faults;
  }

  // What must not be read is NaN.
  void make_operands() {
    Draw& draw = round.draw;
    const Index K = p.in_features, N = p.out_features;
    const bool grouped = p.input_rows == GGM_ROWS_GROUPED;
    x = &round.scene.input("x", p.x_type, {1, grouped ? rows() : p.tokens, K, p.x_ld}, draw.between(0, 3));
    x->fill([&](Index, Index r, Index) -> double { return readable(grouped, r) ? draw.choice(-1, 1) : NAN; });
    make_weight();
    if (p.bias_type) {
      const bool shared = p.bias_stride == GGM_STRIDE_SHARED;
      bias = &round.scene.input("bias", p.bias_type, {1, shared ? 1 : p.experts, N, shared ? 0 : p.bias_stride});
      bias->fill([&](Index, Index e, Index) -> double { return shared || expert_used(e) ? draw.choice(-3, 3) : NAN; });
      in.bias = bias->initial_values();
    }
    if (p.routing_weight_type) {
      weights = &round.scene.input("routing_weights", p.routing_weight_type, {1, p.tokens, p.top_k, p.routing_weights_ld});
      weights->fill([&](Index, Index t, Index j) {
        return in.routing.assignment_row[at(t * p.top_k + j)] < 0 ? NAN : draw_weight(draw);
      });
      in.routing_weights = weights->initial_values();
    }
    in.x = x->initial_values();
    in.weight = weight->initial_values();
  }

  void make_weight() {
    const Index rows = weight_rows(p), columns = weight_columns(p);
    const bool shared = p.weight_stride == GGM_STRIDE_SHARED;
    const Shape shape{shared ? 1 : p.experts, rows, columns, p.weight_ld, shared ? 0 : p.weight_stride};
    weight = &round.scene.input("weight", p.weight_type, shape, round.draw.between(0, 3));
    const Shape& s = weight->shape();
    const bool apart = s.stride >= s.rows * s.ld;  // else experts share elements
    std::vector<bool> read(at(s.batches), true);
    for (Index e = 0; !shared && apart && e < s.batches; ++e) read[at(e)] = expert_used(e);
    weight->fill([&](Index e, Index, Index) -> double { return read[at(e)] ? round.draw.choice(-1, 1) : NAN; });
  }

  template <typename T>
  void set(T* t) const {
    if (p.id_type) {
      t->ids = by_ids.ids_data();
      t->expert_map = by_ids.expert_map_data();
      t->num_tokens = by_ids.num_tokens_data();
    } else {
      given.set(t);
    }
    t->routing_weights = weights ? weights->data() : nullptr;
    t->x = x->data();
    t->weight = weight->data();
    t->bias = bias ? bias->data() : nullptr;
    t->faults = round.faults();
  }

  Tensor& output(const char* name, std::int32_t type, Shape shape) {
    return round.scene.output(name, type, shape, round.draw.between(0, 3)).fill([&](auto, auto, auto) {
      return round.draw.old_value();
    });
  }
  bool any_work() const { return p.tokens > 0 && p.in_features > 0 && p.out_features > 0; }
};

void forward(Round& round) {
  ggm_moe_problem_t p = draw_problem(round.draw, false);
  const bool accepted = round.accepted(op::moe_forward, &p, offsetof(ggm_moe_problem_t, id_type));
  const ggm_moe_problem_t fit = accepted ? p : plain_problem();
  if (!can_follow(round, fit)) return;
  Inputs inputs(round, fit);
  const bool grouped = fit.output_rows == GGM_ROWS_GROUPED;
  Tensor& y = inputs.output("y", fit.y_type ? fit.y_type : fit.x_type,
                            {1, grouped ? inputs.rows() : fit.tokens, fit.out_features, fit.y_ld});
  inputs.in.y = y.initial_values();
  ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
  inputs.set(&t);
  t.y = y.data();
  using Tensors = ggm_moe_forward_tensors_t;
  const bool any = fit.tokens > 0, any_y = y.size() > 0;
  const bool ran =
      round.call(op::moe_forward, p, t,
                 {{any_y, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->y = nullptr; }},
                  {any_y, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->y = static_cast<char*>(m->y) + 1; }},
                  {any && inputs.weight->size() > 0, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->weight = nullptr; }},
                  {inputs.weights && any, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->routing_weights = nullptr; }},
                  {!inputs.bias, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->bias = m->weight; }},
                  {fit.id_type == 0, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->ids = m->group_offsets; }},
                  {fit.id_type != 0, GGM_STATUS_TYPE_MISMATCH,
                   [](Tensors* m) { m->assignment_row = static_cast<const std::int32_t*>(m->weight); }}});
  if (!ran) return;
  round.compare(y, moe_forward_reference(inputs.in, Rounding::contract));
  round.compare_faults(inputs.counted, inputs.any_work());
}

// The outputs of the backward; those that are not asked for must stay as they are.
struct Gradients {
  Tensor &dx, &d_weight, &d_bias, &d_routing_weights;
  std::int32_t asked;

  explicit Gradients(Inputs* inputs)
      : dx(inputs->output("dx", or_else(inputs->p.dx_type, inputs->p.x_type),
                          {1, inputs->x->shape().rows, inputs->p.in_features, inputs->p.dx_ld})),
        d_weight(inputs->output("d_weight", or_else(inputs->p.d_weight_type, inputs->p.weight_type),
                                {inputs->p.experts, weight_rows(inputs->p), weight_columns(inputs->p), inputs->p.d_weight_ld,
                                 inputs->p.d_weight_stride})),
        d_bias(inputs->output("d_bias", or_else(inputs->p.d_bias_type, or_else(inputs->p.bias_type, inputs->p.x_type)),
                              {1, inputs->p.experts, inputs->p.out_features, inputs->p.d_bias_stride})),
        d_routing_weights(inputs->output("d_routing_weights", GGM_TYPE_FLOAT32, {1, inputs->p.tokens, inputs->p.top_k})),
        asked(inputs->p.gradients) {
    inputs->in.dx = dx.initial_values();
    inputs->in.d_weight = d_weight.initial_values();
    inputs->in.d_bias = d_bias.initial_values();
  }
  static std::int32_t or_else(std::int32_t type, std::int32_t otherwise) { return type ? type : otherwise; }

  void set(ggm_moe_backward_tensors_t* t) const {
    if (asked & GGM_GRADIENT_X) t->dx = dx.data();
    if (asked & GGM_GRADIENT_WEIGHT) t->d_weight = d_weight.data();
    if (asked & GGM_GRADIENT_BIAS) t->d_bias = d_bias.data();
    if (asked & GGM_GRADIENT_ROUTING_WEIGHTS) t->d_routing_weights = static_cast<float*>(d_routing_weights.data());
  }
  void compare(const Round& round, const MoeGradients& want) const {
    const auto one = [&](std::int32_t bit, const Tensor& tensor, const std::vector<double>& values) {
      round.compare(tensor, asked & bit ? values : tensor.initial_values());
    };
    one(GGM_GRADIENT_X, dx, want.dx);
    one(GGM_GRADIENT_WEIGHT, d_weight, want.d_weight);
    one(GGM_GRADIENT_BIAS, d_bias, want.d_bias);
    one(GGM_GRADIENT_ROUTING_WEIGHTS, d_routing_weights, want.d_routing_weights);
  }
};

// Inputs that none of the gradients asked for needs may be absent.
void leave_out(Draw& draw, std::int32_t asked, ggm_moe_backward_tensors_t* t) {
  const bool weights = asked & GGM_GRADIENT_ROUTING_WEIGHTS;
  if (!weights && !(asked & GGM_GRADIENT_WEIGHT) && draw.chance(50)) t->x = nullptr;
  if (!weights && !(asked & GGM_GRADIENT_X) && draw.chance(50)) t->weight = nullptr;
  if (!weights && draw.chance(50)) t->bias = nullptr;
}

void backward(Round& round) {
  ggm_moe_problem_t p = draw_problem(round.draw, true);
  const bool accepted = round.accepted(op::moe_backward, &p, offsetof(ggm_moe_problem_t, id_type));
  const ggm_moe_problem_t fit = accepted ? p : plain_problem();
  if (!can_follow(round, fit)) return;
  Inputs inputs(round, fit);
  const Gradients outputs(&inputs);
  const bool grouped = fit.output_rows == GGM_ROWS_GROUPED;
  Tensor& dy = round.scene.input("dy", fit.x_type, {1, grouped ? inputs.rows() : fit.tokens, fit.out_features, fit.dy_ld});
  dy.fill([&](Index, Index r, Index) -> double { return inputs.readable(grouped, r) ? round.draw.choice(-1, 1) : NAN; });
  inputs.in.dy = dy.initial_values();
  ggm_moe_backward_tensors_t t = GGM_MOE_BACKWARD_TENSORS_INIT;
  inputs.set(&t);
  outputs.set(&t);
  t.dy = dy.data();
  leave_out(round.draw, fit.gradients, &t);
  using Tensors = ggm_moe_backward_tensors_t;
  const bool any = fit.tokens > 0, any_dx = t.dx && outputs.dx.size() > 0;
  const bool alike = bytes_of(outputs.dx.type()) == bytes_of(dy.type());
  const bool ran =
      round.call(op::moe_backward, p, t,
                 {{dy.size() > 0, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->dy = nullptr; }},
                  {any_dx, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->dx = static_cast<char*>(m->dx) + 1; }},
                  {any_dx && dy.size() > 0 && alike, GGM_STATUS_ALIASING, [](Tensors* m) { m->dx = const_cast<void*>(m->dy); }},
                  {inputs.weights && any, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->routing_weights = nullptr; }},
                  {fit.id_type == 0, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->ids = m->group_offsets; }},
                  {fit.id_type != 0, GGM_STATUS_TYPE_MISMATCH,
                   [](Tensors* m) { m->row_assignment = static_cast<const std::int32_t*>(m->dy); }}});
  if (!ran) return;
  outputs.compare(round, moe_backward_reference(inputs.in, Rounding::contract));
  round.compare_faults(inputs.counted, inputs.any_work());
}

}  // namespace
}  // namespace ggm_test::fuzz

GGM_FUZZ("ggm_moe_forward", ggm_test::fuzz::forward)
GGM_FUZZ("ggm_moe_backward", ggm_test::fuzz::backward)
