#include "cases/moe_case.h"

#include <cmath>

namespace ggm_test::cases {
namespace {

// [experts, rows, columns] with the last two exchanged where the order is KN.
Values transposed(const MoeCase& moe, const Values& from, std::int64_t rows, std::int64_t columns) {
  if (moe.weight_order == GGM_ORDER_NK || from.empty()) return from;
  Values to(from.size());
  for (std::int64_t e = 0; e < moe.experts; ++e)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        to[static_cast<std::size_t>((e * columns + c) * rows + r)] =
            from[static_cast<std::size_t>((e * rows + r) * columns + c)];
  return to;
}

Values rounded(std::int32_t type, Values values) {
  for (double& v : values) v = round_to(type, v);
  return values;
}

// What the reference needs, with every input rounded to its type.
MoeInput reference_input(const MoeCase& moe) {
  RouteInput route;
  route.tokens = moe.tokens;
  route.top_k = moe.top_k;
  route.experts = moe.experts;
  route.experts_total = moe.experts_total;
  route.first_expert = moe.first_expert;
  route.ids = moe.ids;
  MoeInput in;
  in.problem = moe.problem();
  in.routing = route_reference(route);
  in.num_tokens = moe.tokens;
  in.routing_weights = rounded(moe.routing_weight_type, moe.w);
  in.x = rounded(moe.type, moe.x);
  in.weight = rounded(moe.type, moe.as_stored(moe.weight));
  in.bias = rounded(moe.bias_type, moe.bias);
  in.dy = rounded(moe.type, moe.dy);
  const auto old = [](const Values& values, std::int64_t count) {
    return values.empty() ? Values(static_cast<std::size_t>(count), std::nan("")) : values;
  };
  in.y = old(moe.y_old, moe.tokens * moe.out);
  in.dx = old(moe.dx_old, moe.tokens * moe.in);
  in.d_weight = old(moe.as_stored(moe.d_weight_old), moe.experts * moe.out * moe.in);
  in.d_bias = old({}, moe.experts * moe.out);
  return in;
}

}  // namespace

ggm_moe_problem_t MoeCase::problem() const {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.flags = flags;
  p.tokens = tokens;
  p.top_k = top_k;
  p.experts = experts;
  p.experts_total = experts_total;
  p.first_expert = first_expert;
  p.in_features = in;
  p.out_features = out;
  p.y_ld = y_ld;
  p.weight_stride = weight_stride;
  p.id_type = id_type;
  p.routing_weight_type = w.empty() ? 0 : routing_weight_type;
  p.x_type = p.weight_type = type;
  p.bias_type = bias_type;
  p.y_type = y_type;
  p.product_type = product_type;
  p.weight_order = weight_order;
  p.combine = combine;
  p.gradients = gradients;
  p.dy_type = type;
  p.dx_type = dx_type;
  p.d_weight_type = d_weight_type;
  return p;
}

Values MoeCase::as_stored(const Values& from) const { return transposed(*this, from, out, in); }
Values MoeCase::as_logical(const Values& stored) const { return transposed(*this, stored, in, out); }

MoeCase integer_moe(std::int32_t type, std::int64_t tokens, std::int64_t top_k, std::int64_t experts, std::int64_t in,
                    std::int64_t out, const IdRule& ids) {
  MoeCase moe;
  moe.type = type;
  moe.tokens = tokens;
  moe.top_k = top_k;
  moe.experts = experts;
  moe.in = in;
  moe.out = out;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t j = 0; j < top_k; ++j) {
      moe.ids.push_back(ids(t, j));
      moe.w.push_back(power_weight(t, j));
    }
    for (std::int64_t c = 0; c < in; ++c) moe.x.push_back(P(t, c));
    for (std::int64_t c = 0; c < out; ++c) moe.dy.push_back(P2(t, c));
  }
  moe.weight.reserve(static_cast<std::size_t>(experts * out * in));
  for (std::int64_t e = 0; e < experts; ++e)
    for (std::int64_t n = 0; n < out; ++n)
      for (std::int64_t k = 0; k < in; ++k) moe.weight.push_back(Q(e, n, k));
  return moe;
}

MoeCase tag_moe(std::int32_t type, std::int64_t tokens, std::int64_t top_k, std::int64_t experts, std::int64_t features,
                const IdRule& ids) {
  MoeCase moe = integer_moe(type, tokens, top_k, 1, features, features, ids);
  moe.experts = experts;
  moe.weight.clear();
  for (std::int64_t e = 0; e < experts; ++e)
    for (std::int64_t n = 0; n < features; ++n)
      for (std::int64_t k = 0; k < features; ++k) moe.weight.push_back(tag_weight(type, e, n, k));
  return moe;
}

MoeCall::MoeCall(const Handle& handle, const MoeCase& moe, const CallOptions& options)
    : problem(moe.problem()), moe_(moe), options_(options), scene_(handle) {
  scene_.set_extra_workspace(options.extra_workspace);
}

// One tensor with its values; an output without values starts as the options say.
void* MoeCall::add(Tensor*& slot, bool written, const char* name, std::int32_t type, Shape shape, const Values& values) {
  const auto shift = options_.shift.find(name);
  const std::int64_t elements = shift == options_.shift.end() ? 0 : shift->second;
  slot = written ? &scene_.output(name, type, shape, elements) : &scene_.input(name, type, shape, elements);
  if (!values.empty()) {
    slot->assign(values);
  } else if (written && options_.outputs_hold) {
    slot->fill([&](auto, auto, auto) { return *options_.outputs_hold; });
  }
  return pointer(*slot);
}

