// ggm_grouped_gemm_array: groups of any size, order, leading dimension and alignment, given by device arrays.
#include "conformance/pairwise.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/reference_gemm.h"
#include "support/scene.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

struct ArrayCase {
  std::int32_t type = GGM_TYPE_FLOAT32, a_order = GGM_ORDER_MK, b_order = GGM_ORDER_NK, index_type = GGM_INDEX_INT32;
  Index groups = 1;
  int scale = 0;  // 0 plain, 1 alpha, 2 add, 3 add in place
  bool wide_output = false, gaps = false, same_sizes = false;
  Index misalign = 0;
  int min_alignment = 0;  // bytes; groups that break it are skipped
  std::uint32_t seed = 0;

  std::string text() const {
    return std::string(name_of(type)) + (wide_output ? "->f32" : "") + (a_order == GGM_ORDER_MK ? " mk" : " km") +
           (b_order == GGM_ORDER_NK ? " nk" : " kn") + (index_type == GGM_INDEX_INT64 ? " i64" : " i32") +
           " groups=" + std::to_string(groups) + " scale=" + std::to_string(scale) + (gaps ? " gaps" : "") +
           (same_sizes ? " same" : "") + " misalign=" + std::to_string(misalign) + " min=" + std::to_string(min_alignment) +
           " seed=" + std::to_string(seed);
  }
};

constexpr Index kExtents[] = {1, 2, 3, 7, 8, 15, 17, 24, 64, 65, 128, 129, 200, 0};

// A device array of pointers into tensors.
Tensor& pointer_array(Scene* scene, const char* name, const std::vector<const void*>& pointers) {
  Tensor& tensor = scene->input(name, kInt64, {1, 1, static_cast<Index>(pointers.size())});
  return tensor.fill(
      [&](Index, Index, Index i) { return static_cast<Index>(reinterpret_cast<std::uintptr_t>(pointers[at(i)])); });
}

struct ArrayRun {
  const ArrayCase& line;
  Scene scene;
  ggm_grouped_gemm_array_problem_t problem = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  ggm_grouped_gemm_array_tensors_t tensors = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  std::vector<Index> m, n, k, lda, ldb, ldc, ldd;
  std::vector<Tensor*> a, b, c, d;
  Tensor* faults = nullptr;

