// Tensors beyond 2^31 and 2^32 elements and other sizes for a GPU machine alone: BR-011, 012, 015, 028, 088. Inputs are made
// and most results are checked on the device (device_tools.h); rows at the borders are copied back and checked on the host as
// well.
#include <algorithm>
#include <cmath>

#include "cases/device_case.h"
#include "cases/device_problems.h"

namespace ggm_test::cases {
namespace {

std::size_t bytes(std::int64_t elements, std::int32_t type) { return static_cast<std::size_t>(elements * bytes_of(type)); }

// Rows first .. first+count-1 of a packed tensor on the device.
Values rows_of(const void* data, std::int32_t type, std::int64_t columns, std::int64_t first, std::int64_t count) {
  const std::int64_t width = bytes_of(type);
  std::vector<unsigned char> raw(bytes(columns * count, type));
  cuda(cudaMemcpy(raw.data(), static_cast<const char*>(data) + first * columns * width, raw.size(), cudaMemcpyDeviceToHost),
       "cudaMemcpy");
  Values values;
  for (std::int64_t i = 0; i < columns * count; ++i) {
    std::uint64_t bits = 0;
    std::copy_n(raw.begin() + i * width, width, reinterpret_cast<unsigned char*>(&bits));
    values.push_back(decode(type, bits));
  }
  return values;
}

Memory offsets_on_device(const std::vector<std::int32_t>& offsets) {
  Memory memory(offsets.size() * 4);
  cuda(cudaMemcpy(memory.data(), offsets.data(), offsets.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
  return memory;
}

std::vector<std::int32_t> equal_offsets(std::int64_t groups, std::int64_t size) {
  std::vector<std::int32_t> offsets;
  for (std::int64_t e = 0; e <= groups; ++e) offsets.push_back(static_cast<std::int32_t>(e * size));
  return offsets;
}

double dot(std::int64_t row, std::int64_t expert, std::int64_t n, std::int64_t k) {
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += P(row, i) * Q(expert, n, i);
  return sum;
}

// D [600000, 7168]: element 2^31 lies in row 299593, element 2^32 in row 599186.
constexpr std::int64_t kRows = 600000, kWide = 7168, kInner = 16, kExperts = 8, kEach = kRows / kExperts;

void require_column_sums(const void* data, std::int32_t type, std::int64_t rows, const Values& want) {
  Memory sums(kWide * sizeof(long long));
  sums.fill(0);
  enqueue_column_sums(data, type, rows, kWide, static_cast<long long*>(sums.data()), nullptr);
  std::vector<long long> got(kWide);
  cuda(cudaMemcpy(got.data(), sums.data(), sums.bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  require_same_numbers(Values(got.begin(), got.end()), want, "column sums", kWide);
}

// What rows that sum up to `row` add to the column sums of their products with expert e.
void add_products(const double (&row)[kInner], std::int64_t e, Values* sums) {
  for (std::int64_t n = 0; n < kWide; ++n)
    for (std::int64_t k = 0; k < kInner; ++k) (*sums)[static_cast<std::size_t>(n)] += row[k] * Q(e, n, k);
}

void long_contiguous(const Handle& handle) {
  Memory a(bytes(kRows * kInner, BF16)), b(bytes(kExperts * kWide * kInner, BF16)), d(bytes(kRows * kWide, BF16));
  const Memory offsets = offsets_on_device(equal_offsets(kExperts, kEach));
  enqueue_rows(a.data(), BF16, kRows, kInner, kInner, 0, nullptr);
  enqueue_weights(b.data(), BF16, kExperts, kWide, kInner, kWide * kInner, false, nullptr);
  d.fill(0xFF);
  Enqueued(handle, op::grouped_gemm, product_problem(BF16, kExperts, kRows, kWide, kInner),
           product_tensors(offsets.data(), a.data(), b.data(), d.data()))(nullptr);

  const Counter wrong;  // every element on the device
  enqueue_check_contiguous({BF16, BF16, kExperts, kRows, 0, kWide, kInner, a.data(), b.data(), d.data(), kWide,
                            static_cast<const std::int32_t*>(offsets.data())},
                           wrong.device(), nullptr);
  REQUIRE(wrong.read() == 0);

  Values sums(kWide, 0);  // and all columns against closed sums made on the host
  for (std::int64_t e = 0; e < kExperts; ++e) {
    double of_a[kInner] = {};
    for (std::int64_t r = e * kEach; r < (e + 1) * kEach; ++r)
      for (std::int64_t k = 0; k < kInner; ++k) of_a[k] += P(r, k);
    add_products(of_a, e, &sums);
  }
  require_column_sums(d.data(), BF16, kRows, sums);

  std::vector<std::int64_t> rows;  // 2,000 rows around both borders; first and last of each expert
  for (std::int64_t border : {299593, 599186})
    for (std::int64_t r = border - 500; r < border + 500; ++r) rows.push_back(r);
  for (std::int64_t e = 0; e < kExperts; ++e) rows.insert(rows.end(), {e * kEach, (e + 1) * kEach - 1});
  for (std::int64_t r : rows) {
    Values want;
    for (std::int64_t n = 0; n < kWide; n += 1) want.push_back(n % 16 == r % 16 ? dot(r, r / kEach, n, kInner) : 0);
    Values got = rows_of(d.data(), BF16, kWide, r, 1);
    for (std::int64_t n = 0; n < kWide; ++n)
      if (n % 16 != r % 16)
        got[static_cast<std::size_t>(n)] = 0;  // every sixteenth column of a row: the rest has the device check
    require_same(got, want, "row " + std::to_string(r), kWide);
  }
}
GGM_CASE_LARGE("BR-011 row times row length beyond 2^32 elements: contiguous", long_contiguous)

// 75,000 tokens, all 8 experts each, w = 1, 2, 4 or 8: y is an exact integer in float32.
void long_forward(const Handle& handle, std::int32_t combine) {
  const std::int64_t tokens = kEach, top_k = 8;
  const auto id = [](std::int64_t t, std::int64_t j) { return (t + j) % kExperts; };
  const auto w = [](std::int64_t t, std::int64_t j) { return static_cast<double>(1 << ((t + j) % 4)); };
  Memory x(bytes(tokens * kInner, BF16)), weight(bytes(kExperts * kWide * kInner, BF16)), y(bytes(tokens * kWide, F32));
  enqueue_rows(x.data(), BF16, tokens, kInner, kInner, 0, nullptr);
  enqueue_weights(weight.data(), BF16, kExperts, kWide, kInner, kWide * kInner, false, nullptr);
  y.fill(0xFF);
  Tensor ids(handle.backend(), "ids", kInt32, {1, tokens, top_k}), weights(handle.backend(), "w", F32, {1, tokens, top_k});
  ids.fill([&](auto, auto t, auto j) { return id(t, j); }).upload();
  weights.fill([&](auto, auto t, auto j) { return w(t, j); }).upload();
  ggm_moe_problem_t p = layer_problem(BF16, tokens, top_k, kExperts, kInner, kWide);
  p.routing_weight_type = p.y_type = F32;
  p.combine = combine;
  Enqueued(handle, op::moe_forward, p, layer_tensors(ids.data(), weights.data(), x.data(), weight.data(), y.data()))(nullptr);

  Values sums(kWide, 0);
  for (std::int64_t e = 0; e < kExperts; ++e) {
    double of_x[kInner] = {};
    for (std::int64_t token = 0; token < tokens; ++token) {
      const std::int64_t j = ((e - token) % kExperts + kExperts) % kExperts;
      for (std::int64_t k = 0; k < kInner; ++k) of_x[k] += w(token, j) * P(token, k);
    }
    add_products(of_x, e, &sums);
  }
  require_column_sums(y.data(), F32, tokens, sums);
  for (std::int64_t i = 0; i < 250; ++i) {  // 2,000 elements, eight in each of 250 rows
    const std::int64_t token = (i * 7919 + (i % 2 ? tokens - 1 : 0)) % tokens;
    const Values row = rows_of(y.data(), F32, kWide, token, 1);
    for (std::int64_t n = i % 7; n < kWide; n += 1021) {
      double want = 0;
      for (std::int64_t j = 0; j < top_k; ++j) want += w(token, j) * dot(token, id(token, j), n, kInner);
      INFO("token " << token << " column " << n);
      REQUIRE(row[static_cast<std::size_t>(n)] == want);
    }
  }
}
void long_forward_both(const Handle& handle) {
  long_forward(handle, GGM_COMBINE_ORDERED);
  long_forward(handle, GGM_COMBINE_TWO_STEP);
}
GGM_CASE_LARGE("BR-011 row times row length beyond 2^32 elements: forward", long_forward_both)

// Weights of zeros but one a row: 64 experts of 14336 x 4096, the last one from element 3.7e9 on.
void far_experts(const Handle& handle) {
  const std::int64_t experts = 64, in = 4096, out = 14336, tokens = 16;
  for (std::int64_t stride : {out * in, out * in + 1024}) {
    Memory weight(bytes(experts * stride, BF16));
    weight.fill(0);
    const auto expert = [&](std::int64_t e) { return static_cast<char*>(weight.data()) + e * stride * 2; };
    enqueue_points(expert(63), BF16, out, in, in, 1, nullptr);  // W[63][n][n mod K] = 1
    for (std::int64_t e : {36, 37})
      enqueue_points(expert(e), BF16, out, in, 0, static_cast<float>(e), nullptr);  // W[e][n][0] = e
    const auto x = [](std::int64_t t, std::int64_t c) { return (t + c) % 9 - 4; };
    Tensor x_tensor(handle.backend(), "x", BF16, {1, tokens, in}), ids(handle.backend(), "ids", kInt32, {1, tokens, 1});
    Tensor y(handle.backend(), "y", BF16, {1, tokens, out});
    x_tensor.fill([&](auto, auto t, auto c) { return x(t, c); }).upload();
    ggm_moe_problem_t p = layer_problem(BF16, tokens, 1, experts, in, out);
    p.weight_stride = stride;
    const ggm_moe_forward_tensors_t t = layer_tensors(ids.data(), nullptr, x_tensor.data(), weight.data(), y.data());
    for (std::int64_t e : {63, 36, 37}) {
      ids.fill([&](auto, auto, auto) { return e; }).upload();
      y.upload();
      Enqueued(handle, op::moe_forward, p, t)(nullptr);
      y.download();
      Values want;
      for (std::int64_t token = 0; token < tokens; ++token)
        for (std::int64_t n = 0; n < out; ++n)
          want.push_back(static_cast<double>(e == 63 ? x(token, n % in) : e * x(token, 0)));
      require_same_numbers(y.values(), want, "y of expert " + std::to_string(e), out);
      REQUIRE(y.damage() == "");
    }
  }
}
GGM_CASE_LARGE("BR-012 expert times expert stride beyond 2^31 elements", far_experts)

void wide_row(const Handle& handle) {
  const std::int64_t n = 65536 * 128 + 1, k = 16;
  const Memory offsets = offsets_on_device({0, 1});
  for (std::int32_t type : {BF16, F32}) {
    Memory a(bytes(k, type)), b(bytes(n * k, type)), d(bytes(n, type));
    enqueue_rows(a.data(), type, 1, k, k, 0, nullptr);
    enqueue_weights(b.data(), type, 1, n, k, n * k, false, nullptr);
    d.fill(0xFF);
    Enqueued(handle, op::grouped_gemm, product_problem(type, 1, 1, n, k),
             product_tensors(offsets.data(), a.data(), b.data(), d.data()))(nullptr);
    const Counter wrong;
    enqueue_check_contiguous(
        {type, type, 1, 1, 0, n, k, a.data(), b.data(), d.data(), n, static_cast<const std::int32_t*>(offsets.data())},
        wrong.device(), nullptr);
    REQUIRE(wrong.read() == 0);
    for (std::int64_t column : {std::int64_t{0}, std::int64_t{65535} * 128, n - 1})
      REQUIRE(rows_of(d.data(), type, 1, column, 1)[0] == dot(0, 0, column, k));
  }
}
GGM_CASE_LARGE("BR-015 65536 column tiles and one column more", wide_row)

// The reported size of BR-028: 144 experts of 2048 x 4096, each expert in two slots of its token; signs of P and Q as values.
struct TwiceAtSize {
  static constexpr std::int64_t experts = 144, top_k = 6, tokens = 9, out = 2048, in = 4096, used = 27;
  static int sign(int v) { return (v > 0) - (v < 0); }
  static std::int64_t id(std::int64_t t, std::int64_t j) { return 3 * t + j / 2; }
  static double w(std::int64_t j) { return std::ldexp(1.0, -static_cast<int>(j)); }

  // x[t] W_e^T for the token of expert e, exact.
  static Values product_of(std::int64_t e) {
    const std::int64_t t = e / 3;
    Values p;
    for (std::int64_t n = 0; n < out; ++n) {
      int sum = 0;
      for (std::int64_t k = 0; k < in; ++k) sum += sign(P(t, k)) * sign(Q(e, n, k));
      p.push_back(sum);
    }
    return p;
  }
};

// d_weight [experts, out, in]: both contributions of a used expert, (2^-2i + 2^-(2i+1)) * dy x^T, in all columns of every 64th
// row; experts without tokens +0.0 in every bit.
void check_twice_d_weight(const Memory& d_weight) {
  using C = TwiceAtSize;
  for (std::int64_t e : {0, 1, 13, 26}) {
    const double factor = C::w(e % 3 * 2) + C::w(e % 3 * 2 + 1);
    for (std::int64_t n = e; n < C::out; n += 64) {
      Values want;
      for (std::int64_t k = 0; k < C::in; ++k) want.push_back(factor * C::sign(P2(e / 3, n)) * C::sign(P(e / 3, k)));
      require_same_numbers(rows_of(d_weight.data(), BF16, C::in, e * C::out + n, 1), want, "d_weight", C::in);
    }
  }
  Memory zero(bytes(C::out * C::in, BF16));
  zero.fill(0);
  const Counter wrong;
  for (std::int64_t e = C::used; e < C::experts; ++e)
    enqueue_compare(static_cast<const char*>(d_weight.data()) + e * C::out * C::in * 2, zero.data(), C::out * C::in * 2,
                    wrong.device(), nullptr);
  REQUIRE(wrong.read() == 0);
}

void check_twice(const Tensor& y, const Tensor& dw) {
  using C = TwiceAtSize;
  Values want_y(static_cast<std::size_t>(C::tokens * C::out), 0), want_dw;
  for (std::int64_t e = 0; e < C::used; ++e) {
    const Values product = C::product_of(e);
    double inner = 0;
    for (std::int64_t n = 0; n < C::out; ++n) {
      const double value = product[static_cast<std::size_t>(n)];
      want_y[static_cast<std::size_t>(e / 3 * C::out + n)] += (C::w(e % 3 * 2) + C::w(e % 3 * 2 + 1)) * value;
      inner += value * C::sign(P2(e / 3, n));
    }
    want_dw.insert(want_dw.end(), 2, inner);
  }
  require_same_numbers(y.values(), want_y, "y", C::out);
  require_same_numbers(dw.values(), want_dw, "d_routing_weights", C::top_k);
}

void twice_at_size(const Handle& handle) {
  using C = TwiceAtSize;
  Memory weight(bytes(C::experts * C::out * C::in, BF16)), d_weight(weight.bytes());
  enqueue_weights(weight.data(), BF16, C::experts, C::out, C::in, C::out * C::in, true, nullptr);
  d_weight.fill(0xFF);
  const Backend& backend = handle.backend();
  Tensor ids(backend, "ids", kInt32, {1, C::tokens, C::top_k}), w(backend, "w", F32, {1, C::tokens, C::top_k});
  Tensor x(backend, "x", BF16, {1, C::tokens, C::in}), dy(backend, "dy", BF16, {1, C::tokens, C::out});
  Tensor y(backend, "y", F32, {1, C::tokens, C::out}), dw(backend, "dw", F32, {1, C::tokens, C::top_k});
  ids.fill([](auto, auto t, auto j) { return C::id(t, j); }).upload();
  w.fill([](auto, auto, auto j) { return C::w(j); }).upload();
  x.fill([](auto, auto t, auto c) { return C::sign(P(t, c)); }).upload();
  dy.fill([](auto, auto t, auto c) { return C::sign(P2(t, c)); }).upload();
  y.upload();
  dw.upload();
  ggm_moe_problem_t p = layer_problem(BF16, C::tokens, C::top_k, C::experts, C::in, C::out);
  p.routing_weight_type = p.y_type = F32;
  p.dy_type = BF16;
  p.gradients = GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  const ggm_moe_forward_tensors_t f = layer_tensors(ids.data(), w.data(), x.data(), weight.data(), y.data());
  Enqueued(handle, op::moe_forward, p, f)(nullptr);
  ggm_moe_backward_tensors_t b = backward_of(f);
  b.dy = dy.data();
  b.d_weight = d_weight.data();
  b.d_routing_weights = static_cast<float*>(dw.data());
  Enqueued(handle, op::moe_backward, p, b)(nullptr);
  y.download();
  dw.download();
  check_twice(y, dw);
  check_twice_d_weight(d_weight);
}
GGM_CASE_LARGE("BR-028 the same expert twice at the reported size", twice_at_size)

// Every multiple of 64 up to 2048 against 768, 1536 and 2048, 128 groups of 16 and 48 rows in turn, both ways round.
void all_widths(const Handle& handle) {
  const std::int64_t groups = 128, rows = 4096, widest = 2048;
  std::vector<std::int32_t> offsets = {0};
  for (int e = 0; e < groups; ++e) offsets.push_back(offsets.back() + (e % 2 ? 48 : 16));
  const Memory device_offsets = offsets_on_device(offsets);
  Memory a(bytes(rows * widest, BF16)), b(bytes(groups * widest * widest, BF16)), d(bytes(groups * widest * widest, BF16));
  enqueue_rows(a.data(), BF16, rows, widest, widest, 0, nullptr);
  enqueue_rows(b.data(), BF16, groups * widest, widest, widest, 1000000, nullptr);
  const Counter wrong;
  const auto run = [&](std::int64_t first, std::int64_t second) {
    INFO("widths " << first << " and " << second);
    const ggm_grouped_gemm_tensors_t t = product_tensors(device_offsets.data(), a.data(), b.data(), d.data());
    ProductCheck check = {BF16,  BF16,     groups,   rows,     first,  second,
                          first, a.data(), b.data(), d.data(), second, static_cast<const std::int32_t*>(device_offsets.data())};
    ggm_grouped_gemm_problem_t gradient = product_problem(BF16, groups, first, second, rows);
    gradient.layout = GGM_LAYOUT_VARIABLE_K;  // d_e [first, second]
    gradient.b_order = 0;
    cuda(cudaMemsetAsync(d.data(), 0xFF, bytes(groups * first * second, BF16), nullptr), "cudaMemsetAsync");
    Enqueued(handle, op::grouped_gemm, gradient, t)(nullptr);
    enqueue_check_variable_k(check, wrong.device(), nullptr);
    cuda(cudaMemsetAsync(d.data(), 0xFF, bytes(rows * second, BF16), nullptr), "cudaMemsetAsync");
    Enqueued(handle, op::grouped_gemm, product_problem(BF16, groups, rows, second, first), t)(nullptr);
    enqueue_check_contiguous(check, wrong.device(), nullptr);
    REQUIRE(wrong.read() == 0);
  };
  for (std::int64_t width = 64; width <= widest; width += 64)
    for (std::int64_t other : {768, 1536, 2048}) {
      run(width, other);
      if (width != other) run(other, width);
    }
}
GGM_CASE_LARGE("BR-088 every width by 64 against 768 1536 and 2048", all_widths)

}  // namespace
}  // namespace ggm_test::cases
