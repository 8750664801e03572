#include "conformance/layer.h"

#include <numeric>

#include "support/inputs.h"
#include "support/reference_gemm.h"

namespace ggm_test {

using Index = std::int64_t;

std::vector<Index> first_tokens(Index count) {
  std::vector<Index> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), Index{0});
  return tokens;
}

Layer::Layer(const Handle& handle, const LayerSpec& spec, std::vector<Index> tokens)
    : scene_(handle), spec_(spec), tokens_(std::move(tokens)) {
  ggm_moe_problem_t& p = problem_;
  const Index T = size(), K = spec.in_features, N = spec.out_features, E = spec.experts;
  p.tokens = T;
  p.top_k = spec.top_k;
  p.experts = E;
  p.in_features = K;
  p.out_features = N;
  p.id_type = GGM_INDEX_INT32;
  p.routing_weight_type = spec.weights ? spec.accumulator_type() : 0;
  p.x_type = p.weight_type = spec.type;
  p.bias_type = spec.bias ? spec.type : 0;
  p.y_type = spec.y_type();
  p.dy_type = spec.type;
  p.dx_type = p.d_weight_type = p.d_bias_type = spec.y_type();
  p.product_type = spec.wide_product ? spec.accumulator_type() : 0;
  p.weight_order = spec.order;
  p.combine = spec.combine;
  p.sm_limit = spec.sm_limit;

  const auto token = [this](Index t) { return tokens_[static_cast<std::size_t>(t)]; };
  ids_ = &scene_.input("ids", kInt32, {1, T, spec.top_k});
  // Skewed, with an id of -1 here and there.
  ids_->fill([&](Index, Index t, Index j) -> Index {
    const std::uint32_t h = mix(static_cast<std::uint32_t>(token(t)), static_cast<std::uint32_t>(j), 4242);
    if (h % 17 == 0) return -1;
    return static_cast<Index>((h >> 5) % 3 == 0 ? (h >> 8) % static_cast<std::uint32_t>((E + 3) / 4)
                                                : (h >> 8) % static_cast<std::uint32_t>(E));
  });
  if (spec.weights) {
    weights_ = &scene_.input("routing_weights", p.routing_weight_type, {1, T, spec.top_k});
    weights_->fill([&](Index, Index t, Index j) { return uniform(6, token(t), j); });
  }
  x_ = &scene_.input("x", spec.type, {1, T, K}, spec.misalign);
  x_->fill([&](Index, Index t, Index c) { return uniform(1, token(t), c); });
  const bool nk = spec.order == GGM_ORDER_NK;
  weight_ = &scene_.input("weight", spec.type, {E, nk ? N : K, nk ? K : N}, spec.misalign);
  weight_->fill([&](Index e, Index r, Index c) { return uniform(2, e * 100000 + (nk ? r : c), nk ? c : r); });
  if (spec.bias) {
    bias_ = &scene_.input("bias", spec.type, {1, E, N});
    bias_->fill([&](Index, Index e, Index n) { return uniform(3, e, n); });
  }
  y_ = &scene_.output("y", spec.y_type(), {1, T, N}, spec.misalign);
  dy_ = nullptr;

  forward_.ids = ids_->data();
  forward_.routing_weights = weights_ ? weights_->data() : nullptr;
  forward_.x = x_->data();
  forward_.weight = weight_->data();
  forward_.bias = bias_ ? bias_->data() : nullptr;
  forward_.y = y_->data();
}

