// No tokens, no rows, empty groups and zero dimensions: BR-007, 009, 010, 049.
#include <algorithm>

#include "cases/array_case.h"
#include "cases/child_process.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"
#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

void require_zero(const Tensor& tensor) {
  for (std::uint64_t bits : tensor.all_bits()) REQUIRE(bits == 0);
}

void route_without_tokens(const Handle& handle) {
  const Routing routing = require_route(handle, route_input(0, 2, 5, [](auto, auto) { return 0; }));
  for (std::int64_t offset : routing.group_offsets) REQUIRE(offset == 0);
}

void permute_without_tokens(const Handle& handle) {
  Scene scene(handle);
  Tensor& offsets = scene.input("group_offsets", kInt32, {1, 1, 6}).fill([](auto, auto, auto) { return 0; });
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.top_k = 2;
  p.experts = 5;
  p.features = 32;
  p.token_type = BF16;
  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  t.group_offsets = static_cast<const std::int32_t*>(offsets.data());
  scene.run(op::permute, p, t);
  p.routing_weight_type = F32;
  scene.run(op::unpermute, p, t);
  ggm_unpermute_backward_tensors_t b = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  b.group_offsets = t.group_offsets;
  scene.run(op::unpermute_backward, p, b);
}

void gemm_without_rows(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    require_gemm(handle, contiguous(type, {0, 0, 0}, 0, 24, 32));
    require_gemm(handle, contiguous(type, {0, 0, 0}, 7, 24, 32));
    require_gemm(handle, contiguous(type, {}, 0, 24, 32));
    require_gemm(handle, masked(type, {0, 0}, 0, 24, 32));
    require_gemm(handle, masked(type, {0, 0}, 5, 24, 32));
    require_gemm(handle, variable_k(type, {0, 0, 0}, 0, 24, 32));
    ArrayCase array;
    array.type = type;
    require_array(handle, array);
  }
}

void moe_without_tokens(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    const MoeCase moe = integer_moe(type, 0, 2, 5, 32, 24, [](auto, auto) { return 0; });
    Scene scene(handle);
    ggm_moe_problem_t p = moe.problem();
    p.routing_weight_type = F32;
    Tensor& weight = scene.input("weight", type, {5, 24, 32}).assign(moe.weight);
    ggm_moe_forward_tensors_t f = GGM_MOE_FORWARD_TENSORS_INIT;
    f.weight = weight.data();
    scene.run(op::moe_forward, p, f);
    Tensor& d_weight = scene.output("d_weight", type, {5, 24, 32});
    ggm_moe_backward_tensors_t b = GGM_MOE_BACKWARD_TENSORS_INIT;
    b.weight = weight.data();
    b.d_weight = d_weight.data();
    scene.run(op::moe_backward, p, b);
    require_zero(d_weight);
  }
}

// Every pointer of a tensor without elements is NULL, and so is a workspace of 0 bytes.
void no_tokens(const Handle& handle) {
  route_without_tokens(handle);
  permute_without_tokens(handle);
  gemm_without_rows(handle);
  moe_without_tokens(handle);
}
GGM_CASE_HOST_AND_GPU("BR-007 no tokens and NULL pointers are a call like any other", no_tokens)

void very_few_tokens(const Handle& handle) {
  const auto first = [](auto, auto) { return std::int64_t{0}; };
  for (std::int64_t experts : {1, 7}) {
    require_route(handle, route_input(0, 1, experts, first));
    const MoeCase none = integer_moe(F32, 0, 1, experts, 16, 16, first);
    require_forward(handle, none);
    require_backward(handle, none);
  }
  const auto last = [](auto, auto) { return std::int64_t{299}; };
  require_route(handle, route_input(1, 1, 300, last));
  const MoeCase one = integer_moe(F32, 1, 1, 300, 16, 16, last);  // average load below one row
  require_forward(handle, one);
  require_backward(handle, one);
  require_gemm(handle, masked(F32, {0, 0, 0, 0}, 0, 16, 16));
  require_forward(handle, integer_moe(F32, 33, 2, 4, 16, 16, [](auto t, auto j) { return (t + j) % 4; }));
}
GGM_CASE_IN_CHILD(60, "BR-009 zero tokens and one token for 300 experts end normally", very_few_tokens)

void pointers_of_empty_groups(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (auto pointers : {ArrayGroup::null, ArrayGroup::one_past_the_end, ArrayGroup::inside_another})
      for (const Ids& rows : {Ids{3, 0, 9, 0}, Ids{0, 3, 9, 0}, Ids{3, 0, 0, 9}, Ids{0, 0, 0, 0}}) {
        ArrayCase array;
        array.type = type;
        for (std::int64_t m : rows) {
          array.groups.push_back(integer_group(static_cast<std::int64_t>(array.groups.size()), m, 24, 32));
          if (m == 0) array.groups.back().pointers = pointers;
        }
        require_array(handle, array);
      }
}
GGM_CASE_HOST_AND_GPU("BR-010 pointers of empty groups are never followed", pointers_of_empty_groups)

// M, N and K of zero in a list of groups; K = 0 gives +0.0, or beta * C.
void array_with_zero_dimensions(const Handle& handle, std::int32_t type, double beta) {
  const std::int64_t k[] = {64, 0, 128, 0}, n[] = {8, 0, 8, 8}, m[] = {0, 5, 5, 0};
  ArrayCase array;
  array.type = type;
  array.beta = beta;
  const auto add = [&](std::int64_t rows, std::int64_t columns, std::int64_t inner) {
    ArrayGroup group = integer_group(static_cast<std::int64_t>(array.groups.size()), rows, columns, inner);
    for (std::int64_t i = 0; beta != 0 && i < rows * columns; ++i) group.c.push_back(P2(i, 3));
    array.groups.push_back(group);
  };
  for (int i = 0; i < 4; ++i) add(9, 8, k[i]);
  for (int i = 0; i < 4; ++i) add(9, n[i], 64);
  for (int i = 0; i < 4; ++i) add(m[i], 8, 64);
  for (int i = 0; i < 4; ++i) add(m[i], n[i], k[i]);
  require_array(handle, array);
}

void zero_dimensions(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    array_with_zero_dimensions(handle, type, 0);
    array_with_zero_dimensions(handle, type, 1);
    for (const Ids& sizes : {Ids{0, 40, 9}, Ids{9, 40, 0}, Ids{0, 0, 0}})
      require_gemm(handle, variable_k(type, sizes, std::max<std::int64_t>(sum_of(sizes), 1), 24, 16));
    require_gemm(handle, contiguous(type, {3, 0, 4}, 7, 16, 0));
    require_gemm(handle, contiguous(type, {3, 0, 4}, 7, 0, 16));
    require_gemm(handle, masked(type, {3, 0, 4}, 5, 16, 0));
    require_gemm(handle, variable_k(type, {3, 4}, 7, 0, 16));
    for (std::int64_t in : {0, 16})
      for (std::int64_t out : {0, 16}) {
        const MoeCase moe = integer_moe(type, 9, 2, 3, in, out, [](auto t, auto j) { return (t + j) % 3; });
        require_forward(handle, moe);
        require_backward(handle, moe);
      }
  }
}
// The child is ended if something hangs.
GGM_CASE_IN_CHILD(30, "BR-049 zero dimensions return and give zero or beta times C", zero_dimensions)

}  // namespace
}  // namespace ggm_test::cases
