// One line of the table of ggm_grouped_gemm_array and running it on a handle: groups of any size, order, leading dimension and
// alignment, given by device arrays. Empty groups get pointers that must not be looked at.
#pragma once

#include "conformance/pairwise.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/reference_gemm.h"
#include "support/scene.h"

namespace ggm_test {

inline std::size_t array_at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct ArrayCase {
  std::int32_t type = GGM_TYPE_FLOAT32, a_order = GGM_ORDER_MK, b_order = GGM_ORDER_NK, index_type = GGM_INDEX_INT32;
  std::int64_t groups = 1;
  int scale = 0;  // 0 plain, 1 alpha, 2 add, 3 add in place
  bool wide_output = false, gaps = false, same_sizes = false;
  std::int64_t misalign = 0;
  int min_alignment = 0;  // bytes; groups that break it are skipped
  std::uint32_t seed = 0;
  std::int64_t bound = 200;  // of m, n and k

  std::string text() const {
    return std::string(name_of(type)) + (wide_output ? "->f32" : "") + (a_order == GGM_ORDER_MK ? " mk" : " km") +
           (b_order == GGM_ORDER_NK ? " nk" : " kn") + (index_type == GGM_INDEX_INT64 ? " i64" : " i32") +
           " groups=" + std::to_string(groups) + " scale=" + std::to_string(scale) + (gaps ? " gaps" : "") +
           (same_sizes ? " same" : "") + " misalign=" + std::to_string(misalign) + " min=" + std::to_string(min_alignment) +
           " seed=" + std::to_string(seed) + (bound == 200 ? "" : " bound=" + std::to_string(bound));
  }
};

inline constexpr std::int64_t kArrayExtents[] = {1, 2, 3, 7, 8, 15, 17, 24, 64, 65, 128, 129, 200, 0};

// A device array of pointers into tensors.
inline Tensor& pointer_array(Scene* scene, const char* name, const std::vector<const void*>& pointers) {
  Tensor& tensor = scene->input(name, kInt64, {1, 1, static_cast<std::int64_t>(pointers.size())});
  return tensor.fill([&](std::int64_t, std::int64_t, std::int64_t i) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointers[array_at(i)]));
  });
}

struct ArrayRun {
  const ArrayCase& line;
  Scene scene;
  ggm_grouped_gemm_array_problem_t problem = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  ggm_grouped_gemm_array_tensors_t tensors = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  std::vector<std::int64_t> m, n, k, lda, ldb, ldc, ldd;
  std::vector<Tensor*> a, b, c, d;
  Tensor* faults = nullptr;

  ArrayRun(const Handle& handle, const ArrayCase& l) : line(l), scene(handle) {
    for (std::int64_t g = 0; g < l.groups; ++g) make_group(l.same_sizes ? 0 : g, g);
    problem.groups = l.groups;
    problem.max_m = problem.max_n = problem.max_k = l.bound;
    if (l.same_sizes) problem.max_m = m[0], problem.max_n = n[0], problem.max_k = k[0];
    problem.index_type = l.index_type;
    problem.a_order = l.a_order;
    problem.b_order = l.b_order;
    problem.a_type = problem.b_type = l.type;
    problem.d_type = l.wide_output ? GGM_TYPE_FLOAT32 : 0;
    problem.min_alignment = l.min_alignment;
    if (l.scale == 1) problem.alpha = -2, problem.flags = GGM_FLAG_ALPHA;
    if (l.scale >= 2) problem.beta = 3, problem.c_type = d_type();
    set_tensors();
  }

  std::int32_t d_type() const { return line.wide_output ? GGM_TYPE_FLOAT32 : line.type; }

  void make_group(std::int64_t rule, std::int64_t g) {
    const auto extent = [&](std::uint32_t which) {
      return std::min(line.bound,
                      kArrayExtents[mix(static_cast<std::uint32_t>(rule), which, line.seed) % (line.same_sizes ? 13 : 14)]);
    };
    m.push_back(extent(1));
    n.push_back(extent(2));
    k.push_back(extent(3));
    const std::int64_t gap = line.gaps ? 1 + g % 9 : 0, shift = line.misalign == 0 ? 0 : (line.misalign + g) % 9;
    const std::int64_t a_rows = line.a_order == GGM_ORDER_MK ? m[array_at(g)] : k[array_at(g)],
                       a_columns = line.a_order == GGM_ORDER_MK ? k[array_at(g)] : m[array_at(g)];
    const std::int64_t b_rows = line.b_order == GGM_ORDER_NK ? n[array_at(g)] : k[array_at(g)],
                       b_columns = line.b_order == GGM_ORDER_NK ? k[array_at(g)] : n[array_at(g)];
    lda.push_back(a_columns + gap);
    ldb.push_back(b_columns + gap);
    ldc.push_back(n[array_at(g)] + (line.scale == 3 ? gap : 2 * gap));
    ldd.push_back(n[array_at(g)] + gap);
    a.push_back(&scene.input("a" + std::to_string(g), line.type, {1, a_rows, a_columns, lda.back()}, shift));
    a.back()->fill([&](std::int64_t, std::int64_t r, std::int64_t col) { return P(g * 1000 + r, col); });
    b.push_back(&scene.input("b" + std::to_string(g), line.type, {1, b_rows, b_columns, ldb.back()}, (shift + 1) / 2));
    b.back()->fill([&](std::int64_t, std::int64_t r, std::int64_t col) { return Q(g, r, col); });
    d.push_back(&scene.output("d" + std::to_string(g), d_type(), {1, m[array_at(g)], n[array_at(g)], ldd.back()}, shift));
    const auto old = [&](std::int64_t, std::int64_t r, std::int64_t col) { return P(g + r, col + 2); };
    if (line.scale == 3 || line.min_alignment > 0) d.back()->fill(old);
    if (line.scale == 2) {
      c.push_back(&scene.input("c" + std::to_string(g), d_type(), {1, m[array_at(g)], n[array_at(g)], ldc.back()}, shift));
      c.back()->fill(old);
    }
    if (line.scale == 3) c.push_back(d.back());
  }

