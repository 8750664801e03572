// src/problem: how defaults resolve. What is refused is the business of tests/misuse.
#include "problem/problem.h"

#include <string>

#include "base/status.h"
#include "support/test.h"

using namespace ggm;

TEST_CASE("route problem: zero means as many rows as slots, first_expert + experts in all, packed ids", "[host]") {
  ggm_route_problem_t in = GGM_ROUTE_PROBLEM_INIT;
  in.tokens = 10, in.top_k = 3, in.experts = 4, in.first_expert = 8, in.id_type = GGM_INDEX_INT64;
  RouteProblem p;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK(p.assignments == 30);
  CHECK(p.max_rows == 30);
  CHECK(p.experts_total == 12);
  CHECK(p.ids_ld == 3);
  in.max_rows = 7;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK(p.max_rows == 7);
  in.max_rows = 31;  // more than there can be
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK(p.max_rows == 30);
}

TEST_CASE("gemm problem: packed leading dimensions and strides of every layout", "[host]") {
  ggm_grouped_gemm_problem_t in = GGM_GROUPED_GEMM_PROBLEM_INIT;
  in.groups = 5, in.m = 7, in.n = 11, in.k = 13;
  in.a_type = in.b_type = GGM_TYPE_BFLOAT16;
  in.b_order = GGM_ORDER_NK;
  GemmProblem p;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK((p.lda == 13 && p.ldb == 13 && p.ldd == 11 && p.stride_b == 11 * 13 && p.stride_d == 0));
  CHECK((p.alpha == 1 && p.beta == 0 && p.d_type == Type::bfloat16 && p.c_type == Type::none));
  in.b_order = GGM_ORDER_KN, in.layout = GGM_LAYOUT_MASKED, in.ldb = 16, in.stride_b = GGM_STRIDE_SHARED;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK((p.ldb == 16 && p.stride_b == 0 && p.stride_a == 7 * 13 && p.stride_d == 7 * 11));
  in.layout = GGM_LAYOUT_VARIABLE_K, in.b_order = 0, in.ldb = 0, in.stride_b = 0, in.d_type = GGM_TYPE_FLOAT32;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK((p.lda == 7 && p.ldb == 11 && p.ldd == 11 && p.stride_d == 7 * 11 && p.rows() == 13 && p.d_type == Type::float32));
}

TEST_CASE("gemm problem: strides of empty matrices too must make offsets of 64 bits", "[host]") {
  ggm_grouped_gemm_problem_t in = GGM_GROUPED_GEMM_PROBLEM_INIT;
  in.layout = GGM_LAYOUT_MASKED;
  in.groups = 3, in.m = 0, in.n = 4, in.k = 4;
  in.a_type = in.b_type = GGM_TYPE_FLOAT32;
  in.b_order = GGM_ORDER_NK;
  GemmProblem p;
  GGM_REQUIRE_OK(make_problem(in, &p));
  in.stride_d = std::int64_t{1} << 62;
  CHECK(make_problem(in, &p) == GGM_STATUS_OVERFLOW);
  in.groups = 1;  // the stride is never used
  CHECK(make_problem(in, &p) == GGM_STATUS_SUCCESS);
}

TEST_CASE("gemm problem: alpha counts with its flag alone, also a real 0", "[host]") {
  ggm_grouped_gemm_problem_t in = GGM_GROUPED_GEMM_PROBLEM_INIT;
  in.a_type = in.b_type = GGM_TYPE_FLOAT32, in.b_order = GGM_ORDER_NK;
  GemmProblem p;
  in.flags = GGM_FLAG_ALPHA;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK(p.alpha == 0);
  in.flags = 0;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK(p.alpha == 1);
  in.alpha = 2;
  REQUIRE(make_problem(in, &p) == GGM_STATUS_RESERVED_NOT_ZERO);
}

TEST_CASE("gemm problem: beta keeps unused rows", "[host]") {
  ggm_grouped_gemm_problem_t in = GGM_GROUPED_GEMM_PROBLEM_INIT;
  in.a_type = in.b_type = in.c_type = GGM_TYPE_FLOAT32, in.b_order = GGM_ORDER_NK;
  GemmProblem p;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK_FALSE(p.keep_unused_rows);
  in.beta = 0.5;
  GGM_REQUIRE_OK(make_problem(in, &p));
  CHECK(p.keep_unused_rows);
}

TEST_CASE("moe problem: the product is rounded to the type of its result unless float32 is asked for", "[host]") {
  ggm_moe_problem_t in = GGM_MOE_PROBLEM_INIT;
  in.tokens = 4, in.top_k = 2, in.experts = 3, in.in_features = 16, in.out_features = 24;
  in.id_type = GGM_INDEX_INT32, in.x_type = in.weight_type = GGM_TYPE_FLOAT16, in.weight_order = GGM_ORDER_KN;
  in.gradients = GGM_GRADIENT_X;
  MoeProblem p;
  GGM_REQUIRE_OK(make_problem(MoeKind::backward, in, &p));
  CHECK((p.y_type == Type::float16 && p.dx_type == Type::float16 && p.d_weight_type == Type::float16));
  CHECK((p.forward_product_type == Type::float16 && p.backward_product_type == Type::float16));
  CHECK((p.weight_ld == 24 && p.weight_stride == 24 * 16 && p.d_weight_ld == 24 && p.x_ld == 16 && p.y_ld == 24));
  in.y_type = GGM_TYPE_FLOAT32, in.dy_type = GGM_TYPE_FLOAT16;
  GGM_REQUIRE_OK(make_problem(MoeKind::backward, in, &p));
  CHECK((p.forward_product_type == Type::float32 && p.backward_product_type == Type::float16));
  in.product_type = GGM_TYPE_FLOAT32;
  GGM_REQUIRE_OK(make_problem(MoeKind::backward, in, &p));
  CHECK(p.backward_product_type == Type::float32);
}

TEST_CASE("moe problem: a forward ignores what only the backward supports", "[host]") {
  ggm_moe_problem_t in = GGM_MOE_PROBLEM_INIT;
  in.tokens = 4, in.top_k = 2, in.experts = 3, in.in_features = 16, in.out_features = 24;
  in.id_type = GGM_INDEX_INT32, in.x_type = in.weight_type = GGM_TYPE_FLOAT16, in.weight_order = GGM_ORDER_NK;
  in.y_type = GGM_TYPE_FLOAT32;  // so dy_type 0 would be float32, which the backward refuses
  in.gradients = GGM_GRADIENT_X;
  MoeProblem p;
  GGM_REQUIRE_OK(make_problem(MoeKind::forward, in, &p));
  REQUIRE(make_problem(MoeKind::backward, in, &p) == GGM_STATUS_UNSUPPORTED);
  CHECK(std::string(last_error()).find("dy_type") != std::string::npos);
}
