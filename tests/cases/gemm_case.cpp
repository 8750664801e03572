#include "cases/gemm_case.h"

#include <cmath>

namespace ggm_test::cases {
namespace {

std::int64_t shift_of(const CallOptions& options, const char* name) {
  const auto found = options.shift.find(name);
  return found == options.shift.end() ? 0 : found->second;
}

bool is(const GemmCase& gemm, std::int32_t layout) { return gemm.layout == layout; }

// A stride of GGM_STRIDE_SHARED: one matrix for all groups.
Shape grouped_shape(std::int64_t groups, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t stride) {
  return stride == GGM_STRIDE_SHARED ? Shape{1, rows, columns, ld, 0} : Shape{groups, rows, columns, ld, stride};
}

Shape shape_of_a(const GemmCase& g) {
  if (is(g, GGM_LAYOUT_CONTIGUOUS)) return {1, g.m, g.k, g.lda};
  if (is(g, GGM_LAYOUT_MASKED)) return grouped_shape(g.groups, g.m, g.k, g.lda, g.stride_a);
  return {1, g.k, g.m, g.lda};
}
Shape shape_of_b(const GemmCase& g) {
  if (is(g, GGM_LAYOUT_VARIABLE_K)) return {1, g.k, g.n, g.ldb};
  return g.b_order == GGM_ORDER_NK ? grouped_shape(g.groups, g.n, g.k, g.ldb, g.stride_b)
                                   : grouped_shape(g.groups, g.k, g.n, g.ldb, g.stride_b);
}
Shape shape_of_d(const GemmCase& g) {
  return is(g, GGM_LAYOUT_CONTIGUOUS) ? Shape{1, g.m, g.n, g.ldd} : Shape{g.groups, g.m, g.n, g.ldd, g.stride_d};
}

Values b_as_stored(const GemmCase& g) {
  if (is(g, GGM_LAYOUT_VARIABLE_K) || g.b_order == GGM_ORDER_NK) return g.b;
  Values to(g.b.size());
  const std::int64_t matrices = g.n * g.k == 0 ? 0 : static_cast<std::int64_t>(g.b.size()) / (g.n * g.k);
  for (std::int64_t e = 0; e < matrices; ++e)
    for (std::int64_t n = 0; n < g.n; ++n)
      for (std::int64_t k = 0; k < g.k; ++k)
        to[static_cast<std::size_t>((e * g.k + k) * g.n + n)] = g.b[static_cast<std::size_t>((e * g.n + n) * g.k + k)];
  return to;
}

ggm_grouped_gemm_problem_t problem_of(const GemmCase& g) {
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.flags = g.flags;
  p.groups = g.groups;
  p.m = g.m;
  p.n = g.n;
  p.k = g.k;
  p.lda = g.lda;
  p.ldb = g.ldb;
  p.ldc = g.ldc;
  p.ldd = g.ldd;
  p.stride_a = g.stride_a;
  p.stride_b = g.stride_b;
  p.stride_c = g.stride_c;
  p.stride_d = g.stride_d;
  p.alpha = g.alpha;
  p.beta = g.beta;
  p.layout = g.layout;
  p.group_form = g.group_form;
  p.index_type = g.index_type;
  p.b_order = is(g, GGM_LAYOUT_VARIABLE_K) ? 0 : g.b_order;
  p.a_type = p.b_type = g.type;
  p.c_type = g.c.empty() ? 0 : (g.c_type ? g.c_type : g.type_of_d());
  p.d_type = g.d_type;
  return p;
}

}  // namespace

std::int64_t sum_of(const Ids& sizes) {
  std::int64_t sum = 0;
  for (std::int64_t size : sizes) sum += size;
  return sum;
}

GemmCase contiguous(std::int32_t type, const Ids& sizes, std::int64_t rows, std::int64_t n, std::int64_t k) {
  GemmCase g;
  g.type = type;
  g.groups = static_cast<std::int64_t>(sizes.size());
  g.sizes = sizes;
  g.m = rows;
  g.n = n;
  g.k = k;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < k; ++c) g.a.push_back(P(r, c));
  for (std::int64_t e = 0; e < g.groups; ++e)
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t c = 0; c < k; ++c) g.b.push_back(Q(e, r, c));
  return g;
}

GemmCase masked(std::int32_t type, const Ids& sizes, std::int64_t max_m, std::int64_t n, std::int64_t k) {
  const std::int64_t groups = static_cast<std::int64_t>(sizes.size());
  GemmCase g = contiguous(type, sizes, groups * max_m, n, k);
  g.layout = GGM_LAYOUT_MASKED;
  g.m = max_m;
  return g;
}

