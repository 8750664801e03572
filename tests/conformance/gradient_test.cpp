// The gradients of the library against differences of its own forward. y is linear in x, in W, in w and in b, so on small
// integers a difference with step 1 is the exact derivative of <dy, y>, and no reference is needed.
#include "support/inputs.h"
#include "support/scene.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;

struct Sizes {
  Index tokens = 5, top_k = 2, experts = 3, K = 6, N = 7;
};

// Adds 1 to one element after the other: `change` of the loss must be that element's gradient.
template <typename Change>
void check_gradient(Tensor* input, const std::vector<double>& gradient, Change change) {
  const Shape& shape = input->shape();
  std::size_t i = 0;
  for (Index e = 0; e < shape.batches; ++e)
    for (Index r = 0; r < shape.rows; ++r)
      for (Index c = 0; c < shape.columns; ++c, ++i) {
        const double old = decode(input->type(), input->initial_bits(e, r, c));
        input->set(e, r, c, old + 1);
        INFO(input->name() << "[" << e << "," << r << "," << c << "]");
        REQUIRE(change() == gradient[i]);
        input->set(e, r, c, old);
      }
}

ggm_moe_problem_t problem_of(const Sizes& s, std::int32_t type, std::int32_t order) {
  const std::int32_t wide = accumulator(type);
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = s.tokens;
  p.top_k = s.top_k;
  p.experts = s.experts;
  p.in_features = s.K;
  p.out_features = s.N;
  p.id_type = GGM_INDEX_INT32;
  p.routing_weight_type = wide;
  p.x_type = p.weight_type = p.bias_type = p.dy_type = type;
  p.y_type = p.dx_type = p.d_weight_type = p.d_bias_type = wide;
  p.weight_order = order;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;
  return p;
}

void differences(bool cuda, std::int32_t type, std::int32_t order) {
  const Handle handle(backends(cuda).front());
  const Sizes s;
  const bool nk = order == GGM_ORDER_NK;
  const std::int32_t wide = accumulator(type);
  Scene scene(handle);
  Tensor& ids = scene.input("ids", kInt32, {1, s.tokens, s.top_k});
  ids.fill([&](Index, Index t, Index j) -> Index { return t == 3 && j == 1 ? -1 : (3 * t + 2 * j + t * j) % s.experts; });
  Tensor& w = scene.input("w", wide, {1, s.tokens, s.top_k}).fill([](Index, Index t, Index j) { return t - 2 * j; });
  Tensor& x = scene.input("x", type, {1, s.tokens, s.K}).fill([](Index, Index r, Index c) { return P(r, c); });
  Tensor& weight = scene.input("weight", type, {s.experts, nk ? s.N : s.K, nk ? s.K : s.N});
  weight.fill([&](Index e, Index r, Index c) { return nk ? Q(e, r, c) : Q(e, c, r); });
  Tensor& bias = scene.input("bias", type, {1, s.experts, s.N}).fill([](Index, Index e, Index n) { return bias_rule(e, n); });
  Tensor& dy = scene.input("dy", type, {1, s.tokens, s.N}).fill([](Index, Index r, Index c) { return P2(r, c); });
  Tensor& y = scene.output("y", wide, {1, s.tokens, s.N});
  Tensor& dx = scene.output("dx", wide, {1, s.tokens, s.K});
  Tensor& d_weight = scene.output("d_weight", wide, {s.experts, weight.shape().rows, weight.shape().columns});
  Tensor& d_bias = scene.output("d_bias", wide, {1, s.experts, s.N});
  Tensor& dw = scene.output("d_routing_weights", GGM_TYPE_FLOAT32, {1, s.tokens, s.top_k});

  const ggm_moe_problem_t p = problem_of(s, type, order);
  ggm_moe_forward_tensors_t f = GGM_MOE_FORWARD_TENSORS_INIT;
  f.ids = ids.data();
  f.routing_weights = w.data();
  f.x = x.data();
  f.weight = weight.data();
  f.bias = bias.data();
  f.y = y.data();
  ggm_moe_backward_tensors_t b = backward_of(f);
  b.dy = dy.data();
  b.dx = dx.data();
  b.d_weight = d_weight.data();
  b.d_bias = d_bias.data();
  b.d_routing_weights = static_cast<float*>(dw.data());
  scene.run_twice(op::moe_backward, p, b);
  const std::vector<double> gradients[] = {dx.values(), d_weight.values(), d_bias.values(), dw.values()};

  const std::vector<double> factor = dy.initial_values();
  const auto loss = [&] {
    scene.run(op::moe_forward, p, f);
    double sum = 0;
    const std::vector<double> values = y.values();
    for (std::size_t i = 0; i < values.size(); ++i) sum += factor[i] * values[i];
    return sum;
  };
  const double base = loss();
  Tensor* inputs[] = {&x, &weight, &bias, &w};
  for (std::size_t which = 0; which < 4; ++which)
    check_gradient(inputs[which], gradients[which], [&] { return loss() - base; });
}

}  // namespace

TEST_CASE("gradients: differences with step 1 of the library's own forward", "[host]") {
  for (const std::int32_t type : kFloatTypes)
    for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) differences(false, type, order);
}
TEST_CASE("gradients: differences with step 1 of the library's own forward, GPU", "[gpu]") {
  for (const std::int32_t type : kFloatTypes)
    for (const std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) differences(true, type, order);
}
