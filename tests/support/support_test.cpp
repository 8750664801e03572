// Tests of the test support itself: rules against their published check values, conversions against a second definition,
// guards that must notice damage, and references against hand-made values.
#include <cmath>
#include <cstring>

#include "support/compare.h"
#include "support/inputs.h"
#include "support/reference_moe.h"
#include "support/scene.h"

using namespace ggm_test;

TEST_CASE("support: input rules give their check values", "[host]") {
  CHECK(P(0, 0) == -2);
  CHECK(P(0, 1) == 2);
  CHECK(P(1, 0) == 2);
  CHECK(P(5, 9) == -1);
  CHECK(Q(0, 0, 0) == -2);
  CHECK(Q(1, 0, 0) == 1);
  CHECK(Q(0, 1, 0) == -1);
  CHECK(Q(0, 0, 1) == -1);
  CHECK(Q(3, 4, 5) == -1);
  CHECK(P2(0, 0) == P(1000000, 0));
  CHECK(power_weight(2, 3) == 0.5);
  CHECK(tag_weight(GGM_TYPE_FLOAT32, 299, 4, 4) == 300);
  CHECK(tag_weight(GGM_TYPE_BFLOAT16, 299, 4, 4) == 299 % 128 + 1);
  CHECK(tag_weight(GGM_TYPE_BFLOAT16, 299, 5, 5) == 3);
  CHECK(tag_weight(GGM_TYPE_FLOAT32, 299, 4, 5) == 0);
}

TEST_CASE("support: 16-bit conversions round once, to nearest even, over all bits", "[host]") {
  for (const std::int32_t type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16}) {
    const std::uint64_t infinity = type == GGM_TYPE_BFLOAT16 ? 0x7F80 : 0x7C00;
    CHECK(std::isinf(decode(type, infinity)));
    CHECK(std::isnan(decode(type, infinity + 1)));
    CHECK(std::isnan(decode(type, 0xFFFF)));
    bool exact = true, halves = true;
    for (std::uint64_t bits = 0; bits < infinity; ++bits) {
      const double value = decode(type, bits);
      exact &= encode(type, value) == bits && encode(type, -value) == (bits | 0x8000);
      if (bits + 1 == infinity) break;
      const double next = decode(type, bits + 1), middle = (value + next) / 2;
      halves &= encode(type, middle) == bits + (bits & 1) && encode(type, std::nextafter(middle, 0)) == bits &&
                encode(type, std::nextafter(middle, next)) == bits + 1;
    }
    CHECK(exact);
    CHECK(halves);
  }
  CHECK(encode(GGM_TYPE_FLOAT16, 65504) == 0x7BFF);
  CHECK(encode(GGM_TYPE_FLOAT16, 65519.99) == 0x7BFF);
  CHECK(encode(GGM_TYPE_FLOAT16, 65520) == 0x7C00);
  CHECK(encode(GGM_TYPE_BFLOAT16, 1.0) == 0x3F80);
  CHECK(encode(GGM_TYPE_FLOAT16, -2.0) == 0xC000);
  CHECK(encode(GGM_TYPE_BFLOAT16, -0.0) == 0x8000);
}

// Unseen by the address sanitizer, to which the guards are closed.
__attribute__((no_sanitize("address"))) static void flip(unsigned char* byte) { *byte ^= 1; }

