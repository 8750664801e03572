// Each decided semantic of the routed operations as a named test on hand-made numbers: one token or a few, values where a wrong
// rounding, order or rule gives another number. Those of the bare products: semantics_gemm_test.cpp.
#include <cmath>
#include <limits>

#include "conformance/semantics.h"
#include "support/inputs.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;

// ---- 1. product ----

void product_rounding(const Handle& handle) {
  // 256 + 3 = 259 lies between the bfloat16 numbers 258 and 260: three rounded products give 780, three unrounded ones 777 ->
  // 776.
  Tiny t;
  t.type = GGM_TYPE_BFLOAT16;
  t.top_k = 3;
  t.experts = 3;
  t.K = 2;
  t.ids = {2, 0, 1};
  t.x = {1, 1};
  t.weight = {256, 3, 256, 3, 256, 3};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    t.problem.product_type = 0;
    CHECK(t.forward(handle).y == Values{780});
    t.problem.product_type = GGM_TYPE_FLOAT32;
    CHECK(t.forward(handle).y == Values{776});
  }
}

void bias_inside_product(const Handle& handle) {
  // 256 + bias 3 is rounded once to 260 and weighted after that: 0.5 * 260.
  Tiny t;
  t.type = GGM_TYPE_BFLOAT16;
  t.ids = {0};
  t.w = {0.5};
  t.x = {1};
  t.weight = {256};
  t.bias = {3};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    CHECK(t.forward(handle).y == Values{130});
  }
}

void order_of_sum(const Handle& handle) {
  // (1e8 + 1) - 1e8 is 0 in float32, (1e8 - 1e8) + 1 is 1: experts ascending decide, not slots.
  Tiny t;
  t.top_k = 3;
  t.experts = 3;
  t.x = {1};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    for (const std::vector<Index>& ids : {std::vector<Index>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
      t.ids = ids;
      t.weight = {1e8, 1, -1e8};
      CHECK(t.forward(handle).y == Values{0});
      t.weight = {1e8, -1e8, 1};
      CHECK(t.forward(handle).y == Values{1});
    }
    // One expert three times: slots ascending.
    t.ids = {0, 0, 0};
    t.weight = {1, 0, 0};
    t.w = {1e8, 1, -1e8};
    CHECK(t.forward(handle).y == Values{0});
    t.w = {1e8, -1e8, 1};
    CHECK(t.forward(handle).y == Values{1});
    t.w.clear();
  }
}

void no_contraction(const Handle& handle) {
  // (1 + 2^-12)^2 rounds to 1 + 2^-11. A fused multiply-add would leave 2^-24.
  const double a = 1 + std::ldexp(1, -12);
  Tiny t;
  t.top_k = 2;
  t.experts = 2;
  t.ids = {0, 1};
  t.x = {1};
  t.weight = {-(1 + std::ldexp(1, -11)), a};
  t.w = {1, a};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    CHECK(t.forward(handle).y == Values{0});
  }
}

