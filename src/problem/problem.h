// What is asked, after validation: every default resolved, every size 64-bit, every product of sizes known not to overflow.
// Made by the functions below from the structs of the C ABI; read by the plan and the backends. No pointers to data here.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "ggm/ggm.h"

namespace ggm {

// Sizes of a routing: see section 4b of ggm.h.
struct RouteProblem {
  std::int64_t tokens, top_k, experts;
  std::int64_t experts_total, first_expert;
  std::int64_t max_rows;     // resolved: 0 .. tokens*top_k
  std::int64_t assignments;  // tokens*top_k
  std::int64_t ids_ld;
  IndexType id_type;  // none: the caller gives the routing arrays
  int sm_limit;       // 0: all
};

struct PermuteProblem {
  RouteProblem routing;  // id_type none; ids_ld, experts_total and first_expert unused
  std::int64_t features, token_ld, row_ld, routing_weights_ld;
  Type token_type, row_type, routing_weight_type;
  bool keep_unused_rows, add_to_output;
  int sm_limit;
};

enum class Layout : std::int32_t { contiguous = 0, masked = 1, variable_k = 2 };
enum class GroupForm : std::int32_t { sizes = 0, offsets = 1, ends = 2, starts_sizes = 3, row_group = 4 };
// Whether the inner dimension of an operand is contiguous in memory (NK, MK) or strided (KN, KM).
enum class Order : std::int32_t { inner_contiguous = 1, inner_strided = 2 };

struct GemmProblem {
  Layout layout;
  GroupForm group_form;
  IndexType index_type;
  std::int64_t groups, m, n, k;
  std::int64_t lda, ldb, ldc, ldd;
  std::int64_t stride_a, stride_b, stride_c, stride_d;  // resolved: 0 is a real 0
  Order b_order;                                        // variable_k: inner_strided for both operands
  Type a_type, b_type, c_type, d_type;                  // c_type none: beta is 0
  double alpha, beta;                                   // alpha resolved to 1 without its flag
  bool keep_unused_rows;                                // also set when beta != 0
  int sm_limit;

  // Rows that the groups divide: m when contiguous, k when variable, m of each group when masked.
  std::int64_t rows() const { return layout == Layout::variable_k ? k : m; }
};

struct GemmArrayProblem {
  std::int64_t groups, max_m, max_n, max_k;
  IndexType index_type;
  Order a_order, b_order;
  Type a_type, b_type, c_type, d_type;
  double alpha, beta;
  int min_alignment;  // bytes that pointers and leading dimensions keep; 0: the element's
  int sm_limit;
};

struct MoeProblem {
  RouteProblem routing;
  std::int64_t routing_weights_ld;
  std::int64_t in_features, out_features;
  std::int64_t x_ld, y_ld, weight_ld, weight_stride, bias_stride, dy_ld, dx_ld, d_weight_ld, d_weight_stride, d_bias_stride;
  Type routing_weight_type, x_type, weight_type, bias_type, y_type;
  Type forward_product_type, backward_product_type;  // resolved
  Type dy_type, dx_type, d_weight_type, d_bias_type;
  Order weight_order;  // of the forward product: inner = in_features
  bool input_grouped, output_grouped;
  std::int32_t combine;  // GGM_COMBINE_*
  int sm_limit;
  std::uint32_t gradients;
  bool keep_unused_rows, add_to_y, add_to_dx, add_to_d_weight, add_to_d_bias;

  bool wants(std::uint32_t gradient) const { return (gradients & gradient) != 0; }
};

enum class PermuteKind { permute, unpermute, unpermute_backward };
enum class MoeKind { forward, backward };

// Each validates one ABI struct (already of full size) and resolves it; on failure the last-error text names field, value,
// limit.
ggm_status_t make_problem(const ggm_route_problem_t& in, RouteProblem* out);
ggm_status_t make_problem(PermuteKind kind, const ggm_permute_problem_t& in, PermuteProblem* out);
ggm_status_t make_problem(const ggm_grouped_gemm_problem_t& in, GemmProblem* out);
ggm_status_t make_problem(const ggm_grouped_gemm_array_problem_t& in, GemmArrayProblem* out);
ggm_status_t make_problem(MoeKind kind, const ggm_moe_problem_t& in, MoeProblem* out);

}  // namespace ggm