TEST_CASE("support: guards and gaps notice a single wrong byte", "[host]") {
  const Backend memory{"host", false, GGM_KERNELS_AUTO, 1};
  Tensor tensor(memory, "t", GGM_TYPE_FLOAT32, {2, 3, 5, 7, 30}, 3);
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 4096 == 12);
  tensor.upload();
  tensor.download();
  CHECK(tensor.damage().empty());
  CHECK(std::isnan(tensor.at(1, 2, 4)));
  auto* bytes = static_cast<unsigned char*>(tensor.data());
  const std::ptrdiff_t body = 4 * (30 + 2 * 7 + 5);
  for (const std::ptrdiff_t at :
       {std::ptrdiff_t{-1}, std::ptrdiff_t{-4096}, body, body + 4095, std::ptrdiff_t{5 * 4}, std::ptrdiff_t{21 * 4}}) {
    flip(bytes + at);
    tensor.download();
    INFO("byte " << at);
    CHECK_FALSE(tensor.damage().empty());
    flip(bytes + at);
  }
  tensor.download();
  CHECK(tensor.damage().empty());
  CHECK(tensor.unchanged());
  bytes[4] ^= 1;
  tensor.download();
  CHECK_FALSE(tensor.unchanged());
}

TEST_CASE("support: the route reference sorts by expert, then token, then slot", "[host]") {
  RouteInput in;
  in.tokens = 4;
  in.top_k = 2;
  in.experts = 3;
  in.experts_total = 5;
  in.first_expert = 1;
  in.ids = {3, 1, -1, 3, 0, 7, 1, 1};
  const Routing out = route_reference(in);
  CHECK(out.group_offsets == std::vector<std::int64_t>{0, 3, 3, 5});
  CHECK(out.row_assignment == std::vector<std::int64_t>{1, 6, 7, 0, 3, -1, -1, -1});
  CHECK(out.assignment_row == std::vector<std::int64_t>{3, 0, -1, 4, -1, -1, 1, 2});
  CHECK(out.faults[GGM_FAULT_BAD_ID] == 1);
  const Routing again = check_routing(out, 4, 2, 8, false, 0);
  CHECK(again.row_assignment == out.row_assignment);
  CHECK(again.faults == Faults{});
}

TEST_CASE("support: the moe references agree with a closed form", "[host]") {
  // One expert, one slot: y = w * (x W^T + b), dx = w * dy W, dW = w * dy^T x, dw = dy . (x W^T + b).
  MoeInput in;
  ggm_moe_problem_t& p = in.problem;
  p.tokens = 1;
  p.top_k = p.experts = 1;
  p.in_features = 2;
  p.out_features = 2;
  p.x_type = p.weight_type = p.bias_type = GGM_TYPE_FLOAT32;
  p.routing_weight_type = GGM_TYPE_FLOAT32;
  p.weight_order = GGM_ORDER_NK;
  p.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_BIAS | GGM_GRADIENT_ROUTING_WEIGHTS;
  in.routing.group_offsets = {0, 1};
  in.routing.row_assignment = {0};
  in.routing.assignment_row = {0};
  in.num_tokens = 1;
  in.routing_weights = {0.5};
  in.x = {1, 2};
  in.weight = {1, 2, 3, 4};
  in.bias = {10, 20};
  in.dy = {1, -1};
  in.y = in.dx = in.d_bias = {0, 0};
  in.d_weight = {0, 0, 0, 0};
  CHECK(moe_forward_reference(in, Rounding::contract) == std::vector<double>{7.5, 15.5});
  const MoeGradients g = moe_backward_reference(in, Rounding::contract);
  CHECK(g.dx == std::vector<double>{-1, -1});
  CHECK(g.d_weight == std::vector<double>{0.5, 1, -0.5, -1});
  CHECK(g.d_bias == std::vector<double>{0.5, -0.5});
  CHECK(g.d_routing_weights == std::vector<double>{-16});
}

TEST_CASE("support: the ordered inner product covers every column once", "[host]") {
  for (const std::int64_t n : {0, 1, 3, 63, 64, 65, 200}) {
    std::vector<double> u(static_cast<std::size_t>(n)), v(u.size());
    double want = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] = static_cast<double>(i + 1);
      v[i] = P(3, static_cast<std::int64_t>(i));
      want += u[i] * v[i];
    }
    CHECK(blocked_dot(u.data(), v.data(), n, false) == want);
    CHECK(blocked_dot(u.data(), v.data(), n, true) == want);
  }
}