void grouped_rows_are_rounded_once_more(const Handle& handle) {
  // p = q = 257, which bfloat16 rounds to 256; times 0.75 that is 192. With product_type float32 it is 192.75, so 193.
  Scene scene(handle);
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = p.top_k = p.experts = 1;
  p.in_features = p.out_features = 2;
  p.id_type = GGM_INDEX_INT32;
  p.x_type = p.weight_type = GGM_TYPE_BFLOAT16;
  p.routing_weight_type = GGM_TYPE_FLOAT32;
  p.weight_order = GGM_ORDER_NK;
  p.input_rows = p.output_rows = GGM_ROWS_GROUPED;
  p.gradients = GGM_GRADIENT_X;
  const auto ones = [](auto, auto, auto) { return 1; };
  ggm_moe_forward_tensors_t f = GGM_MOE_FORWARD_TENSORS_INIT;
  f.ids = scene.input("ids", kInt32, {1, 1, 1}).fill([](auto, auto, auto) { return 0; }).data();
  f.routing_weights = scene.input("w", GGM_TYPE_FLOAT32, {1, 1, 1}).fill([](auto, auto, auto) { return 0.75; }).data();
  f.x = scene.input("x", GGM_TYPE_BFLOAT16, {1, 1, 2}).fill(ones).data();
  f.weight =
      scene.input("weight", GGM_TYPE_BFLOAT16, {1, 2, 2}).fill([](auto, auto r, auto c) { return r == c ? 256 : 1; }).data();
  Tensor& y = scene.output("y", GGM_TYPE_BFLOAT16, {1, 1, 2});
  Tensor& dx = scene.output("dx", GGM_TYPE_BFLOAT16, {1, 1, 2});
  f.y = y.data();
  ggm_moe_backward_tensors_t b = GGM_MOE_BACKWARD_TENSORS_INIT;
  b.ids = f.ids;
  b.routing_weights = f.routing_weights;
  b.weight = f.weight;
  b.dy = f.x;
  b.dx = dx.data();
  scene.run_twice(op::moe_forward, p, f);
  CHECK(y.values() == Values{192, 192});
  scene.run_twice(op::moe_backward, p, b);
  CHECK(dx.values() == Values{192, 192});
  p.product_type = GGM_TYPE_FLOAT32;
  scene.run_twice(op::moe_forward, p, f);
  CHECK(y.values() == Values{193, 193});
  scene.run_twice(op::moe_backward, p, b);
  CHECK(dx.values() == Values{193, 193});
}

// ---- 3. plan ----

void pointers_decide_nothing(const Handle& handle) {
  Tiny t;
  t.tokens = 5;
  t.experts = 2;
  t.ids = {0, 1, 0, 1, 1};
  t.x = {1, 2, 3, 4, 5};
  t.weight = {10, 100};
  const Tiny::Result with = t.forward(handle);
  CHECK(with.y == Values{10, 200, 30, 400, 500});
  t.no_faults = true;
  const Tiny::Result without = t.forward(handle);
  t.num_tokens = 5;
  const Tiny::Result counted = t.forward(handle);
  CHECK(without.y == with.y);
  CHECK(counted.y == with.y);
  CHECK(without.workspace == with.workspace);
  CHECK(counted.workspace == with.workspace);
}

// ---- 4. ids ----

void ids_rule(const Handle& handle) {
  // Experts 4 and 5 of six are local. -1 and foreign experts are skipped silently; -2 and 6 are faults; 5 twice counts twice.
  Tiny t;
  t.tokens = 6;
  t.top_k = 2;
  t.experts = 2;
  t.ids = {-1, -1, 4, -1, 5, 5, 0, 3, -2, 4, 6, 5};
  t.x = {1, 2, 3, 4, 5, 6};
  t.weight = {10, 100};
  t.problem.first_expert = 4;
  t.problem.experts_total = 6;
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    const Tiny::Result r = t.forward(handle);
    CHECK(r.y == Values{0, 20, 600, 0, 50, 600});
    CHECK(r.faults == std::vector<Index>{2, 0, 0, 0, 0, 0, 0, 0});
  }
}

// ---- 5. device counts ----

void num_tokens_rule(const Handle& handle) {
  Tiny t;
  t.tokens = 4;
  t.ids = {0, 0, -9, 77};  // of tokens that are not real: not read, so not faults
  t.x = {1, 2, NAN, NAN};
  t.weight = {3};
  t.y = {50, 60, 70, 80};
  t.num_tokens = 2;
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    t.problem.flags = 0;
    const Tiny::Result zeroed = t.forward(handle);
    CHECK(zeroed.y == Values{3, 6, 0, 0});
    CHECK(zeroed.faults == std::vector<Index>(8, 0));
    t.problem.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
    CHECK(t.forward(handle).y == Values{3, 6, 70, 80});
    t.problem.flags = GGM_FLAG_KEEP_UNUSED_ROWS | GGM_FLAG_ADD_TO_Y;
    CHECK(t.forward(handle).y == Values{53, 66, 70, 80});
  }
}