void MoeCall::add_inputs() {
  const bool nk = moe_.weight_order == GGM_ORDER_NK;
  add(ids, false, "ids", index_element(moe_.id_type), {1, moe_.tokens, moe_.top_k}, Values(moe_.ids.begin(), moe_.ids.end()));
  if (!moe_.w.empty())
    add(routing_weights, false, "routing_weights", moe_.routing_weight_type, {1, moe_.tokens, moe_.top_k}, moe_.w);
  add(x, false, "x", moe_.type, {1, moe_.tokens, moe_.in}, moe_.x);
  add(weight, false, "weight", moe_.type,
      {moe_.experts, nk ? moe_.out : moe_.in, nk ? moe_.in : moe_.out, 0, moe_.weight_stride}, moe_.as_stored(moe_.weight));
  if (moe_.bias_type != 0) add(bias, false, "bias", moe_.bias_type, {1, moe_.experts, moe_.out}, moe_.bias);
}

namespace {
const void* pointer_or_null(const Tensor* tensor) { return tensor ? pointer(*tensor) : nullptr; }
}  // namespace

ggm_moe_forward_tensors_t MoeCall::forward_tensors() {
  add_inputs();
  ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
  t.ids = pointer_or_null(ids);
  t.routing_weights = pointer_or_null(routing_weights);
  t.x = pointer_or_null(x);
  t.weight = pointer_or_null(weight);
  t.bias = pointer_or_null(bias);
  t.y = add(y, true, "y", moe_.type_of_y(), {1, moe_.tokens, moe_.out, moe_.y_ld}, moe_.y_old);
  return t;
}

ggm_moe_backward_tensors_t MoeCall::backward_tensors() {
  add_inputs();
  ggm_moe_backward_tensors_t t = GGM_MOE_BACKWARD_TENSORS_INIT;
  t.ids = pointer_or_null(ids);
  t.routing_weights = pointer_or_null(routing_weights);
  t.x = pointer_or_null(x);
  t.weight = pointer_or_null(weight);
  t.bias = pointer_or_null(bias);
  t.dy = add(dy, false, "dy", moe_.type, {1, moe_.tokens, moe_.out}, moe_.dy);
  const bool nk = moe_.weight_order == GGM_ORDER_NK;
  if (moe_.gradients & GGM_GRADIENT_X) t.dx = add(dx, true, "dx", moe_.type_of_dx(), {1, moe_.tokens, moe_.in}, moe_.dx_old);
  if (moe_.gradients & GGM_GRADIENT_WEIGHT)
    t.d_weight = add(d_weight, true, "d_weight", moe_.type_of_d_weight(),
                     {moe_.experts, nk ? moe_.out : moe_.in, nk ? moe_.in : moe_.out}, moe_.as_stored(moe_.d_weight_old));
  if (moe_.gradients & GGM_GRADIENT_BIAS)
    t.d_bias = add(d_bias, true, "d_bias", moe_.bias_type, {1, moe_.experts, moe_.out}, {});
  if (moe_.gradients & GGM_GRADIENT_ROUTING_WEIGHTS)
    t.d_routing_weights =
        static_cast<float*>(add(d_routing_weights, true, "d_routing_weights", F32, {1, moe_.tokens, moe_.top_k}, {}));
  return t;
}

void MoeCall::upload() {
  for (Tensor* tensor : {ids, routing_weights, x, weight, bias, dy, y, dx, d_weight, d_bias, d_routing_weights})
    if (tensor) tensor->upload();
}

Values MoeCall::forward() {
  const ggm_moe_forward_tensors_t t = forward_tensors();
  scene_.run_twice(as_called(op::moe_forward, options_), problem, t);
  return y->values();
}

MoeGradients MoeCall::backward() {
  const ggm_moe_backward_tensors_t t = backward_tensors();
  scene_.run_twice(as_called(op::moe_backward, options_), problem, t);
  MoeGradients result;
  if (dx) result.dx = dx->values();
  if (d_weight) result.d_weight = moe_.as_logical(d_weight->values());
  if (d_bias) result.d_bias = d_bias->values();
  if (d_routing_weights) result.d_routing_weights = d_routing_weights->values();
  return result;
}

Values moe_forward(const Handle& handle, const MoeCase& moe, const CallOptions& options) {
  return MoeCall(handle, moe, options).forward();
}

MoeGradients moe_backward(const Handle& handle, const MoeCase& moe, const CallOptions& options) {
  return MoeCall(handle, moe, options).backward();
}

Values expected_forward(const MoeCase& moe, Rounding rounding) { return moe_forward_reference(reference_input(moe), rounding); }

MoeGradients expected_backward(const MoeCase& moe, Rounding rounding) {
  MoeGradients gradients = moe_backward_reference(reference_input(moe), rounding);
  gradients.d_weight = moe.as_logical(gradients.d_weight);
  return gradients;
}

void require_forward(const Handle& handle, const MoeCase& moe, const CallOptions& options) {
  require_same(moe_forward(handle, moe, options), expected_forward(moe), "y", moe.out);
}

void require_same_gradients(const MoeGradients& got, const MoeGradients& want, const MoeCase& moe) {
  if (moe.gradients & GGM_GRADIENT_X) require_same(got.dx, want.dx, "dx", moe.in);
  if (moe.gradients & GGM_GRADIENT_WEIGHT) require_same(got.d_weight, want.d_weight, "d_weight", moe.in);
  if (moe.gradients & GGM_GRADIENT_BIAS) require_same(got.d_bias, want.d_bias, "d_bias", moe.out);
  if (moe.gradients & GGM_GRADIENT_ROUTING_WEIGHTS)
    require_same(got.d_routing_weights, want.d_routing_weights, "d_routing_weights", moe.top_k);
}

void require_backward(const Handle& handle, const MoeCase& moe, const CallOptions& options) {
  require_same_gradients(moe_backward(handle, moe, options), expected_backward(moe), moe);
}

}  // namespace ggm_test::cases
