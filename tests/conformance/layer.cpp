#include "conformance/layer.h"

#include <numeric>

#include "support/inputs.h"

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
  ggm_moe_backward_tensors_t& t = backward_ = backward_of(forward_);
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

}  // namespace ggm_test