void num_tokens_backward(const Handle& handle) {
  // Two of four tokens are real: nothing of the others is read, counted or added, and their gradients are zero or stay.
  constexpr std::uint32_t all = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_BIAS | GGM_GRADIENT_ROUTING_WEIGHTS;
  Tiny t;
  t.tokens = 4;
  t.ids = {0, 0, -9, 77};
  t.w = {2, 3, NAN, NAN};
  t.x = {1, 2, NAN, NAN};
  t.weight = {5};
  t.dy = {10, 20, NAN, NAN};
  t.dx = {1000, 2000, 3000, 4000};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    t.problem.flags = 0;
    t.num_tokens = 2;
    const Tiny::Result r = t.backward(handle, all);
    CHECK(r.dx == Values{100, 300, 0, 0});
    CHECK(r.d_weight == Values{2 * 10 * 1 + 3 * 20 * 2});
    CHECK(r.d_bias == Values{2 * 10 + 3 * 20});
    CHECK(r.d_routing_weights == Values{50, 200, 0, 0});
    CHECK(r.faults == std::vector<Index>(8, 0));
    t.problem.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
    CHECK(t.backward(handle, all).dx == Values{100, 300, 3000, 4000});
    t.problem.flags = GGM_FLAG_KEEP_UNUSED_ROWS | GGM_FLAG_ADD_TO_DX;
    CHECK(t.backward(handle, all).dx == Values{1100, 2300, 3000, 4000});
    t.problem.flags = 0;
    t.num_tokens = -5;  // clamped to none, and counted
    const Tiny::Result none = t.backward(handle, all);
    CHECK(none.dx == Values(4, 0.0));
    CHECK(none.d_weight == Values{0});
    CHECK(none.d_bias == Values{0});
    CHECK(none.d_routing_weights == Values(4, 0.0));
    CHECK(none.faults == std::vector<Index>{0, 1, 0, 0, 0, 0, 0, 0});
  }
}

void max_rows_rule(const Handle& handle) {
  // Rows in expert order: tokens 1, 3 (expert 0), 0, 2 (expert 1). Three fit; the last is dropped and counted.
  Tiny t;
  t.tokens = 4;
  t.experts = 2;
  t.ids = {1, 0, 1, 0};
  t.x = {1, 2, 3, 4};
  t.weight = {10, 100};
  t.problem.max_rows = 3;
  const Tiny::Result r = t.forward(handle);
  CHECK(r.y == Values{100, 20, 0, 40});
  CHECK(r.faults == std::vector<Index>{0, 0, 1, 0, 0, 0, 0, 0});
}

// ---- 6. weights and sums ----

void bias_is_weighted(const Handle& handle) {
  // w * (x W + b), every number an integer: the weight of 0 drops its bias too, and -1 subtracts it.
  Tiny t;
  t.tokens = 2;
  t.top_k = 2;
  t.experts = 2;
  t.ids = {0, 1, 1, 0};
  t.w = {2, -1, 0, 3};
  t.x = {2, 3};
  t.weight = {5, 7};
  t.bias = {11, 13};
  t.dy = {1, 2};
  for (const std::int32_t type : kFloatTypes)
    for (const std::int32_t combine : kCombines) {
      t.type = type;
      t.problem.combine = combine;
      CHECK(t.forward(handle).y == Values{2 * (10 + 11) - (14 + 13), 3 * (15 + 11)});
      const Tiny::Result r = t.backward(handle, GGM_GRADIENT_BIAS | GGM_GRADIENT_ROUTING_WEIGHTS);
      CHECK(r.d_bias == Values{2 * 1 + 3 * 2, -1 * 1 + 0 * 2});
      CHECK(r.d_routing_weights == Values{10 + 11, 14 + 13, 2 * (21 + 13), 2 * (15 + 11)});
    }
}

