// What the tests of decided semantics share: one body for every backend, and a fused problem small enough to write by hand.
#pragma once

#include <optional>
#include <vector>

#include "support/scene.h"

// One body, a host and a GPU test case; it runs on every kernel family.
#define SEMANTIC(name, body)                                              \
  TEST_CASE("semantic: " name, "[host]") {                                \
    for (const Backend& backend : host_backends()) body(Handle(backend)); \
  }                                                                       \
  TEST_CASE("semantic: " name ", GPU", "[gpu]") {                         \
    for (const Backend& backend : cuda_backends()) body(Handle(backend)); \
  }

namespace ggm_test {

inline constexpr std::int32_t kCombines[] = {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP, GGM_COMBINE_AUTO};

// A fused problem given by plain lists; what is empty is absent.
struct Tiny {
  using Index = std::int64_t;
  std::int32_t type = GGM_TYPE_FLOAT32;
  Index tokens = 1, top_k = 1, experts = 1, K = 1, N = 1;
  std::vector<Index> ids;
  std::vector<double> w, x, weight, bias, y, dy, dx;  // y, dx: old content of the outputs
  std::optional<Index> num_tokens;
  std::vector<double> faults = std::vector<double>(GGM_FAULT_WORDS, 0.0);
  bool no_faults = false;
  ggm_moe_problem_t problem = GGM_MOE_PROBLEM_INIT;  // further fields; sizes, types and order are set from the above

  struct Result {
    std::vector<double> y, dx, d_weight, d_bias, d_routing_weights;
    std::vector<Index> faults;
    std::size_t workspace = 0;
  };

  Result forward(const Handle& handle) const {
    Scene scene(handle);
    ggm_moe_problem_t p = sizes();
    ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
    Tensor* counted = inputs(&scene, &t);
    Tensor& out = scene.output("y", p.y_type ? p.y_type : type, {1, tokens, N});
    if (!y.empty()) out.assign(y);
    t.y = out.data();
    scene.run_twice(op::moe_forward, p, t);
    Result r;
    r.y = out.values();
    r.workspace = scene.workspace_bytes();
    take_faults(counted, &r);
    return r;
  }

  Result backward(const Handle& handle, std::uint32_t gradients) const {
    Scene scene(handle);
    ggm_moe_problem_t p = sizes();
    p.gradients = static_cast<std::int32_t>(gradients);
    p.dy_type = type;
    if ((gradients & GGM_GRADIENT_BIAS) && !p.d_bias_type) p.d_bias_type = type;
    ggm_moe_backward_tensors_t t = GGM_MOE_BACKWARD_TENSORS_INIT;
    Tensor* counted = inputs(&scene, &t);
    t.dy = scene.input("dy", type, {1, tokens, N}).assign(dy).data();
    Tensor& dx = scene.output("dx", p.dx_type ? p.dx_type : type, {1, tokens, K});
    if (!this->dx.empty()) dx.assign(this->dx);
    Tensor& dw = scene.output("d_weight", p.d_weight_type ? p.d_weight_type : type, {experts, N, K});
    Tensor& db = scene.output("d_bias", p.d_bias_type ? p.d_bias_type : type, {1, experts, N});
    Tensor& dr = scene.output("d_routing_weights", GGM_TYPE_FLOAT32, {1, tokens, top_k});
    if (p.flags & GGM_FLAG_ADD_TO_DWEIGHT) dw.fill([](auto, auto, auto) { return 7; });
    if (gradients & GGM_GRADIENT_X) t.dx = dx.data();
    if (gradients & GGM_GRADIENT_WEIGHT) t.d_weight = dw.data();
    if (gradients & GGM_GRADIENT_BIAS) t.d_bias = db.data();
    if (gradients & GGM_GRADIENT_ROUTING_WEIGHTS) t.d_routing_weights = static_cast<float*>(dr.data());
    scene.run_twice(op::moe_backward, p, t);
    Result r;
    r.dx = dx.values();
    r.d_weight = dw.values();
    r.d_bias = db.values();
    r.d_routing_weights = dr.values();
    take_faults(counted, &r);
    return r;
  }

 private:
  ggm_moe_problem_t sizes() const {
    ggm_moe_problem_t p = problem;
    p.tokens = tokens;
    p.top_k = top_k;
    p.experts = experts;
    p.in_features = K;
    p.out_features = N;
    p.id_type = GGM_INDEX_INT64;
    p.routing_weight_type = w.empty() ? 0 : accumulator(type);
    p.x_type = p.weight_type = type;
    p.bias_type = bias.empty() ? 0 : type;
    p.weight_order = GGM_ORDER_NK;
    return p;
  }
  template <typename T>
  Tensor* inputs(Scene* scene, T* t) const {
    t->ids = scene->input("ids", kInt64, {1, tokens, top_k}).assign(ids).data();
    if (!w.empty()) t->routing_weights = scene->input("w", accumulator(type), {1, tokens, top_k}).assign(w).data();
    t->x = scene->input("x", type, {1, tokens, K}).assign(x).data();
    t->weight = scene->input("weight", type, {experts, N, K}).assign(weight).data();
    if (!bias.empty()) t->bias = scene->input("bias", type, {1, experts, N}).assign(bias).data();
    if (num_tokens)
      t->num_tokens = static_cast<const std::int32_t*>(
          scene->input("num_tokens", kInt32, {1, 1, 1}).fill([this](auto, auto, auto) { return *num_tokens; }).data());
    if (no_faults) return nullptr;
    Tensor& counted = scene->faults().assign(faults);
    t->faults = static_cast<std::uint32_t*>(counted.data());
    return &counted;
  }
  static void take_faults(const Tensor* counted, Result* r) {
    for (Index i = 0; counted && i < GGM_FAULT_WORDS; ++i) r->faults.push_back(counted->integer(i));
  }
};

using Values = std::vector<double>;

}  // namespace ggm_test
