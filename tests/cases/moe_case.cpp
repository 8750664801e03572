#include "cases/moe_case.h"

#include <cmath>

namespace ggm_test::cases {
namespace {

std::int64_t shift_of(const CallOptions& options, const char* name) {
  const auto found = options.shift.find(name);
  return found == options.shift.end() ? 0 : found->second;
}

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

// The tensors of one call and the problem, shared by the forward and the backward.
class Call {
 public:
  Call(const Handle& handle, const MoeCase& moe, const CallOptions& options)
      : moe_(moe), options_(options), scene_(handle), problem_(moe.problem()) {
    scene_.set_extra_workspace(options.extra_workspace);
  }

  Values forward() {
    ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
    t.ids = ids();
    t.routing_weights = routing_weights();
    t.x = input("x", moe_.type, {1, moe_.tokens, moe_.in}, moe_.x);
    t.weight = weight();
    t.bias = bias();
    Tensor& y = output("y", moe_.type_of_y(), {1, moe_.tokens, moe_.out, moe_.y_ld}, moe_.y_old);
    t.y = pointer(y);
    scene_.run_twice(op::moe_forward, problem_, t);
    return y.values();
  }

  MoeGradients backward() {
    ggm_moe_backward_tensors_t t = GGM_MOE_BACKWARD_TENSORS_INIT;
    t.ids = ids();
    t.routing_weights = routing_weights();
    t.x = input("x", moe_.type, {1, moe_.tokens, moe_.in}, moe_.x);
    t.weight = weight();
    t.bias = bias();
    t.dy = input("dy", moe_.type, {1, moe_.tokens, moe_.out}, moe_.dy);
    Tensor *dx = nullptr, *d_weight = nullptr, *d_bias = nullptr, *dw = nullptr;
    if (moe_.gradients & GGM_GRADIENT_X) {
      dx = &output("dx", moe_.type_of_dx(), {1, moe_.tokens, moe_.in}, moe_.dx_old);
      t.dx = pointer(*dx);
    }
    if (moe_.gradients & GGM_GRADIENT_WEIGHT) {
      const bool nk = moe_.weight_order == GGM_ORDER_NK;
      d_weight = &output("d_weight", moe_.type_of_d_weight(), {moe_.experts, nk ? moe_.out : moe_.in, nk ? moe_.in : moe_.out},
                         moe_.as_stored(moe_.d_weight_old));
      t.d_weight = pointer(*d_weight);
    }
    if (moe_.gradients & GGM_GRADIENT_BIAS) {
      d_bias = &output("d_bias", moe_.bias_type, {1, moe_.experts, moe_.out}, {});
      t.d_bias = pointer(*d_bias);
    }
    if (moe_.gradients & GGM_GRADIENT_ROUTING_WEIGHTS) {
      dw = &output("d_routing_weights", F32, {1, moe_.tokens, moe_.top_k}, {});
      t.d_routing_weights = static_cast<float*>(pointer(*dw));
    }
    scene_.run_twice(op::moe_backward, problem_, t);
    MoeGradients result;
    if (dx) result.dx = dx->values();
    if (d_weight) result.d_weight = moe_.as_logical(d_weight->values());
    if (d_bias) result.d_bias = d_bias->values();
    if (dw) result.d_routing_weights = dw->values();
    return result;
  }

 private:
  const void* input(const char* name, std::int32_t type, Shape shape, const Values& values) {
    Tensor& tensor = scene_.input(name, type, shape, shift_of(options_, name));
    if (!values.empty()) tensor.assign(values);
    return pointer(tensor);
  }
  Tensor& output(const char* name, std::int32_t type, Shape shape, const Values& old) {
    Tensor& tensor = scene_.output(name, type, shape, shift_of(options_, name));
    if (!old.empty()) {
      tensor.assign(old);
    } else if (options_.outputs_hold) {
      tensor.fill([&](auto, auto, auto) { return *options_.outputs_hold; });
    }
    return tensor;
  }

  const void* ids() {
    Tensor& tensor = scene_.input("ids", index_element(moe_.id_type), {1, moe_.tokens, moe_.top_k}, shift_of(options_, "ids"));
    tensor.assign(moe_.ids);
    return pointer(tensor);
  }
  const void* routing_weights() {
    if (moe_.w.empty()) return nullptr;
    return input("routing_weights", moe_.routing_weight_type, {1, moe_.tokens, moe_.top_k}, moe_.w);
  }
  const void* weight() {
    const bool nk = moe_.weight_order == GGM_ORDER_NK;
    return input("weight", moe_.type, {moe_.experts, nk ? moe_.out : moe_.in, nk ? moe_.in : moe_.out, 0, moe_.weight_stride},
                 moe_.as_stored(moe_.weight));
  }
  const void* bias() {
    return moe_.bias_type == 0 ? nullptr : input("bias", moe_.bias_type, {1, moe_.experts, moe_.out}, moe_.bias);
  }

  const MoeCase& moe_;
  const CallOptions& options_;
  Scene scene_;
  ggm_moe_problem_t problem_;
};

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

Values moe_forward(const Handle& handle, const MoeCase& moe, const CallOptions& options) {
  return Call(handle, moe, options).forward();
}

MoeGradients moe_backward(const Handle& handle, const MoeCase& moe, const CallOptions& options) {
  return Call(handle, moe, options).backward();
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
