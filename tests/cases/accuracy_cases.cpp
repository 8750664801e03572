// Rounding, range and subnormal numbers: BR-043, 045, 066, 069, 070, 072.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cases/child_process.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

// One token, one feature in and out.
MoeCase scalar_moe(std::int32_t type, std::int64_t top_k, const Values& weight) {
  MoeCase moe;
  moe.type = type;
  moe.tokens = 1;
  moe.top_k = top_k;
  moe.experts = static_cast<std::int64_t>(weight.size());
  for (std::int64_t j = 0; j < top_k; ++j) moe.ids.push_back(j);
  moe.w.assign(static_cast<std::size_t>(top_k), 1.0);
  moe.x = {1};
  moe.dy = {1};
  moe.weight = weight;
  return moe;
}

// 256 + 7 * 1 = 263; bfloat16 holds 262 and 264, a bfloat16 running sum would stay at 256.
void eight_outputs_combined(const Handle& handle) {
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
    for (std::size_t big = 0; big < 8; ++big) {
      Values weight(8, 1.0);
      weight[big] = 256;
      MoeCase moe = scalar_moe(BF16, 8, weight);
      moe.combine = combine;
      REQUIRE(moe_forward(handle, moe)[0] == 264);
      REQUIRE(moe_backward(handle, moe).dx[0] == 264);
      moe.y_type = moe.dx_type = F32;
      REQUIRE(moe_forward(handle, moe)[0] == 263);
      REQUIRE(moe_backward(handle, moe).dx[0] == 263);
    }
}
GGM_CASE_HOST_AND_GPU("BR-066 eight expert outputs are summed in float32", eight_outputs_combined)

GemmCase one_row(std::int32_t type, const Values& a, const Values& b, std::int64_t n) {
  GemmCase gemm;
  gemm.type = type;
  gemm.groups = 1;
  gemm.sizes = {1};
  gemm.m = 1;
  gemm.n = n;
  gemm.k = static_cast<std::int64_t>(a.size());
  gemm.a = a;
  gemm.b = b;
  return gemm;
}

double float32_product(const Handle& handle, double x, double w) { return grouped_gemm(handle, one_row(F32, {x}, {w}, 1))[0]; }

void float32_is_exact(const Handle& handle) {
  REQUIRE(float32_product(handle, 1 + std::ldexp(1, -12), 1) == 1 + std::ldexp(1, -12));  // TF32 gives 1
  REQUIRE(float32_product(handle, 1, 1 + std::ldexp(1, -12)) == 1 + std::ldexp(1, -12));
  REQUIRE(float32_product(handle, 1 + std::ldexp(1, -11), 1 - std::ldexp(1, -11)) == 1 - std::ldexp(1, -22));
  Values b;
  for (int i = 0; i < 64; ++i) b.push_back(2048 - 31 * i);
  for (double x : {2047.0, 2048.0, 1365.0}) {
    const Values d = grouped_gemm(handle, one_row(F32, {x}, b, 64));
    for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(d[i] == x * b[i]);
  }
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;  // weaker float32 modes exist by name only
  p.groups = p.m = p.n = p.k = 1;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = F32;
  std::size_t bytes = 0;
  for (std::int32_t mode : {GGM_COMPUTE_TF32, GGM_COMPUTE_TF32X3}) {
    p.compute_type = mode;
    GGM_REQUIRE_STATUS(GGM_STATUS_UNSUPPORTED, ggm_grouped_gemm_workspace_size(handle, &p, &bytes));
  }
}
GGM_CASE_HOST_AND_GPU("BR-069 float32 products keep all bits", float32_is_exact)