void weight_zero_is_real(const Handle& handle) {
  Tiny t;
  t.tokens = 3;
  t.top_k = 2;
  t.experts = 2;
  t.ids = {0, 1, 0, -1, 1, -1};
  t.w = {0, 1, 0, NAN, 2, NAN};
  t.x = {1, INFINITY, 1};
  t.weight = {5, 7};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    const Values y = t.forward(handle).y;
    CHECK(y[0] == 7);
    CHECK(std::isnan(y[1]));  // 0 * infinity
    CHECK(y[2] == 14);        // the weight of a slot without expert is not read
  }
  t.x = {1, 1, 1};
  t.dy = {1, 1, 1};
  const Tiny::Result r = t.backward(handle, GGM_GRADIENT_ROUTING_WEIGHTS);
  CHECK(r.d_routing_weights == Values{5, 7, 5, 0, 7, 0});  // true also where w = 0
}

void sum_starts_at_first_product(const Handle& handle) {
  Tiny t;
  t.ids = {0};
  t.w = {-1};
  t.x = {0};
  t.weight = {1};
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    t.problem.flags = 0;
    CHECK(std::signbit(t.forward(handle).y[0]));  // -1 * 0, not 0 + -1 * 0
  }
  Tiny none = t;
  none.ids = {-1};
  const double zero = none.forward(handle).y[0];
  CHECK(zero == 0);
  CHECK_FALSE(std::signbit(zero));
}

void adding_rounds_once(const Handle& handle) {
  // 256 + 1 + 1: bfloat16 holds 256 and 258; rounding after each step would stay at 256.
  Tiny t;
  t.type = GGM_TYPE_BFLOAT16;
  t.top_k = 2;
  t.experts = 2;
  t.ids = {0, 1};
  t.x = {1};
  t.weight = {1, 1};
  t.y = {256};
  t.problem.flags = GGM_FLAG_ADD_TO_Y;
  for (const std::int32_t combine : kCombines) {
    t.problem.combine = combine;
    CHECK(t.forward(handle).y == Values{258});
  }
  t.ids = {-1, -1};
  CHECK(t.forward(handle).y == Values{256});  // a token without rows keeps its old value
}

// ---- 7. backward ----

void d_weight_terms_are_rounded(const Handle& handle) {
  // w * dy = 1 + 2^-9 is 1 in bfloat16; an unrounded sum would show in the float32 gradient.
  Tiny t;
  t.type = GGM_TYPE_BFLOAT16;
  t.ids = {0};
  t.w = {1 + std::ldexp(1, -9)};
  t.x = {1};
  t.weight = {1};
  t.dy = {1};
  t.problem.d_weight_type = t.problem.d_bias_type = t.problem.dx_type = GGM_TYPE_FLOAT32;
  const Tiny::Result r = t.backward(handle, GGM_GRADIENT_WEIGHT | GGM_GRADIENT_BIAS | GGM_GRADIENT_X);
  CHECK(r.d_weight == Values{1});
  CHECK(r.d_bias == Values{1});
  CHECK(r.dx == Values{1 + std::ldexp(1, -9)});
}

void routing_gradient_is_unrounded(const Handle& handle) {
  // q = 256 + 1 is not rounded to bfloat16 before the inner product with x; bias comes in once.
  Tiny t;
  t.type = GGM_TYPE_BFLOAT16;
  t.tokens = 2;
  t.top_k = 2;
  t.N = 2;
  t.ids = {-1, 0, -1, -1};
  t.w = {1, 0.25, 1, 1};
  t.x = {1, 1};
  t.weight = {256, 1};
  t.bias = {3, 4};
  t.dy = {1, 1, 1, 1};
  const Tiny::Result r = t.backward(handle, GGM_GRADIENT_ROUTING_WEIGHTS);
  CHECK(r.d_routing_weights == Values{0, 264, 0, 0});
}

