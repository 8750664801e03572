// The decided semantics of the bare grouped products, as named tests on hand-made numbers.
#include <cmath>

#include "conformance/semantics.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;

// ---- 2. zero ----

struct Product {
  std::int32_t type = GGM_TYPE_FLOAT32;
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  std::vector<Index> sizes{2, 1};
  Values a{1, 2, 3, 4}, b{1, 10}, c, d;  // four rows of one number; the last row is in no group
  bool in_place = false;

  Values run(const Handle& handle) {
    Scene scene(handle);
    p.groups = 2;
    p.m = 4;
    p.n = p.k = 1;
    p.b_order = GGM_ORDER_NK;
    p.a_type = p.b_type = type;
    ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
    t.group_sizes = scene.input("sizes", kInt32, {1, 1, 2}).assign(sizes).data();
    t.a = scene.input("a", type, {1, 4, 1}).assign(a).data();
    t.b = scene.input("b", type, {p.stride_b == GGM_STRIDE_SHARED ? 1 : 2, 1, 1}).assign(b).data();
    Tensor& out = scene.output("d", p.d_type ? p.d_type : type, {1, 4, 1});
    if (!d.empty()) out.assign(d);
    t.d = out.data();
    if (!c.empty()) t.c = scene.input("c", p.c_type, {1, 4, 1}).assign(c).data();
    if (in_place) t.c = out.data();
    scene.run_twice(op::grouped_gemm, p, t);
    return out.values();
  }
};

void zero_is_default(const Handle& handle) {
  Product q;
  CHECK(q.run(handle) == Values{1, 2, 30, 0});  // alpha 0 without its flag is 1
  q.p.flags = GGM_FLAG_ALPHA;
  CHECK(q.run(handle) == Values{0, 0, 0, 0});  // with it, 0
  q.p.alpha = 0.5;
  CHECK(q.run(handle) == Values{0.5, 1, 15, 0});
  Product shared;
  shared.p.stride_b = GGM_STRIDE_SHARED;
  shared.b = {5};
  CHECK(shared.run(handle) == Values{5, 10, 15, 0});
}

// ---- 9. groups ----

void beta_rule(const Handle& handle) {
  Product q;
  q.c = {100, 200, 300, NAN};
  q.d = {-1, -2, -3, -4};
  q.p.c_type = GGM_TYPE_FLOAT32;
  q.p.beta = 2;
  CHECK(q.run(handle) == Values{201, 402, 630, -4});  // the unused row stays
  Product in_place;
  in_place.d = {100, 200, 300, 400};
  in_place.in_place = true;
  in_place.p.c_type = GGM_TYPE_FLOAT32;
  in_place.p.beta = -1;
  CHECK(in_place.run(handle) == Values{-99, -198, -270, 400});
  Product unread;  // beta 0: C is not read
  unread.c = {NAN, NAN, NAN, NAN};
  unread.p.c_type = GGM_TYPE_FLOAT32;
  CHECK(unread.run(handle) == Values{1, 2, 30, 0});
  Product keep;
  keep.d = {-1, -2, -3, -4};
  keep.p.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
  CHECK(keep.run(handle) == Values{1, 2, 30, -4});
}

void no_group_reads_nothing(const Handle& handle) {
  // Without groups every input may be absent; the rows of D belong to none and become zero.
  for (const std::int32_t form :
       {GGM_GROUPS_SIZES, GGM_GROUPS_OFFSETS, GGM_GROUPS_ENDS, GGM_GROUPS_STARTS_SIZES, GGM_GROUPS_ROW_GROUP}) {
    INFO("group_form " << form);
    Scene scene(handle);
    ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
    p.m = 4;
    p.n = 3;
    p.k = 2;
    p.group_form = form;
    p.b_order = GGM_ORDER_NK;
    p.a_type = p.b_type = GGM_TYPE_FLOAT32;
    ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
    Tensor& d = scene.output("d", GGM_TYPE_FLOAT32, {1, 4, 3});
    t.d = d.data();
    scene.run_twice(op::grouped_gemm, p, t);
    CHECK(d.values() == Values(12, 0.0));
  }
}

}  // namespace

SEMANTIC("2 zero is the default, alpha counts with its flag alone", zero_is_default)
SEMANTIC("9 groups, beta, C in place and unused rows", beta_rule)
SEMANTIC("9 groups, without any group nothing is read", no_group_reads_nothing)
