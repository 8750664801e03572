// A fused layer of random data for the tests of promises: every token's content depends on its number alone, so the same tokens
// can be put into any batch. Runs the fused operations and the unfused chain route, permute, grouped_gemm, unpermute.
#pragma once

#include <vector>

#include "support/repeat.h"
#include "support/scene.h"

namespace ggm_test {

struct LayerSpec {
  std::int32_t type = GGM_TYPE_FLOAT32;
  std::int64_t top_k = 2, experts = 4, in_features = 8, out_features = 8;
  std::int32_t order = GGM_ORDER_NK, combine = GGM_COMBINE_AUTO;
  bool weights = true, bias = false, wide_product = false, wide_output = false;
  std::int32_t sm_limit = 0;
  std::int64_t misalign = 0;

  std::int32_t y_type() const { return wide_output ? GGM_TYPE_FLOAT32 : type; }
  std::int32_t accumulator_type() const { return accumulator(type); }
  std::int32_t product_type() const { return wide_product ? accumulator_type() : y_type(); }
};

// The tokens of a batch by number; tokens 0 .. count-1.
std::vector<std::int64_t> first_tokens(std::int64_t count);

class Layer {
 public:
  // Rewrites this layer's inputs, where they lie, with those of another of the same sizes, and poisons the outputs.
  void take_inputs(const Layer& other);

  Layer(const Handle& handle, const LayerSpec& spec, std::vector<std::int64_t> tokens);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  Scene& scene() { return scene_; }
  const ggm_moe_problem_t& problem() const { return problem_; }
  const ggm_moe_forward_tensors_t& forward_tensors() const { return forward_; }
  const ggm_moe_backward_tensors_t& backward_tensors() const { return backward_; }
  // The calls as they were last made, for repeating.
  ReadyCall forward_call() { return ready_call(scene_.handle(), op::moe_forward, problem_, forward_, {y_}); }
  ReadyCall backward_call() {
    return ready_call(scene_.handle(), op::moe_backward, problem_, backward_, {dx_, d_weight_, d_bias_, d_routing_weights_});
  }
  Tensor& x() { return *x_; }
  Tensor& y() { return *y_; }
  Tensor& ids() { return *ids_; }

  void forward() { scene_.run(op::moe_forward, problem_, forward_); }
  // All four gradients, or those of the mask.
  void backward(std::uint32_t gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS |
                                          GGM_GRADIENT_BIAS);
  Tensor& dx() { return *dx_; }
  Tensor& d_weight() { return *d_weight_; }
  Tensor& d_bias() { return *d_bias_; }
  Tensor& d_routing_weights() { return *d_routing_weights_; }

  // The same by the operations of their own; no bias. Results in tensors of the same shape and type.
  struct Unfused {
    std::vector<std::uint64_t> y, dx, d_weight, d_routing_weights;
  };
  Unfused unfused();

 private:
  Scene scene_;
  LayerSpec spec_;
  std::vector<std::int64_t> tokens_;
  ggm_moe_problem_t problem_ = GGM_MOE_PROBLEM_INIT;
  ggm_moe_forward_tensors_t forward_ = GGM_MOE_FORWARD_TENSORS_INIT;
  ggm_moe_backward_tensors_t backward_ = GGM_MOE_BACKWARD_TENSORS_INIT;
  Tensor *ids_, *weights_ = nullptr, *x_, *weight_, *bias_ = nullptr, *dy_, *y_;
  Tensor *dx_ = nullptr, *d_weight_ = nullptr, *d_bias_ = nullptr, *d_routing_weights_ = nullptr;
};

}  // namespace ggm_test
