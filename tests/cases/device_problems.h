// The problems that cases on large or timed tensors share: bfloat16 or float32 throughout, W as [experts, out, in].
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

namespace ggm_test::cases {

// D [m,n] = A [m,k] @ B_e^T, groups by int32 offsets.
inline ggm_grouped_gemm_problem_t product_problem(std::int32_t type, std::int64_t groups, std::int64_t m, std::int64_t n,
                                                  std::int64_t k) {
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.groups = groups;
  p.m = m;
  p.n = n;
  p.k = k;
  p.group_form = GGM_GROUPS_OFFSETS;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = type;
  return p;
}
inline ggm_grouped_gemm_tensors_t product_tensors(const void* offsets, const void* a, const void* b, void* d) {
  ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
  t.group_offsets = offsets;
  t.a = a;
  t.b = b;
  t.d = d;
  return t;
}

// A fused layer that routes by int32 ids; without routing weights.
inline ggm_moe_problem_t layer_problem(std::int32_t type, std::int64_t tokens, std::int64_t top_k, std::int64_t experts,
                                       std::int64_t in, std::int64_t out) {
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = top_k;
  p.experts = experts;
  p.in_features = in;
  p.out_features = out;
  p.id_type = GGM_INDEX_INT32;
  p.x_type = p.weight_type = type;
  p.weight_order = GGM_ORDER_NK;
  return p;
}
inline ggm_moe_forward_tensors_t layer_tensors(const void* ids, const void* routing_weights, const void* x, const void* weight,
                                               void* y) {
  ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
  t.ids = ids;
  t.routing_weights = routing_weights;
  t.x = x;
  t.weight = weight;
  t.y = y;
  return t;
}

}  // namespace ggm_test::cases
