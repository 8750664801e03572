// Sizes above 2^31 elements and 2^32 bytes. Buffers are cleared on the device and hold numbers in a few rows only, around the
// borders; expected values are closed forms.
#include "support/inputs.h"
#include "support/scene.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
constexpr std::int32_t kType = GGM_TYPE_BFLOAT16;

// Raw device memory of bfloat16 rows.
class Rows {
 public:
  Rows(const Backend& backend, Index rows, Index columns, int byte)
      : backend_(backend), columns_(columns), data_(allocate(backend, static_cast<std::size_t>(rows * columns) * 2)) {
    set_bytes(backend, data_, byte, static_cast<std::size_t>(rows * columns) * 2);
  }
  Rows(const Rows&) = delete;
  ~Rows() { release(backend_, data_); }
  void* data() const { return data_; }

  template <typename F>
  void write(Index row, F value) {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(columns_));
    for (Index c = 0; c < columns_; ++c)
      bits[static_cast<std::size_t>(c)] = static_cast<std::uint16_t>(encode(kType, value(c)));
    copy_in(backend_, at(row), bits.data(), bits.size() * 2);
  }
  // The number of columns of a row that differ from value(c).
  template <typename F>
  Index wrong(Index row, F value) const {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(columns_));
    copy_out(backend_, bits.data(), at(row), bits.size() * 2);
    Index count = 0;
    for (Index c = 0; c < columns_; ++c) count += bits[static_cast<std::size_t>(c)] != encode(kType, value(c));
    return count;
  }

 private:
  void* at(Index row) const { return static_cast<char*>(data_) + row * columns_ * 2; }
  Backend backend_;
  Index columns_;
  void* data_;
};

template <typename P, typename T>
void call(const Handle& handle, const Operation<P, T>& operation, const P& problem, const T& tensors) {
  std::size_t bytes = 0;
  GGM_REQUIRE_OK(operation.workspace_size(handle, &problem, &bytes));
  void* workspace = allocate(handle.backend(), bytes + 1);
  GGM_REQUIRE_OK(operation.call(handle, &problem, &tensors, workspace, bytes, nullptr));
  synchronize(handle.backend());
  release(handle.backend(), workspace);
}

void variable_k(const Handle& handle) {
  // 40 gradients of 8192 x 8192: element 2^31 is the first of group 32. Each group is one row: D_e = a_e^T b_e.
  constexpr Index groups = 40, size = 8192;
  Rows a(handle.backend(), groups, size, 0), b(handle.backend(), groups, size, 0),
      d(handle.backend(), groups * size, size, 0xFF);
  for (Index e = 0; e < groups; ++e) {
    a.write(e, [&](Index c) { return P(e, c); });
    b.write(e, [&](Index c) { return P2(e, c); });
  }
  Scene scene(handle);
  Tensor& sizes = scene.input("sizes", kInt32, {1, 1, groups}).fill([](auto, auto, auto) { return 1; });
  sizes.upload();
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.layout = GGM_LAYOUT_VARIABLE_K;
  p.groups = groups;
  p.m = p.n = size;
  p.k = groups;
  p.a_type = p.b_type = kType;
  ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
  t.group_sizes = sizes.data();
  t.a = a.data();
  t.b = b.data();
  t.d = d.data();
  call(handle, op::grouped_gemm, p, t);
  for (const Index e : {0, 15, 16, 31, 32, 33, 39})
    for (const Index i : {Index{0}, Index{1}, Index{4095}, size - 1}) {
      INFO("group " << e << " row " << i);
      CHECK(d.wrong(e * size + i, [&](Index j) { return P(e, i) * P2(e, j); }) == 0);
    }
}

