// Plain references of permute, unpermute and its backward, and of the fused MoE operations (sections 5 and 8 of ggm.h).
// Everything is packed float64; routing is a Routing that was made or checked by reference_route.h.
#pragma once

#include "support/reference_gemm.h"

namespace ggm_test {

struct PermuteInput {
  ggm_permute_problem_t problem = GGM_PERMUTE_PROBLEM_INIT;
  Routing routing;                   // checked
  std::int64_t num_tokens = 0;       // clamped; tokens when the array is absent
  std::vector<double> weights;       // packed [tokens, top_k]; empty: none
  std::vector<double> tokens, rows;  // [tokens, features], [max_rows, features]: the input, and the output's old content
};
std::vector<double> permute_reference(const PermuteInput& in);
std::vector<double> unpermute_reference(const PermuteInput& in, Rounding rounding = Rounding::contract);
struct UnpermuteBackward {
  std::vector<double> d_rows, d_weights;
};
// `tokens` is dy, `rows` unpermute's input; `d_rows` the old content of that output.
UnpermuteBackward unpermute_backward_reference(const PermuteInput& in, const std::vector<double>& d_rows);

struct MoeInput {
  ggm_moe_problem_t problem = GGM_MOE_PROBLEM_INIT;  // leading dimensions and other strides than SHARED are not looked at
  Routing routing;                                   // checked
  std::int64_t num_tokens = 0;                       // clamped
  std::vector<double> routing_weights, x, weight, bias, dy;  // weight, bias: one expert's alone when shared
  std::vector<double> y, dx, d_weight, d_bias;               // old contents of the outputs
};
std::vector<double> moe_forward_reference(const MoeInput& in, Rounding rounding);

struct MoeGradients {
  std::vector<double> dx, d_weight, d_bias, d_routing_weights;
};
// round_d_weight_terms: Rounding::none, but with w * dy rounded to the type of x as the library does.
MoeGradients moe_backward_reference(const MoeInput& in, Rounding rounding, bool round_d_weight_terms = false);

}  // namespace ggm_test