  ArrayRun(const Handle& handle, const ArrayCase& l) : line(l), scene(handle) {
    for (Index g = 0; g < l.groups; ++g) make_group(l.same_sizes ? 0 : g, g);
    problem.groups = l.groups;
    problem.max_m = problem.max_n = problem.max_k = 200;
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

  void make_group(Index rule, Index g) {
    const auto extent = [&](std::uint32_t which) {
      return kExtents[mix(static_cast<std::uint32_t>(rule), which, line.seed) % (line.same_sizes ? 13 : 14)];
    };
    m.push_back(extent(1));
    n.push_back(extent(2));
    k.push_back(extent(3));
    const Index gap = line.gaps ? 1 + g % 9 : 0, shift = line.misalign == 0 ? 0 : (line.misalign + g) % 9;
    const Index a_rows = line.a_order == GGM_ORDER_MK ? m[at(g)] : k[at(g)],
                a_columns = line.a_order == GGM_ORDER_MK ? k[at(g)] : m[at(g)];
    const Index b_rows = line.b_order == GGM_ORDER_NK ? n[at(g)] : k[at(g)],
                b_columns = line.b_order == GGM_ORDER_NK ? k[at(g)] : n[at(g)];
    lda.push_back(a_columns + gap);
    ldb.push_back(b_columns + gap);
    ldc.push_back(n[at(g)] + (line.scale == 3 ? gap : 2 * gap));
    ldd.push_back(n[at(g)] + gap);
    a.push_back(&scene.input("a" + std::to_string(g), line.type, {1, a_rows, a_columns, lda.back()}, shift));
    a.back()->fill([&](Index, Index r, Index col) { return P(g * 1000 + r, col); });
    b.push_back(&scene.input("b" + std::to_string(g), line.type, {1, b_rows, b_columns, ldb.back()}, (shift + 1) / 2));
    b.back()->fill([&](Index, Index r, Index col) { return Q(g, r, col); });
    d.push_back(&scene.output("d" + std::to_string(g), d_type(), {1, m[at(g)], n[at(g)], ldd.back()}, shift));
    const auto old = [&](Index, Index r, Index col) { return P(g + r, col + 2); };
    if (line.scale == 3 || line.min_alignment > 0) d.back()->fill(old);
    if (line.scale == 2) {
      c.push_back(&scene.input("c" + std::to_string(g), d_type(), {1, m[at(g)], n[at(g)], ldc.back()}, shift));
      c.back()->fill(old);
    }
    if (line.scale == 3) c.push_back(d.back());
  }

  void set_tensors() {
    const std::int32_t element = index_element(line.index_type);
    const auto numbers = [&](const char* name, const std::vector<Index>& values) -> const void* {
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
    const auto good = [&](const Tensor* tensor, Index ld) {
      return reinterpret_cast<std::uintptr_t>(tensor->data()) % static_cast<unsigned>(line.min_alignment) == 0 &&
             ld * bytes_of(tensor->type()) % line.min_alignment == 0;
    };
    return (k[g] == 0 || (good(a[g], lda[g]) && good(b[g], ldb[g]))) && good(d[g], ldd[g]) && (c.empty() || good(c[g], ldc[g]));
  }

  void check() const {
    Index skipped = 0;
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

void arrays(bool cuda) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const std::vector<int>& row : all_pairs({4, 2, 2, 2, 5, 4, 2, 2, 2, 3, 3, 4}, 77)) {
      constexpr Index groups[] = {1, 2, 5, 17, 40}, misaligns[] = {0, 1, 4};
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
      const std::string text = backend.name + " " + c.text();
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      ArrayRun run(handle, c);
      run.scene.run_twice(op::grouped_gemm_array, run.problem, run.tensors);
      run.check();
    }
  }
}

void hostile_sizes(bool cuda) {
  // Sizes below 0 and above the bound are clamped, one fault a group; the memory holds the bound.
  const Handle handle(backends(cuda).front());
  Scene scene(handle);
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = 4;
  p.max_m = p.max_n = p.max_k = 9;
  p.a_type = p.b_type = GGM_TYPE_FLOAT32;
  p.index_type = GGM_INDEX_INT64;
  p.a_order = GGM_ORDER_MK;
  p.b_order = GGM_ORDER_NK;
  const std::vector<Index> m{INT64_MAX, -1, 9, 3}, n{9, 9, INT64_MIN, 4}, k{9, 9, 9, Index{1} << 40}, nine(4, 9);
  Tensor& a = scene.input("a", GGM_TYPE_FLOAT32, {4, 9, 9}).fill([](Index b, Index r, Index c) { return P(b * 10 + r, c); });
  Tensor& b = scene.input("b", GGM_TYPE_FLOAT32, {4, 9, 9}).fill([](Index e, Index r, Index c) { return Q(e, r, c); });
  Tensor& d = scene.output("d", GGM_TYPE_FLOAT32, {4, 9, 9}).fill([](Index, Index, Index) { return 1000; });
  Tensor& faults = scene.faults();
  const auto matrices = [&](const char* name, Tensor& of) {
    std::vector<const void*> list;
    for (int g = 0; g < 4; ++g) list.push_back(static_cast<char*>(of.data()) + g * 81 * 4);
    return pointer_array(&scene, name, list).data();
  };
  ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  t.m = scene.input("m", kInt64, {1, 1, 4}).assign(m).data();
  t.n = scene.input("n", kInt64, {1, 1, 4}).assign(n).data();
  t.k = scene.input("k", kInt64, {1, 1, 4}).assign(k).data();
  t.lda = t.ldb = t.ldd = scene.input("ld", kInt64, {1, 1, 4}).assign(nine).data();
  t.a = static_cast<const void* const*>(matrices("pa", a));
  t.b = static_cast<const void* const*>(matrices("pb", b));
  t.d = static_cast<void* const*>(matrices("pd", d));
  t.faults = static_cast<std::uint32_t*>(faults.data());
  scene.run_twice(op::grouped_gemm_array, p, t);
  std::vector<double> want(4 * 81, 1000.0);
  for (const Index g : {Index{0}, Index{3}}) {
    const Index rows = g == 0 ? 9 : 3, columns = g == 0 ? 9 : 4;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        double sum = 0;
        for (Index l = 0; l < 9; ++l) sum += P(g * 10 + i, l) * Q(g, j, l);
        want[at(g * 81 + i * 9 + j)] = sum;
      }
  }
  const std::string wrong = difference(d, want);
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(faults.integer(GGM_FAULT_SIZE_CLAMPED) == 4);
}

}  // namespace

TEST_CASE("grouped_gemm_array: integers bit for bit over sizes, orders, gaps and alignments", "[host]") { arrays(false); }
TEST_CASE("grouped_gemm_array: integers bit for bit over sizes, orders, gaps and alignments, GPU", "[gpu]") { arrays(true); }
TEST_CASE("grouped_gemm_array: hostile sizes are clamped and counted", "[host]") { hostile_sizes(false); }
TEST_CASE("grouped_gemm_array: hostile sizes are clamped and counted, GPU", "[gpu]") { hostile_sizes(true); }