  void set_tensors() {
    const std::int32_t element = index_element(line.index_type);
    const auto numbers = [&](const char* name, const std::vector<std::int64_t>& values) -> const void* {
      return scene.input(name, element, {1, 1, line.groups}).assign(values).data();
    };
    if (!line.same_sizes) {
      tensors.m = numbers("m", m);
      tensors.n = numbers("n", n);
      tensors.k = numbers("k", k);
    }
    if (line.gaps) {
      tensors.lda = numbers("lda", lda);
      tensors.ldb = numbers("ldb", ldb);
      if (line.scale >= 2) tensors.ldc = numbers("ldc", ldc);
      tensors.ldd = numbers("ldd", ldd);
    }
    // Empty groups get pointers that must not be looked at.
    const auto pointers = [&](const char* name, const std::vector<Tensor*>& list, bool inner) {
      std::vector<const void*> out;
      for (std::size_t g = 0; g < list.size(); ++g) {
        const bool empty = m[g] == 0 || n[g] == 0 || (inner && k[g] == 0);
        out.push_back(!empty ? list[g]->data() : g % 2 ? nullptr : static_cast<const char*>(list[g]->data()) + 1);
      }
      return pointer_array(&scene, name, out).data();
    };
    tensors.a = static_cast<const void* const*>(pointers("a", a, true));
    tensors.b = static_cast<const void* const*>(pointers("b", b, true));
    if (!c.empty()) tensors.c = static_cast<const void* const*>(pointers("c", c, false));
    tensors.d = static_cast<void* const*>(pointers("d", d, false));
    faults = &scene.faults();
    tensors.faults = static_cast<std::uint32_t*>(faults->data());
  }

  // Whether group g keeps min_alignment in every pointer and leading dimension that it uses.
  bool aligned(std::size_t g) const {
    if (line.min_alignment == 0 || m[g] == 0 || n[g] == 0) return true;
    const auto good = [&](const Tensor* tensor, std::int64_t ld) {
      return reinterpret_cast<std::uintptr_t>(tensor->data()) % static_cast<unsigned>(line.min_alignment) == 0 &&
             ld * bytes_of(tensor->type()) % line.min_alignment == 0;
    };
    return (k[g] == 0 || (good(a[g], lda[g]) && good(b[g], ldb[g]))) && good(d[g], ldd[g]) && (c.empty() || good(c[g], ldc[g]));
  }

  void check() const {
    std::int64_t skipped = 0;
    for (std::size_t g = 0; g < m.size(); ++g) {
      INFO("group " << g << " m=" << m[g] << " n=" << n[g] << " k=" << k[g]);
      std::vector<double> want = d[g]->initial_values();
      if (aligned(g)) {
        want =
            product(m[g], n[g], k[g], a[g]->initial_values().data(), line.a_order, b[g]->initial_values().data(), line.b_order);
        const std::vector<double> old = c.empty() ? std::vector<double>(want.size()) : c[g]->initial_values();
        const double alpha = k[g] == 0 ? 0 : line.scale == 1 ? -2 : 1, beta = line.scale >= 2 ? 3 : 0;
        for (std::size_t i = 0; i < want.size(); ++i)
          want[i] = scale_and_add(Rounding::contract, line.type, d_type(), alpha, want[i], beta, old[i]);
      } else {
        ++skipped;
      }
      const std::string wrong = difference(*d[g], want);
      INFO(wrong);
      REQUIRE(wrong.empty());
    }
    REQUIRE(faults->integer(GGM_FAULT_MISALIGNED_GROUP) == skipped);
    REQUIRE(faults->integer(GGM_FAULT_SIZE_CLAMPED) == 0);
  }
};

// The table: all pairs of its axes, and for every order a product for each height of row tiles.
inline std::vector<ArrayCase> array_cases() {
  std::vector<ArrayCase> cases;
  for (const std::vector<int>& row : all_pairs({4, 2, 2, 2, 5, 4, 2, 2, 2, 3, 3, 4}, 77)) {
    constexpr std::int64_t groups[] = {1, 2, 5, 17, 40}, misaligns[] = {0, 1, 4};
    constexpr int alignments[] = {0, 8, 16};
    ArrayCase c;
    c.type = kFloatTypes[row[0]];
    c.a_order = row[1] ? GGM_ORDER_KM : GGM_ORDER_MK;
    c.b_order = row[2] ? GGM_ORDER_KN : GGM_ORDER_NK;
    c.index_type = row[3] ? GGM_INDEX_INT64 : 0;
    c.groups = groups[row[4]];
    c.scale = row[5];
    c.wide_output = is_16bit(c.type) && row[6];
    c.gaps = row[7];
    c.same_sizes = row[8];
    c.misalign = misaligns[row[9]];
    c.min_alignment = alignments[row[10]];
    c.seed = static_cast<std::uint32_t>(row[11]);
    cases.push_back(c);
  }
  for (const std::int32_t type : kFloatTypes)
    for (const std::int32_t a_order : {GGM_ORDER_MK, GGM_ORDER_KM})
      for (const std::int32_t b_order : {GGM_ORDER_NK, GGM_ORDER_KN})
        for (const std::int64_t bound : {20, 50, 250}) {
          ArrayCase c;
          c.type = type;
          c.a_order = a_order;
          c.b_order = b_order;
          c.groups = 6;
          c.bound = bound;
          c.seed = 5;
          cases.push_back(c);
        }
  return cases;
}

}  // namespace ggm_test