void experts_without_rows(const Handle& handle) {
  Tiny t;
  t.tokens = 2;
  t.experts = 3;
  t.ids = {1, 1};
  t.x = {1, 2};
  t.weight = {NAN, 1, NAN};
  t.dy = {1, 10};
  CHECK(t.backward(handle, GGM_GRADIENT_WEIGHT).d_weight == Values{0, 21, 0});
  t.problem.flags = GGM_FLAG_ADD_TO_DWEIGHT;
  CHECK(t.backward(handle, GGM_GRADIENT_WEIGHT).d_weight == Values{7, 28, 7});
}

// ---- 8. routing arrays ----

void routing_arrays_rule(const Handle& handle) {
  // Tokens 0 and 2 go to expert 1, token 1 to expert 0.
  Scene scene(handle);
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = 3;
  p.top_k = p.in_features = p.out_features = 1;
  p.experts = 2;
  p.x_type = p.weight_type = GGM_TYPE_FLOAT32;
  p.weight_order = GGM_ORDER_NK;
  Tensor& offsets = scene.input("group_offsets", kInt32, {1, 1, 3});
  Tensor& row_assignment = scene.input("row_assignment", kInt32, {1, 1, 3});
  Tensor& assignment_row = scene.input("assignment_row", kInt32, {1, 1, 3});
  ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
  t.group_offsets = static_cast<const std::int32_t*>(offsets.data());
  t.row_assignment = static_cast<const std::int32_t*>(row_assignment.data());
  t.assignment_row = static_cast<const std::int32_t*>(assignment_row.data());
  t.x = scene.input("x", GGM_TYPE_FLOAT32, {1, 3, 1}).assign(Values{1, 2, 3}).data();
  t.weight = scene.input("weight", GGM_TYPE_FLOAT32, {2, 1, 1}).assign(Values{10, 100}).data();
  Tensor& y = scene.output("y", GGM_TYPE_FLOAT32, {1, 3, 1});
  t.y = y.data();
  Tensor& faults = scene.faults();
  t.faults = static_cast<std::uint32_t*>(faults.data());
  const auto check = [&](const std::vector<Index>& o, const std::vector<Index>& ra, const std::vector<Index>& ar,
                         const Values& want, Index bad) {
    offsets.assign(o);
    row_assignment.assign(ra);
    assignment_row.assign(ar);
    for (const std::int32_t combine : kCombines) {
      p.combine = combine;
      scene.run_twice(op::moe_forward, p, t);
      CHECK(y.values() == want);
      CHECK(faults.integer(GGM_FAULT_BAD_ROUTING) == bad);
    }
  };
  check({0, 1, 3}, {1, 0, 2}, {1, 0, 2}, {100, 20, 300}, 0);
  check({0, 1, 3}, {1, 0, 2}, {1, 0, 0}, {100, 20, 0}, 1);   // row 2 says assignment 2, which says row 0
  check({0, 1, 3}, {1, 0, 1}, {1, 0, 2}, {100, 20, 0}, 1);   // rows 0 and 2 both claim assignment 1
  check({0, 1, 3}, {1, 9, -7}, {1, 0, 2}, {0, 20, 0}, 2);    // rows outside the assignments
  check({-5, 9, 1}, {1, 0, 2}, {1, 0, 2}, {10, 20, 30}, 3);  // offsets become 0, 3, 3: all rows of expert 0
}

// ---- 10. no state ----

