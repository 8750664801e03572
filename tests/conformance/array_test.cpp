// ggm_grouped_gemm_array over its table, and with hostile sizes.
#include "conformance/array_case.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

void arrays(bool cuda) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const ArrayCase& line : array_cases()) {
      const std::string text = backend.name + " " + line.text();
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      ArrayRun run(handle, line);
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