void Layer::backward(std::uint32_t gradients) {
  const Index T = size(), K = spec_.in_features, N = spec_.out_features, E = spec_.experts;
  if (!dy_) {
    dy_ = &scene_.input("dy", spec_.type, {1, T, N}, spec_.misalign);
    dy_->fill([&](Index, Index t, Index c) { return uniform(7, tokens_[static_cast<std::size_t>(t)], c); });
    const bool nk = spec_.order == GGM_ORDER_NK;
    dx_ = &scene_.output("dx", spec_.y_type(), {1, T, K}, spec_.misalign);
    d_weight_ = &scene_.output("d_weight", spec_.y_type(), {E, nk ? N : K, nk ? K : N}, spec_.misalign);
    d_bias_ = &scene_.output("d_bias", spec_.y_type(), {1, E, N});
    d_routing_weights_ = &scene_.output("d_routing_weights", GGM_TYPE_FLOAT32, {1, T, spec_.top_k});
  }
  problem_.gradients = static_cast<std::int32_t>(gradients);
  ggm_moe_backward_tensors_t& t = backward_ = GGM_MOE_BACKWARD_TENSORS_INIT;
  t.ids = forward_.ids;
  t.routing_weights = forward_.routing_weights;
  t.x = forward_.x;
  t.weight = forward_.weight;
  t.bias = forward_.bias;
  t.dy = dy_->data();
  if (gradients & GGM_GRADIENT_X) t.dx = dx_->data();
  if (gradients & GGM_GRADIENT_WEIGHT) t.d_weight = d_weight_->data();
  if (gradients & GGM_GRADIENT_BIAS) t.d_bias = d_bias_->data();
  if (gradients & GGM_GRADIENT_ROUTING_WEIGHTS) t.d_routing_weights = static_cast<float*>(d_routing_weights_->data());
  scene_.run(op::moe_backward, problem_, t);
}

void Layer::take_inputs(const Layer& other) {
  const std::pair<Tensor*, Tensor*> pairs[] = {
      {ids_, other.ids_}, {weights_, other.weights_}, {x_, other.x_}, {dy_, other.dy_}};
  for (const auto& [mine, theirs] : pairs) {
    if (!mine || !theirs) continue;
    const Shape& s = mine->shape();
    for (Index r = 0; r < s.rows; ++r)
      for (Index c = 0; c < s.columns; ++c) mine->set_bits(0, r, c, theirs->initial_bits(0, r, c));
    mine->upload();
  }
  for (Tensor* output : {y_, dx_, d_weight_, d_bias_, d_routing_weights_})
    if (output) output->upload();
}

namespace {

// Makes the result of one step the input of the next.
void keep(Tensor* tensor) {
  const std::vector<std::uint64_t> bits = tensor->all_bits();
  const Shape& s = tensor->shape();
  for (Index b = 0, i = 0; b < s.batches; ++b)
    for (Index r = 0; r < s.rows; ++r)
      for (Index c = 0; c < s.columns; ++c, ++i) tensor->set_bits(b, r, c, bits[static_cast<std::size_t>(i)]);
}

ggm_grouped_gemm_problem_t gemm(std::int32_t layout, Index groups, Index m, Index n, Index k, std::int32_t order,
                                std::int32_t in, std::int32_t out) {
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.layout = layout;
  p.group_form = GGM_GROUPS_OFFSETS;
  p.groups = groups;
  p.m = m;
  p.n = n;
  p.k = k;
  p.b_order = order;
  p.a_type = p.b_type = in;
  p.d_type = out;
  return p;
}

}  // namespace