void fused(const Handle& handle, std::int32_t combine) {
  // 300,000 tokens of 7168: element 2^31 lies in row 299,593. Weights are (expert + 1) * identity, so y = (expert + 1) * x.
  constexpr Index tokens = 300000, size = 7168;
  const std::vector<Index> rows{0, 1, 149796, 149797, 299592, 299593, 299594, tokens - 1};
  Rows x(handle.backend(), tokens, size, 0), y(handle.backend(), tokens, size, 0xFF), w(handle.backend(), 2 * size, size, 0);
  for (const Index t : rows) x.write(t, [&](Index c) { return P(t, c); });
  for (Index n = 0; n < 2 * size; ++n) w.write(n, [&](Index k) { return k == n % size ? 1 + n / size : Index{0}; });
  Scene scene(handle);
  Tensor& ids = scene.input("ids", kInt32, {1, tokens, 1}).fill([](Index, Index t, Index) { return t % 2; });
  ids.upload();
  ggm_moe_problem_t p = GGM_MOE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = 1;
  p.experts = 2;
  p.in_features = p.out_features = size;
  p.id_type = GGM_INDEX_INT32;
  p.x_type = p.weight_type = kType;
  p.weight_order = GGM_ORDER_NK;
  p.combine = combine;
  p.gradients = GGM_GRADIENT_X;
  const auto check = [&](const Rows& out) {
    for (const Index t : rows) {
      INFO("row " << t);
      CHECK(out.wrong(t, [&](Index c) { return (1 + t % 2) * P(t, c); }) == 0);
    }
    for (const Index t : {Index{2}, Index{149795}, Index{299591}, Index{299595}, tokens - 2}) {
      INFO("row " << t);
      CHECK(out.wrong(t, [](Index) { return 0; }) == 0);
    }
  };
  ggm_moe_forward_tensors_t f = GGM_MOE_FORWARD_TENSORS_INIT;
  f.ids = ids.data();
  f.x = x.data();
  f.weight = w.data();
  f.y = y.data();
  call(handle, op::moe_forward, p, f);
  check(y);
  set_bytes(handle.backend(), y.data(), 0xFF, static_cast<std::size_t>(tokens * size) * 2);
  ggm_moe_backward_tensors_t b = backward_of(f);
  b.x = nullptr;  // dx does not need it
  b.dy = x.data();
  b.dx = y.data();
  call(handle, op::moe_backward, p, b);
  check(y);
}

void rows_there_and_back(const Handle& handle) {
  // Permute and unpermute of the same size; the order of the rows is reversed by the arrays.
  constexpr Index tokens = 300000, size = 7168;
  const std::vector<Index> rows{0, 1, 149999, 150000, 299593, 299594, tokens - 1};
  Rows x(handle.backend(), tokens, size, 0), sorted(handle.backend(), tokens, size, 0xFF),
      back(handle.backend(), tokens, size, 0xFF);
  for (const Index t : rows) x.write(t, [&](Index c) { return P(t, c); });
  Scene scene(handle);
  const auto array = [&](const char* name, Index count, auto value) {
    Tensor& tensor = scene.input(name, kInt32, {1, 1, count}).fill([&](Index, Index, Index i) { return value(i); });
    tensor.upload();
    return static_cast<const std::int32_t*>(tensor.data());
  };
  ggm_permute_problem_t p = GGM_PERMUTE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = p.experts = 1;
  p.features = size;
  p.token_type = kType;
  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  t.group_offsets = array("group_offsets", 2, [&](Index i) { return i * tokens; });
  t.row_assignment = array("row_assignment", tokens, [&](Index i) { return tokens - 1 - i; });
  t.assignment_row = array("assignment_row", tokens, [&](Index i) { return tokens - 1 - i; });
  t.input = x.data();
  t.output = sorted.data();
  call(handle, op::permute, p, t);
  for (const Index row : rows) CHECK(sorted.wrong(tokens - 1 - row, [&](Index c) { return P(row, c); }) == 0);
  t.input = sorted.data();
  t.output = back.data();
  call(handle, op::unpermute, p, t);
  for (const Index row : rows) CHECK(back.wrong(row, [&](Index c) { return P(row, c); }) == 0);
  CHECK(back.wrong(299595, [](Index) { return 0; }) == 0);
}

}  // namespace

TEST_CASE("large: variable K gradients beyond 2^31 elements", "[large]") { variable_k(Handle(cuda_backends().front())); }
TEST_CASE("large: fused forward and backward beyond 2^31 elements, ordered", "[large]") {
  fused(Handle(cuda_backends().front()), GGM_COMBINE_ORDERED);
}
TEST_CASE("large: fused forward and backward beyond 2^31 elements, two-step", "[large]") {
  fused(Handle(cuda_backends().front()), GGM_COMBINE_TWO_STEP);
}
TEST_CASE("large: permute and unpermute beyond 2^31 elements", "[large]") {
  rows_there_and_back(Handle(cuda_backends().front()));
}
