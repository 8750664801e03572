// Offsets beyond 2^31 and 2^32 elements on the host without the memory: rows and matrices lie 1.5e9 elements apart in mapped
// pages of which only those that hold an element are ever touched. BR-011, 012. The GPU has the same with full tensors
// (large_cases.cpp).
#include <sys/mman.h>

#include <cstring>

#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

constexpr std::int64_t kFar = 1500000000;  // elements: the third row lies beyond 2^31, the fourth beyond 2^32

class Sparse {
 public:
  Sparse(std::int32_t type, Shape shape) : type_(type), shape_(shape) {
    if (shape_.stride == 0) shape_.stride = shape_.rows * shape_.ld;
    bytes_ = static_cast<std::size_t>(((shape_.batches - 1) * shape_.stride + shape_.rows * shape_.ld) * bytes_of(type));
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(data_ != MAP_FAILED);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { munmap(data_, bytes_); }

  void* data() const { return data_; }
  Sparse& set(const Values& dense) {
    std::size_t i = 0;
    each([&](char* at) {
      const std::uint64_t bits = encode(type_, dense[i++]);
      std::memcpy(at, &bits, static_cast<std::size_t>(bytes_of(type_)));
    });
    return *this;
  }
  Values values() const {
    Values dense;
    each([&](const char* at) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, at, static_cast<std::size_t>(bytes_of(type_)));
      dense.push_back(decode(type_, bits));
    });
    return dense;
  }

 private:
  template <typename F>
  void each(F f) const {
    for (std::int64_t b = 0; b < shape_.batches; ++b)
      for (std::int64_t r = 0; r < shape_.rows; ++r)
        for (std::int64_t c = 0; c < shape_.columns; ++c)
          f(static_cast<char*>(data_) + (b * shape_.stride + r * shape_.ld + c) * bytes_of(type_));
  }

  std::int32_t type_;
  Shape shape_;
  std::size_t bytes_ = 0;
  void* data_ = nullptr;
};

template <typename P, typename T>
void call(const Handle& handle, const Operation<P, T>& operation, const P& problem, const T& tensors) {
  std::size_t bytes = 0;
  GGM_REQUIRE_OK(operation.workspace_size(handle, &problem, &bytes));
  Buffer workspace(handle.backend(), bytes);
  GGM_REQUIRE_OK(operation.call(handle, &problem, &tensors, bytes ? workspace.data() : nullptr, bytes, nullptr));
  REQUIRE(workspace.damage() == "");
}

void far_rows(const Handle& handle) {
  for (std::int32_t type : {F32, BF16}) {
    const GemmCase gemm = contiguous(type, {1, 2, 1}, 4, 24, 16);
    GemmCall small(handle, gemm);
    small.upload();
    Sparse a(type, {1, 4, 16, kFar}), d(type, {1, 4, 24, kFar}), b(type, {3, 24, 16, 16, kFar});
    a.set(gemm.a);
    b.set(gemm.b);
    ggm_grouped_gemm_problem_t p = small.problem;
    p.lda = p.ldd = p.stride_b = kFar;
    ggm_grouped_gemm_tensors_t t = small.tensors;
    t.a = a.data();
    t.b = b.data();
    t.d = d.data();
    call(handle, op::grouped_gemm, p, t);
    require_same(d.values(), expected_gemm(gemm), "d", 24);

    const GemmCase gradient = variable_k(type, {1, 2, 1}, 4, 24, 16);
    GemmCall small_gradient(handle, gradient);
    small_gradient.upload();
    Sparse ga(type, {1, 4, 24, kFar}), gb(type, {1, 4, 16, kFar}), gd(type, {3, 24, 16, 16, kFar});
    ga.set(gradient.a);
    gb.set(gradient.b);
    p = small_gradient.problem;
    p.lda = p.ldb = p.stride_d = kFar;
    t = small_gradient.tensors;
    t.a = ga.data();
    t.b = gb.data();
    t.d = gd.data();
    call(handle, op::grouped_gemm, p, t);
    require_same(gd.values(), expected_gemm(gradient), "d of variable K", 16);
  }
}
GGM_CASE_HOST("BR-011 rows beyond 2^32 elements in sparse memory", far_rows)

// 70,000 rows in groups that start behind row 65,536.
void many_rows(const Handle& handle) { require_gemm(handle, contiguous(BF16, {65530, 3, 17, 4400}, 70000, 16, 8)); }
GGM_CASE_HOST_AND_GPU("BR-011 groups that start behind row 65536", many_rows)

void far_experts(const Handle& handle) {
  for (std::int32_t type : {F32, BF16}) {
    const MoeCase moe = integer_moe(type, 4, 2, 4, 16, 24, [](auto t, auto j) { return (t + 2 * j + 1) % 4; });
    Sparse x(type, {1, 4, 16, kFar}), y(type, {1, 4, 24, kFar}), weight(type, {4, 24, 16, 16, kFar});
    Sparse dy(type, {1, 4, 24, kFar}), dx(type, {1, 4, 16, kFar}), d_weight(type, {4, 24, 16, 16, kFar});
    x.set(moe.x);
    dy.set(moe.dy);
    weight.set(moe.weight);
    MoeCall small(handle, moe), small_backward(handle, moe);
    ggm_moe_problem_t p = small.problem;
    p.x_ld = p.y_ld = p.dy_ld = p.dx_ld = p.weight_stride = p.d_weight_stride = kFar;
    ggm_moe_forward_tensors_t f = small.forward_tensors();
    small.upload();
    f.x = x.data();
    f.y = y.data();
    f.weight = weight.data();
    call(handle, op::moe_forward, p, f);
    require_same(y.values(), expected_forward(moe), "y", 24);
    ggm_moe_backward_tensors_t b = small_backward.backward_tensors();
    small_backward.upload();
    b.x = x.data();
    b.dy = dy.data();
    b.weight = weight.data();
    b.dx = dx.data();
    b.d_weight = d_weight.data();
    call(handle, op::moe_backward, p, b);
    small_backward.d_routing_weights->download();
    require_same_gradients({dx.values(), d_weight.values(), {}, small_backward.d_routing_weights->values()},
                           expected_backward(moe), moe);
  }
}
GGM_CASE_HOST("BR-012 experts beyond 2^32 elements in sparse memory", far_experts)

}  // namespace
}  // namespace ggm_test::cases