void workspace_content(const Handle& handle) {
  // One workspace, filled with different garbage before each of several calls.
  Scene scene(handle);
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = 70;
  p.top_k = 3;
  p.experts = 5;
  p.in_features = 40;
  p.out_features = 150;
  p.id_type = GGM_INDEX_INT32;
  p.x_type = p.weight_type = GGM_TYPE_BFLOAT16;
  p.weight_order = GGM_ORDER_KN;
  ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
  Tensor& ids = scene.input("ids", kInt32, {1, 70, 3}).fill([](Index, Index r, Index j) { return (r * 7 + j * 3) % 5; });
  Tensor& x = scene.input("x", GGM_TYPE_BFLOAT16, {1, 70, 40}).fill([](Index, Index r, Index c) { return uniform(1, r, c); });
  Tensor& w = scene.input("weight", GGM_TYPE_BFLOAT16, {5, 40, 150}).fill([](Index e, Index r, Index c) {
    return uniform(2, e * 99 + r, c);
  });
  Tensor& y = scene.output("y", GGM_TYPE_BFLOAT16, {1, 70, 150});
  t.ids = ids.data();
  t.x = x.data();
  t.weight = w.data();
  t.y = y.data();
  for (const std::int32_t combine : kCombines) {
    p.combine = combine;
    scene.run(op::moe_forward, p, t);
    const std::vector<std::uint64_t> want = y.all_bits();
    Buffer workspace(handle.backend(), scene.workspace_bytes());
    for (const int garbage : {0x00, 0x01, 0x7F, 0xFF}) {
      set_bytes(handle.backend(), workspace.data(), garbage, workspace.bytes());
      y.upload();
      GGM_REQUIRE_OK(ggm_moe_forward(handle, &p, &t, workspace.data(), workspace.bytes(), nullptr));
      y.download();
      CHECK((y.all_bits() == want));
    }
  }
}

// ---- 11. faults ----

void faults_rule(const Handle& handle) {
  Tiny t;
  t.tokens = 3;
  t.ids = {9, 0, -5};
  t.x = {1, 1, 1};
  t.weight = {1};
  t.num_tokens = 99;
  t.faults = {5, 4294967295.0, 3, 7, 11, 12, 13, 14};
  const Tiny::Result r = t.forward(handle);
  CHECK(r.y == Values{0, 1, 0});
  CHECK(r.faults == std::vector<Index>{7, 4294967295, 3, 7, 11, 12, 13, 14});  // added to, saturated, others left alone
  t.faults[0] = 4294967294.0;
  CHECK(t.forward(handle).faults[0] == 4294967295);
}

}  // namespace

SEMANTIC("1 product, rounded to product_type before weighting", product_rounding)
SEMANTIC("1 product, bias added in float32 before the rounding", bias_inside_product)
SEMANTIC("1 product, sum by experts ascending and then slots", order_of_sum)
SEMANTIC("1 product, no contraction of weighting and sum", no_contraction)
SEMANTIC("1 product, grouped y and dx are rounded to product_type before the weight", grouped_rows_are_rounded_once_more)
SEMANTIC("3 plan, the presence of a pointer decides nothing", pointers_decide_nothing)
SEMANTIC("4 ids, skipped, faulty and doubled", ids_rule)
SEMANTIC("5 device counts, num_tokens", num_tokens_rule)
SEMANTIC("5 device counts, num_tokens in the backward", num_tokens_backward)
SEMANTIC("5 device counts, max_rows", max_rows_rule)
SEMANTIC("6 bias, inside the routing weight", bias_is_weighted)
SEMANTIC("6 weights, zero is a real factor", weight_zero_is_real)
SEMANTIC("6 weights, the sum starts at the first product", sum_starts_at_first_product)
SEMANTIC("6 weights, adding to y rounds once", adding_rounds_once)
SEMANTIC("7 backward, w times dy is rounded before d_weight", d_weight_terms_are_rounded)
SEMANTIC("7 backward, d_routing_weights from unrounded products", routing_gradient_is_unrounded)
SEMANTIC("7 backward, experts without rows", experts_without_rows)
SEMANTIC("8 routing arrays, rows on which the maps disagree", routing_arrays_rule)
SEMANTIC("10 no state, any content of the workspace", workspace_content)
SEMANTIC("11 faults are sticky and saturate", faults_rule)
