// One MoE call of a case, as data: sizes, options and the values of every tensor as float64. Running it makes guarded tensors
// in the backend's memory, calls the library twice from the same start, checks canaries and returns the outputs as float64. The
// expectation is the plain reference of tests/support over the same data, with the roundings that ggm.h names.
#pragma once

#include <functional>

#include "cases/case.h"
#include "support/reference_moe.h"

namespace ggm_test::cases {

struct MoeCase {
  std::int64_t tokens = 0, top_k = 1, experts = 1, in = 1, out = 1;
  std::int64_t experts_total = 0, first_expert = 0;
  std::int64_t y_ld = 0, weight_stride = 0;
  std::int32_t type = F32, y_type = 0, dx_type = 0, d_weight_type = 0, product_type = 0, bias_type = 0;
  std::int32_t routing_weight_type = F32;  // when w is not empty
  std::int32_t id_type = GGM_INDEX_INT32, weight_order = GGM_ORDER_NK, combine = GGM_COMBINE_AUTO;
  std::uint32_t flags = 0;
  std::int32_t gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  Ids ids;                             // [tokens, top_k]
  Values w;                            // [tokens, top_k]; empty: no routing weights
  Values x, weight, bias, dy;          // [tokens,in], [experts,out,in] whatever weight_order is, [experts,out], [tokens,out]
  Values y_old, dx_old, d_weight_old;  // what the outputs hold before a call that adds to them (or must not read them)

  std::int32_t type_of_y() const { return y_type ? y_type : type; }
  std::int32_t type_of_dx() const { return dx_type ? dx_type : type; }
  std::int32_t type_of_d_weight() const { return d_weight_type ? d_weight_type : type; }

  ggm_moe_problem_t problem() const;
  // [experts, out, in] to the stored order and back.
  Values as_stored(const Values& weight) const;
  Values as_logical(const Values& stored) const;
};

using IdRule = std::function<std::int64_t(std::int64_t token, std::int64_t slot)>;

// x = P, weight = Q, dy = P2, w = 2^-((t+j) mod 4): all products exact.
MoeCase integer_moe(std::int32_t type, std::int64_t tokens, std::int64_t top_k, std::int64_t experts, std::int64_t in,
                    std::int64_t out, const IdRule& ids);
// The same with TAG weights, features = in = out.
MoeCase tag_moe(std::int32_t type, std::int64_t tokens, std::int64_t top_k, std::int64_t experts, std::int64_t features,
                const IdRule& ids);

// The tensors of one case on a backend. forward() and backward() make the whole checked call; tests that enqueue by themselves
// take the tensors, upload() and read what they need. `moe` must outlive it.
class MoeCall {
 public:
  MoeCall(const Handle& handle, const MoeCase& moe, const CallOptions& options = {});

  Values forward();
  MoeGradients backward();

  ggm_moe_forward_tensors_t forward_tensors();
  ggm_moe_backward_tensors_t backward_tensors();
  void upload();  // everything, outputs with their start content

  ggm_moe_problem_t problem;
  Tensor *ids = nullptr, *routing_weights = nullptr, *x = nullptr, *weight = nullptr, *bias = nullptr, *dy = nullptr;
  Tensor *y = nullptr, *dx = nullptr, *d_weight = nullptr, *d_bias = nullptr, *d_routing_weights = nullptr;

 private:
  void* add(Tensor*& slot, bool written, const char* name, std::int32_t type, Shape shape, const Values& values);
  void add_inputs();

  const MoeCase& moe_;
  CallOptions options_;
  Scene scene_;
};

Values moe_forward(const Handle& handle, const MoeCase& moe, const CallOptions& options = {});
MoeGradients moe_backward(const Handle& handle, const MoeCase& moe, const CallOptions& options = {});

Values expected_forward(const MoeCase& moe, Rounding rounding = Rounding::contract);
MoeGradients expected_backward(const MoeCase& moe, Rounding rounding = Rounding::contract);

// Runs and compares, bit for bit.
void require_forward(const Handle& handle, const MoeCase& moe, const CallOptions& options = {});
void require_backward(const Handle& handle, const MoeCase& moe, const CallOptions& options = {});
void require_same_gradients(const MoeGradients& got, const MoeGradients& want, const MoeCase& moe);

}  // namespace ggm_test::cases