GemmCase variable_k(std::int32_t type, const Ids& sizes, std::int64_t rows, std::int64_t m, std::int64_t n) {
  GemmCase g;
  g.layout = GGM_LAYOUT_VARIABLE_K;
  g.type = type;
  g.groups = static_cast<std::int64_t>(sizes.size());
  g.sizes = sizes;
  g.m = m;
  g.n = n;
  g.k = rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < m; ++c) g.a.push_back(P(r, c));
    for (std::int64_t c = 0; c < n; ++c) g.b.push_back(P2(r, c));
  }
  return g;
}

GemmCase tag_contiguous(std::int32_t type, const Ids& sizes, std::int64_t features) {
  GemmCase g = contiguous(type, sizes, sum_of(sizes), features, features);
  g.b.clear();
  for (std::int64_t e = 0; e < g.groups; ++e)
    for (std::int64_t n = 0; n < features; ++n)
      for (std::int64_t k = 0; k < features; ++k) g.b.push_back(tag_weight(type, e, n, k));
  return g;
}

GemmCall::GemmCall(const Handle& handle, const GemmCase& gemm, const CallOptions& options)
    : problem(problem_of(gemm)), options_(options), scene_(handle) {
  scene_.set_extra_workspace(options.extra_workspace);
  const auto input = [&](const char* name, std::int32_t type, Shape shape, const auto& values) -> const void* {
    all_.push_back(&scene_.input(name, type, shape, shift_of(options, name)));
    all_.back()->assign(values);
    return pointer(*all_.back());
  };
  const auto indices = [&](const char* name, const Ids& values) {
    return input(name, index_element(gemm.index_type), {1, 1, static_cast<std::int64_t>(values.size())}, values);
  };
  const bool has_sizes = gemm.group_form == GGM_GROUPS_SIZES || gemm.group_form == GGM_GROUPS_STARTS_SIZES;
  if (has_sizes) tensors.group_sizes = indices("group_sizes", gemm.sizes);
  if (!gemm.offsets.empty()) tensors.group_offsets = indices("group_offsets", gemm.offsets);
  if (!gemm.row_group.empty()) tensors.row_group = indices("row_group", gemm.row_group);
  tensors.a = input("a", gemm.type, shape_of_a(gemm), gemm.a);
  tensors.b = input("b", gemm.type, shape_of_b(gemm), b_as_stored(gemm));
  d = &scene_.output("d", gemm.type_of_d(), shape_of_d(gemm), shift_of(options, "d"));
  all_.push_back(d);
  if (options.outputs_hold) d->fill([&](auto, auto, auto) { return *options.outputs_hold; });
  tensors.d = pointer(*d);
  if (gemm.c.empty()) return;
  if (gemm.c_is_d) {
    d->assign(gemm.c);
    tensors.c = tensors.d;
    return;
  }
  Shape shape = shape_of_d(gemm);
  shape.ld = gemm.ldc;
  shape.stride = gemm.stride_c;
  tensors.c = input("c", gemm.c_type ? gemm.c_type : gemm.type_of_d(), shape, gemm.c);
}

Values GemmCall::run() {
  scene_.run_twice(as_called(op::grouped_gemm, options_), problem, tensors);
  return d->values();
}

void GemmCall::upload() {
  for (Tensor* tensor : all_) tensor->upload();
}

Values grouped_gemm(const Handle& handle, const GemmCase& gemm, const CallOptions& options) {
  return GemmCall(handle, gemm, options).run();
}

Values expected_gemm(const GemmCase& gemm, Rounding rounding) {
  const auto rounded = [](std::int32_t type, Values values) {
    for (double& v : values) v = round_to(type, v);
    return values;
  };
  GemmInput in;
  in.problem = problem_of(gemm);
  in.sizes = gemm.sizes;
  in.offsets = gemm.offsets;
  in.row_group = gemm.row_group;
  in.a = rounded(gemm.type, gemm.a);
  in.b = rounded(gemm.type, b_as_stored(gemm));
  in.c = rounded(in.problem.c_type, gemm.c);
  const Shape shape = shape_of_d(gemm);
  in.d.assign(static_cast<std::size_t>(shape.batches * shape.rows * shape.columns), std::nan(""));
  if (gemm.c_is_d) in.d = in.c;
  return gemm_reference(in, rounding).d;
}

void require_gemm(const Handle& handle, const GemmCase& gemm, const CallOptions& options) {
  require_same(grouped_gemm(handle, gemm, options), expected_gemm(gemm), "d", gemm.n);
}

}  // namespace ggm_test::cases
