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

// Row ranges of three groups of four rows of one number, B_e = 10^e: the digit of a row tells its group. Returns d and counts
// faults; `bad` is the fault word that may count.
Values grouped_rows(const Handle& handle, std::int32_t form, std::int32_t index_type, const std::vector<Index>& offsets,
                    const std::vector<Index>& sizes, std::int32_t bad, Index* count) {
  Scene scene(handle);
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.groups = 3;
  p.m = 4;
  p.n = p.k = 1;
  p.group_form = form;
  p.index_type = index_type;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = GGM_TYPE_FLOAT32;
  const auto array = [&](const char* name, const std::vector<Index>& content) -> const void* {
    if (content.empty()) return nullptr;
    return scene.input(name, index_element(index_type), {1, 1, static_cast<Index>(content.size())}).assign(content).data();
  };
  ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
  t.group_offsets = array("group_offsets", offsets);
  t.group_sizes = array("group_sizes", sizes);
  t.a = scene.input("a", GGM_TYPE_FLOAT32, {1, 4, 1}).assign(Values{1, 2, 3, 4}).data();
  t.b = scene.input("b", GGM_TYPE_FLOAT32, {3, 1, 1}).assign(Values{1, 10, 100}).data();
  Tensor& d = scene.output("d", GGM_TYPE_FLOAT32, {1, 4, 1});
  t.d = d.data();
  Tensor& faults = scene.faults();
  t.faults = static_cast<std::uint32_t*>(faults.data());
  scene.run_twice(op::grouped_gemm, p, t);
  for (Index word = 0; word < GGM_FAULT_WORDS; ++word)
    if (word != bad) CHECK(faults.integer(word) == 0);
  *count = faults.integer(bad);
  return d.values();
}

void clamping_rule(const Handle& handle) {
  const auto check = [&](std::int32_t form, std::int32_t type, const std::vector<Index>& offsets,
                         const std::vector<Index>& sizes, const Values& want, Index faults) {
    INFO("group_form " << form << ", index_type " << type);
    Index counted = 0;
    const bool monotone = form == GGM_GROUPS_OFFSETS || form == GGM_GROUPS_ENDS;
    CHECK(grouped_rows(handle, form, type, offsets, sizes, monotone ? GGM_FAULT_BAD_ROUTING : GGM_FAULT_SIZE_CLAMPED,
                       &counted) == want);
    CHECK(counted == faults);
  };
  for (const std::int32_t type : {GGM_INDEX_INT32, GGM_INDEX_INT64}) {
    // As they are, then: an offset below its predecessor is raised to it, one beyond the rows lowered to them.
    check(GGM_GROUPS_OFFSETS, type, {0, 1, 3, 4}, {}, {1, 20, 30, 400}, 0);
    check(GGM_GROUPS_OFFSETS, type, {-2, 3, 1, 4}, {}, {1, 2, 3, 400}, 2);
    check(GGM_GROUPS_OFFSETS, type, {1, 2, 9, 3}, {}, {0, 2, 30, 40}, 2);
    check(GGM_GROUPS_ENDS, type, {2, 1, 7}, {}, {1, 2, 300, 400}, 2);
    check(GGM_GROUPS_SIZES, type, {}, {1, -5, 9}, {1, 200, 300, 400}, 2);
    check(GGM_GROUPS_STARTS_SIZES, type, {3, -1, 9}, {7, 2, 1}, {10, 20, 0, 4}, 3);
  }
  // Only int64 holds these. Their low halves are good indices, so that reading 32 bits would go unseen otherwise.
  constexpr Index two32 = Index{1} << 32;
  check(GGM_GROUPS_OFFSETS, GGM_INDEX_INT64, {0, two32 + 1, two32 + 3, 4}, {}, {1, 2, 3, 4}, 2);
  check(GGM_GROUPS_OFFSETS, GGM_INDEX_INT64, {0, 1, 3 - two32, INT64_MAX}, {}, {1, 200, 300, 400}, 2);
  check(GGM_GROUPS_ENDS, GGM_INDEX_INT64, {1, two32 + 2, INT64_MIN}, {}, {1, 20, 30, 40}, 2);
  check(GGM_GROUPS_SIZES, GGM_INDEX_INT64, {}, {1, two32 + 1, 1}, {1, 20, 30, 40}, 2);
  check(GGM_GROUPS_STARTS_SIZES, GGM_INDEX_INT64, {two32, 0, 3}, {1, 2 - two32, two32 + 1}, {0, 0, 0, 400}, 3);
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
SEMANTIC("9 groups, sizes and offsets of 32 and 64 bits are clamped and made monotone", clamping_rule)
SEMANTIC("9 groups, without any group nothing is read", no_group_reads_nothing)