// Hard limit K * 2^-24 * sum|terms| for every element; the target 4 * sqrt(K) * 2^-24 * sum|terms| is required of the mean.
void float32_growth(const Handle& handle) {
  for (std::int64_t k : {256, 1024, 4096, 16384})
    for (bool positive : {true, false}) {
      GemmCase gemm = contiguous(F32, {5, 11}, 16, 24, 0);
      gemm.k = k;
      const auto value = [&](std::uint32_t stream, std::int64_t r, std::int64_t c) {
        const double v = round_to(F32, uniform(stream, r, c));
        return positive ? std::abs(v) : v;
      };
      for (std::int64_t r = 0; r < 16; ++r)
        for (std::int64_t c = 0; c < k; ++c) gemm.a.push_back(value(3, r, c));
      for (std::int64_t r = 0; r < 48; ++r)
        for (std::int64_t c = 0; c < k; ++c) gemm.b.push_back(value(4, r, c));
      const Values want = expected_gemm(gemm, Rounding::none);
      GemmCase sizes = gemm;
      for (Values* values : {&sizes.a, &sizes.b})
        for (double& v : *values) v = std::abs(v);
      Values limit = expected_gemm(sizes, Rounding::none);
      const Values got = grouped_gemm(handle, gemm);
      double ratio = 0;
      for (std::size_t i = 0; i < limit.size(); ++i) {
        ratio += std::abs(got[i] - want[i]) / (std::sqrt(static_cast<double>(k)) * std::ldexp(limit[i], -24)) /
                 static_cast<double>(limit.size());
        limit[i] *= static_cast<double>(k) * std::ldexp(1, -24);
      }
      require_within(got, want, limit, "d", 24);
      INFO("mean error " << ratio << " * sqrt(K) * 2^-24 * sum|terms|, K = " << k);
      REQUIRE(ratio <= 4);
    }
}
GGM_CASE_HOST_AND_GPU("BR-069 float32 error does not grow faster than a plain sum", float32_growth)

// The SwiGLU part waits for the whole-expert operation.
void float16_partial_sums(const Handle& handle) {
  REQUIRE(grouped_gemm(handle, one_row(F16, {60000, 60000, 60000}, {1, 1, -1}, 1))[0] == round_to(F16, 60000));
  REQUIRE(grouped_gemm(handle, one_row(F16, {1, 1, 1}, {60000, 60000, -60000}, 1))[0] == round_to(F16, 60000));
}
GGM_CASE_HOST_AND_GPU("BR-070 float16 partial sums may pass 65504", float16_partial_sums)

// ggm.h flushes nothing: subnormal inputs, products and results are kept, in each path that a row count may take.
void subnormals(const Handle& handle) {
  struct Product {
    std::int32_t type;
    int x, w;
  };
  for (const Product& p : {Product{F32, -140, 0},
                           {F32, -100, -40},
                           {F32, 0, -149},
                           {BF16, -130, 10},
                           {BF16, 10, -130},
                           {F16, -20, 10},
                           {F16, 10, -24},
                           {F16, -24, 0},
                           {BF16, -133, 0}})
    for (std::int64_t rows : {1, 5, 64, 300})
      for (std::int64_t n : {1, 8, 72}) {
        GemmCase gemm;
        gemm.type = p.type;
        gemm.groups = 1;
        gemm.sizes = {rows};
        gemm.m = rows;
        gemm.n = n;
        gemm.k = 1;
        gemm.a.assign(static_cast<std::size_t>(rows), std::ldexp(1, p.x));
        gemm.b.assign(static_cast<std::size_t>(n), std::ldexp(1, p.w));
        const Values want(static_cast<std::size_t>(rows * n), std::ldexp(1, p.x + p.w));
        require_same(grouped_gemm(handle, gemm), want, "d", n);
        gemm.k = 16;  // the same element among zeros, where tensor cores take it
        gemm.a.assign(static_cast<std::size_t>(rows * 16), 0);
        gemm.b.assign(static_cast<std::size_t>(n * 16), 0);
        for (std::int64_t r = 0; r < rows; ++r) gemm.a[static_cast<std::size_t>(r * 16 + 7)] = std::ldexp(1, p.x);
        for (std::int64_t r = 0; r < n; ++r) gemm.b[static_cast<std::size_t>(r * 16 + 7)] = std::ldexp(1, p.w);
        require_same(grouped_gemm(handle, gemm), want, "d", n);
      }
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    MoeCase moe = scalar_moe(F32, 1, {std::ldexp(1, -100)});
    moe.combine = combine;
    moe.w = {std::ldexp(1, -30)};
    REQUIRE(moe_forward(handle, moe)[0] == std::ldexp(1, -130));
    REQUIRE(moe_backward(handle, moe).dx[0] == std::ldexp(1, -130));
  }
}
GGM_CASE_HOST_AND_GPU("BR-072 subnormal numbers are kept in every path", subnormals)