Layer::Unfused Layer::unfused() {
  const Index T = size(), K = spec_.in_features, N = spec_.out_features, E = spec_.experts, S = T * spec_.top_k;
  const bool nk = spec_.order == GGM_ORDER_NK;
  const std::int32_t type = spec_.type, wide = spec_.accumulator_type(), result = spec_.y_type(),
                     product = spec_.product_type();
  Tensor& offsets = scene_.output("group_offsets", kInt32, {1, 1, E + 1});
  Tensor& assignments = scene_.output("row_assignment", kInt32, {1, 1, S});
  Tensor& rows = scene_.output("assignment_row", kInt32, {1, 1, S});
  Tensor& x_rows = scene_.output("x rows", type, {1, S, K});
  Tensor& dy_rows = scene_.output("dy rows", type, {1, S, N});
  Tensor& weighted = scene_.output("w*dy rows", type, {1, S, N});
  Tensor& products = scene_.output("products", product, {1, S, N});
  Tensor& q = scene_.output("q", wide, {1, S, K});
  Tensor& q_rounded = scene_.output("rounded q", spec_.product_type(), {1, S, K});
  Tensor& y = scene_.output("unfused y", result, {1, T, N});
  Tensor& dx = scene_.output("unfused dx", result, {1, T, K});
  Tensor& d_weight = scene_.output("unfused d_weight", result, {E, nk ? N : K, nk ? K : N});

  ggm_route_problem_t route = GGM_ROUTE_PROBLEM_INIT;
  route.tokens = T;
  route.top_k = spec_.top_k;
  route.experts = E;
  route.id_type = GGM_INDEX_INT32;
  ggm_route_tensors_t rt = GGM_ROUTE_TENSORS_INIT;
  rt.ids = ids_->data();
  rt.group_offsets = static_cast<std::int32_t*>(offsets.data());
  rt.row_assignment = static_cast<std::int32_t*>(assignments.data());
  rt.assignment_row = static_cast<std::int32_t*>(rows.data());
  scene_.run(op::route, route, rt);
  for (Tensor* t : {&offsets, &assignments, &rows}) keep(t);

  ggm_permute_problem_t permute = GGM_PERMUTE_PROBLEM_INIT;
  permute.tokens = T;
  permute.top_k = spec_.top_k;
  permute.experts = E;
  ggm_permute_tensors_t pt = GGM_PERMUTE_TENSORS_INIT;
  pt.group_offsets = rt.group_offsets;
  pt.row_assignment = rt.row_assignment;
  pt.assignment_row = rt.assignment_row;
  const auto gather = [&](const Tensor& from, Tensor* to) {
    permute.routing_weight_type = 0;
    permute.features = from.shape().columns;
    permute.token_type = from.type();
    permute.row_type = to->type();
    pt.routing_weights = nullptr;
    pt.input = from.data();
    pt.output = to->data();
    scene_.run(op::permute, permute, pt);
    keep(to);
  };
  const auto scatter = [&](const Tensor& from, Tensor* to) {
    permute.routing_weight_type = problem_.routing_weight_type;
    permute.features = to->shape().columns;
    permute.token_type = to->type();
    permute.row_type = from.type();
    pt.routing_weights = forward_.routing_weights;
    pt.input = from.data();
    pt.output = to->data();
    scene_.run(op::unpermute, permute, pt);
    keep(to);
  };
  const auto multiply = [&](const ggm_grouped_gemm_problem_t& p, const Tensor& a, const Tensor& b, Tensor* d) {
    ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
    t.group_offsets = offsets.data();
    t.a = a.data();
    t.b = b.data();
    t.d = d->data();
    scene_.run(op::grouped_gemm, p, t);
    keep(d);
  };

  gather(*x_, &x_rows);
  multiply(gemm(GGM_LAYOUT_CONTIGUOUS, E, S, N, K, spec_.order, type, product), x_rows, *weight_, &products);
  scatter(products, &y);
  Unfused out;
  out.y = y.all_bits();
  if (!dy_) return out;

  gather(*dy_, &dy_rows);
  const std::int32_t turned = nk ? GGM_ORDER_KN : GGM_ORDER_NK;
  multiply(gemm(GGM_LAYOUT_CONTIGUOUS, E, S, K, N, turned, type, wide), dy_rows, *weight_, &q);
  multiply(gemm(GGM_LAYOUT_CONTIGUOUS, E, S, K, N, turned, type, product), dy_rows, *weight_, &q_rounded);
  scatter(q_rounded, &dx);

  permute.routing_weight_type = problem_.routing_weight_type;
  permute.features = N;
  permute.token_type = permute.row_type = type;
  ggm_unpermute_backward_tensors_t bt = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  bt.group_offsets = rt.group_offsets;
  bt.row_assignment = rt.row_assignment;
  bt.assignment_row = rt.assignment_row;
  bt.routing_weights = forward_.routing_weights;
  bt.dy = dy_->data();
  bt.d_rows = weighted.data();
  scene_.run(op::unpermute_backward, permute, bt);
  keep(&weighted);
  nk ? multiply(gemm(GGM_LAYOUT_VARIABLE_K, E, N, K, S, 0, type, result), weighted, x_rows, &d_weight)
     : multiply(gemm(GGM_LAYOUT_VARIABLE_K, E, K, N, S, 0, type, result), x_rows, weighted, &d_weight);
  out.dx = dx.all_bits();
  out.d_weight = d_weight.all_bits();
  // The routing gradient has no operation of its own for unrounded q: its documented order of partial sums, done here.
  const std::vector<double> q_values = q.values(), x_values = x_rows.values();
  out.d_routing_weights.assign(static_cast<std::size_t>(S), 0);
  for (Index a = 0; a < S; ++a) {
    const Index r = rows.integer(a);
    if (r < 0) continue;
    out.d_routing_weights[static_cast<std::size_t>(a)] =
        encode(GGM_TYPE_FLOAT32, blocked_dot(q_values.data() + r * K, x_values.data() + r * K, K, type == GGM_TYPE_FLOAT64));
  }
  return out;
}

}  // namespace ggm_test
