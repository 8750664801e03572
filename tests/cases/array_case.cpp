#include "cases/array_case.h"

#include <numeric>

namespace ggm_test::cases {
namespace {

using Index = std::int64_t;

// A matrix inside a piece of memory: [rows, columns] with rows `ld` apart, from element `at` on.
struct Place {
  Index at = 0, rows = 0, columns = 0, ld = 0;
  Index end() const { return rows * columns == 0 ? at : at + (rows - 1) * ld + columns; }
};

Index packed(Index ld, Index columns) { return ld ? ld : columns; }

class Layout {
 public:
  explicit Layout(const ArrayCase& array) : a(array.groups.size()), b(a.size()), c(a.size()), d(a.size()), array_(array) {
    std::vector<std::size_t> order = array.order;
    if (order.empty()) {
      order.resize(array.groups.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
    }
    for (std::size_t i : order) place(i);
    for (std::size_t i : order) {  // operands shared with another group, once all are placed
      const ArrayGroup& group = array.groups[i];
      if (group.same_a >= 0) a[i].at = a[static_cast<std::size_t>(group.same_a)].at;
      if (group.same_b >= 0) b[i].at = b[static_cast<std::size_t>(group.same_b)].at;
    }
  }

  std::vector<Place> a, b, c, d;
  Index inputs = 0, outputs = 0;  // elements of the two pieces

 private:
  void place(std::size_t i) {
    const ArrayGroup& g = array_.groups[i];
    const bool mk = array_.a_order == GGM_ORDER_MK, nk = array_.b_order == GGM_ORDER_NK;
    a[i] = {0, mk ? g.m : g.k, mk ? g.k : g.m, packed(g.lda, mk ? g.k : g.m)};
    b[i] = {0, nk ? g.n : g.k, nk ? g.k : g.n, packed(g.ldb, nk ? g.k : g.n)};
    c[i] = {0, g.m, g.n, packed(g.ldc, g.n)};
    d[i] = {0, g.m, g.n, packed(g.ldd, g.n)};
    if (g.same_a < 0) put(a[i], inputs);
    if (g.same_b < 0) put(b[i], inputs);
    put(d[i], outputs);
    if (array_.beta != 0) c[i].at = d[i].at;  // C has the type of D, in a piece laid out like the outputs'
  }
  void put(Place& place, Index& used) {
    used += array_.gap;
    place.at = used;
    used = place.end();
  }

  const ArrayCase& array_;
};

// The piece of memory as one row; `fill` writes the elements of each matrix.
void write_matrix(Tensor& piece, const Place& place, const Values& logical, bool transposed) {
  for (Index r = 0; r < place.rows; ++r)
    for (Index col = 0; col < place.columns; ++col)
      piece.set(0, 0, place.at + r * place.ld + col,
                logical[static_cast<std::size_t>(transposed ? col * place.rows + r : r * place.columns + col)]);
}

// Device pointers as int64 elements.
const void* address(const Tensor& piece, Index element) {
  return static_cast<const char*>(piece.data()) + element * bytes_of(piece.type());
}
const void* pointer_of(const ArrayGroup& group, const Tensor& piece, const Place& place) {
  switch (group.pointers) {
    case ArrayGroup::placed: return address(piece, place.at);
    case ArrayGroup::null: return nullptr;
    case ArrayGroup::one_past_the_end: return address(piece, piece.size());
    default: return address(piece, piece.size() / 2);
  }
}

std::vector<Index> addresses(const ArrayCase& array, const Tensor& piece, const std::vector<Place>& places) {
  std::vector<Index> out;
  for (std::size_t i = 0; i < places.size(); ++i)
    out.push_back(static_cast<Index>(reinterpret_cast<std::intptr_t>(pointer_of(array.groups[i], piece, places[i]))));
  return out;
}

Index at_least(Index bound, Index value) { return value > bound ? value : bound; }

// D of each group. Elements of the output piece that belong to no group must still be poison.
std::vector<Values> outputs_of_groups(const Layout& layout, const Tensor& outputs) {
  std::vector<bool> used(static_cast<std::size_t>(layout.outputs), false);
  std::vector<Values> result;
  for (const Place& place : layout.d) {
    Values& dense = result.emplace_back();
    for (Index r = 0; r < place.rows; ++r)
      for (Index col = 0; col < place.columns; ++col) {
        used[static_cast<std::size_t>(place.at + r * place.ld + col)] = true;
        dense.push_back(outputs.at(0, 0, place.at + r * place.ld + col));
      }
  }
  for (Index i = 0; i < layout.outputs; ++i)
    if (!used[static_cast<std::size_t>(i)] && outputs.bits(0, 0, i) != outputs.initial_bits(0, 0, i))
      FAIL("element " << i << " of the output memory belongs to no group and was written");
  return result;
}

}  // namespace

ArrayGroup integer_group(std::int64_t number, std::int64_t m, std::int64_t n, std::int64_t k) {
  ArrayGroup group;
  group.m = m;
  group.n = n;
  group.k = k;
  for (Index r = 0; r < m; ++r)
    for (Index c = 0; c < k; ++c) group.a.push_back(P(number * 1000 + r, c));
  for (Index r = 0; r < n; ++r)
    for (Index c = 0; c < k; ++c) group.b.push_back(Q(number, r, c));
  return group;
}

std::vector<Values> grouped_gemm_array(const Handle& handle, const ArrayCase& array, const CallOptions& options) {
  const Layout layout(array);
  const Index count = static_cast<Index>(array.groups.size());
  Scene scene(handle);
  Tensor& inputs = scene.input("inputs", array.type, {1, 1, layout.inputs});
  Tensor& outputs = scene.output("outputs", array.type_of_d(), {1, 1, layout.outputs});
  Tensor* c = array.beta != 0 ? &scene.input("c", array.type_of_d(), {1, 1, layout.outputs}) : nullptr;
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.flags = array.flags;
  p.groups = count;
  p.alpha = array.alpha;
  p.beta = array.beta;
  p.index_type = array.index_type;
  p.a_order = array.a_order;
  p.b_order = array.b_order;
  p.a_type = p.b_type = array.type;
  p.c_type = c ? array.type_of_d() : 0;
  p.d_type = array.d_type;
  std::vector<Index> m, n, k, lda, ldb, ldc, ldd;
  for (std::size_t i = 0; i < array.groups.size(); ++i) {
    const ArrayGroup& g = array.groups[i];
    if (g.same_a < 0) write_matrix(inputs, layout.a[i], g.a, array.a_order == GGM_ORDER_KM);
    if (g.same_b < 0) write_matrix(inputs, layout.b[i], g.b, array.b_order == GGM_ORDER_KN);
    if (c) write_matrix(*c, layout.c[i], g.c, false);
    p.max_m = at_least(p.max_m, g.m);
    p.max_n = at_least(p.max_n, g.n);
    p.max_k = at_least(p.max_k, g.k);
    m.push_back(g.m);
    n.push_back(g.n);
    k.push_back(g.k);
    lda.push_back(layout.a[i].ld);
    ldb.push_back(layout.b[i].ld);
    ldc.push_back(layout.d[i].ld);
    ldd.push_back(layout.d[i].ld);
  }
  const auto indices = [&](const char* name, std::int32_t type, const std::vector<Index>& values) -> const void* {
    Tensor& tensor = scene.input(name, type, {1, 1, count});
    tensor.assign(values);
    return pointer(tensor);
  };
  const std::int32_t index = index_element(array.index_type);
  ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  t.m = indices("m", index, m);
  t.n = indices("n", index, n);
  t.k = indices("k", index, k);
  t.lda = indices("lda", index, lda);
  t.ldb = indices("ldb", index, ldb);
  if (c) t.ldc = indices("ldc", index, ldc);
  t.ldd = indices("ldd", index, ldd);
  t.a = static_cast<const void* const*>(indices("a", kInt64, addresses(array, inputs, layout.a)));
  t.b = static_cast<const void* const*>(indices("b", kInt64, addresses(array, inputs, layout.b)));
  if (c) t.c = static_cast<const void* const*>(indices("c pointers", kInt64, addresses(array, *c, layout.d)));
  t.d = static_cast<void* const*>(const_cast<void*>(indices("d", kInt64, addresses(array, outputs, layout.d))));
  scene.run_twice(as_called(op::grouped_gemm_array, options), p, t);
  return outputs_of_groups(layout, outputs);
}

std::vector<Values> expected_array(const ArrayCase& array) {
  std::vector<Values> result;
  for (const ArrayGroup& g : array.groups) {
    const Values& a = g.same_a >= 0 ? array.groups[static_cast<std::size_t>(g.same_a)].a : g.a;
    const Values& b = g.same_b >= 0 ? array.groups[static_cast<std::size_t>(g.same_b)].b : g.b;
    Values sums = product(g.m, g.n, g.k, a.data(), GGM_ORDER_MK, b.data(), GGM_ORDER_NK);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] =
          scale_and_add(Rounding::contract, array.type, array.type_of_d(), array.flags & GGM_FLAG_ALPHA ? array.alpha : 1.0,
                        sums[i], array.beta, array.beta != 0 ? g.c[i] : 0.0);
    result.push_back(sums);
  }
  return result;
}

void require_array(const Handle& handle, const ArrayCase& array, const CallOptions& options) {
  const std::vector<Values> got = grouped_gemm_array(handle, array, options), want = expected_array(array);
  for (std::size_t i = 0; i < got.size(); ++i)
    require_same(got[i], want[i], "d of group " + std::to_string(i), array.groups[i].n);
}

}  // namespace ggm_test::cases