MoeCase uniform_moe(std::int64_t tokens, std::int64_t top_k, std::int64_t in, std::int64_t out) {
  MoeCase moe = integer_moe(BF16, tokens, top_k, 8, 0, 0, [](auto t, auto j) { return (5 * t + 3 * j + t / 8) % 8; });
  moe.in = in;
  moe.out = out;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t c = 0; c < in; ++c) moe.x.push_back(round_to(BF16, uniform(5, t, c)));
  for (std::int64_t r = 0; r < 8 * out; ++r)
    for (std::int64_t c = 0; c < in; ++c) moe.weight.push_back(round_to(BF16, uniform(6, r, c)));
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t j = 0; j < top_k; ++j)
      moe.w[static_cast<std::size_t>(t * top_k + j)] = round_to(F32, 0.5 + 0.5 * uniform(7, t, j));
  return moe;
}

std::uint64_t hash_of(const Values& values) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a over the bytes
  for (double v : values) {
    unsigned char bytes[sizeof v];
    std::memcpy(bytes, &v, sizeof v);
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  }
  return hash;
}

// |y - ref| <= one rounding of p and of y + 8 * sqrt(K) * 2^-24 * sum|terms|: partial sums rounded to bfloat16 do not fit in.
void require_unsplit(const MoeCase& moe, const Values& y) {
  const Values want = expected_forward(moe, Rounding::none);
  MoeCase sizes = moe;
  for (Values* values : {&sizes.x, &sizes.weight})
    for (double& v : *values) v = std::abs(v);
  Values limit = expected_forward(sizes, Rounding::none);
  const double factor = 8 * std::sqrt(static_cast<double>(moe.in)) * std::ldexp(1, -24);
  for (std::size_t i = 0; i < limit.size(); ++i) {
    limit[i] *= factor;
    if (moe.type_of_y() != F32) limit[i] += std::abs(want[i]) * std::ldexp(1, -8);
  }
  require_within(y, want, limit, "y", moe.out);
}

// y of the first of `runs` calls into the same buffers, each from poison; all must give the same bits.
Values forward_every_run(const Handle& handle, const MoeCase& moe, int runs) {
  MoeCall call(handle, moe);
  const ggm_moe_forward_tensors_t t = call.forward_tensors();
  call.upload();
  std::size_t bytes = 0;
  GGM_REQUIRE_OK(ggm_moe_forward_workspace_size(handle, &call.problem, &bytes));
  Buffer workspace(handle.backend(), bytes);
  std::vector<std::uint64_t> first;
  for (int run = 0; run < runs; ++run) {
    call.y->upload();
    GGM_REQUIRE_OK(ggm_moe_forward(handle, &call.problem, &t, bytes ? workspace.data() : nullptr, bytes, nullptr));
    call.y->download();
    if (run == 0) first = call.y->all_bits();
    INFO("run " << run);
    REQUIRE(call.y->all_bits() == first);
  }
  return call.y->values();
}

void long_sums(const Handle& handle) {
  const bool cuda = handle.backend().cuda;
  std::string hashes;
  for (std::int64_t in : {3584, 8192}) {
    MoeCase moe = uniform_moe(16, 2, in, cuda ? 512 : 24);
    moe.product_type = F32;
    for (std::int32_t y_type : {BF16, F32}) {
      moe.y_type = y_type;
      const Values y = forward_every_run(handle, moe, 20);
      require_unsplit(moe, y);
      hashes += std::to_string(hash_of(y)) + " ";
    }
  }
  print_result(hashes);
}

void in_two_processes(void (*run)(void (*)(const Handle&))) {
  if (in_child()) return run(long_sums);
  const std::string first = child_result(100);
  REQUIRE_FALSE(first.empty());
  REQUIRE(child_result(100) == first);
}
TEST_CASE("BR-043 long sums give the same bits in every run and process: host", "[host]") { in_two_processes(run_on_host); }
TEST_CASE("BR-043 long sums give the same bits in every run and process: gpu", "[gpu]") { in_two_processes(run_on_gpu); }

void one_slot_a_token(const Handle& handle) {
  const bool cuda = handle.backend().cuda;
  for (std::int64_t top_k : {1, 2, 8}) {
    MoeCase moe = uniform_moe(cuda ? 128 : 24, top_k, cuda ? 4096 : 1024, cuda ? 512 : 48);
    for (std::int32_t y_type : {BF16, F32}) {
      moe.y_type = y_type;
      const Values y = forward_every_run(handle, moe, 50);
      if (y_type == F32 && top_k <= 2) require_unsplit(moe, y);
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-045 the same bits in every run with one or more experts a token", one_slot_a_token)

}  // namespace
}  // namespace ggm_test::cases
