// Routing weights and their gradient, id types: BR-073, 075, 076, 077, 079, 080.
#include <algorithm>
#include <cmath>

#include "cases/moe_case.h"
#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

Values scaled(Values values, double factor) {
  for (double& v : values) v *= factor;
  return values;
}

// y, dx and d_weight are linear in w, d_routing_weights does not see it. x and W small enough for every type to stay exact.
void weight_applied_once(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase moe = integer_moe(type, 21, 1, 2, 8, 8, [](auto t, auto) { return t % 2; });
      moe.combine = combine;
      moe.w.assign(21, 1.0);
      const Values y = moe_forward(handle, moe);
      const MoeGradients one = moe_backward(handle, moe);
      require_same(y, expected_forward(moe), "y", 8);
      require_same_gradients(one, expected_backward(moe), moe);
      for (double w : {1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 2.0, -1.0, 0.0}) {
        INFO("w = " << w);
        moe.w.assign(21, w);
        require_same_numbers(moe_forward(handle, moe), scaled(y, w), "y", 8);
        const MoeGradients got = moe_backward(handle, moe);
        require_same_numbers(got.dx, scaled(one.dx, w), "dx", 8);
        require_same_numbers(got.d_weight, scaled(one.d_weight, w), "d_weight", 8);
        require_same(got.d_routing_weights, one.d_routing_weights, "d_routing_weights", 1);
      }
    }
}
GGM_CASE_HOST_AND_GPU("BR-073 y dx and d_weight are linear in the routing weight", weight_applied_once)

void two_weights(const Handle& handle) {
  MoeCase moe = integer_moe(F32, 21, 2, 2, 8, 8, [](auto t, auto j) { return (t + j) % 2; });
  const auto with = [&](double first, double second) {
    for (std::size_t a = 0; a < moe.w.size(); ++a) moe.w[a] = a % 2 ? second : first;
    const Values y = moe_forward(handle, moe);
    require_same_numbers(y, expected_forward(moe), "y", 8);
    return y;
  };
  const Values base = with(1, 1), first = with(2, 1), second = with(1, 2), both = with(2, 2);
  for (std::size_t i = 0; i < base.size(); ++i) {
    REQUIRE(first[i] + second[i] - base[i] == both[i]);
    REQUIRE(both[i] == 2 * base[i]);
  }
}
GGM_CASE_HOST_AND_GPU("BR-073 y is linear in each of two routing weights", two_weights)

MoeCase scalar_tokens(std::int32_t type, const Values& x, const Values& w) {
  MoeCase moe;
  moe.type = type;
  moe.tokens = static_cast<std::int64_t>(x.size());
  moe.ids.assign(x.size(), 0);
  moe.x = x;
  moe.dy.assign(x.size(), 1);
  moe.weight = {1};
  moe.w = w;
  moe.y_type = moe.dx_type = F32;
  return moe;
}

void weights_keep_their_type(const Handle& handle) {
  const double fine = 1 + std::ldexp(1, -10);
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    MoeCase moe = scalar_tokens(BF16, {1024}, {fine});
    moe.combine = combine;
    REQUIRE(moe_forward(handle, moe)[0] == 1025);  // 1024 if w was narrowed to bfloat16
    MoeCase two = scalar_tokens(BF16, {1024, 1024}, {1, 3});
    two.combine = combine;
    for (std::int32_t type : {F32, BF16, F16}) {
      two.routing_weight_type = type;
      require_same(moe_forward(handle, two), {1024, 3072}, "y", 1);
    }
    // dx = w * dy and the float32 gradient of w: 1024 + 1 = 1025 needs 11 bits.
    REQUIRE(moe_backward(handle, moe).dx[0] == fine);
    MoeCase gradient = scalar_tokens(BF16, {1}, {fine});
    gradient.in = gradient.out = 2;
    gradient.x = {1, std::ldexp(1, -10)};
    gradient.weight = {1, 0, 0, 1};
    gradient.dy = {1, 1};
    REQUIRE(moe_backward(handle, gradient).d_routing_weights[0] == fine);
  }
}
GGM_CASE_HOST_AND_GPU("BR-075 routing weights keep their type", weights_keep_their_type)

// Expert 0 is all NaN, so an id whose upper half is read as a slot of its own shows.
void ids_of_both_widths(const Handle& handle) {
  const auto ids = [](auto t, auto) { return t % 7; };
  const RouteInput in = route_input(10, 1, 7, ids);
  const Routing narrow = require_route(handle, in, GGM_INDEX_INT32), wide = require_route(handle, in, GGM_INDEX_INT64);
  REQUIRE(narrow.row_assignment == wide.row_assignment);
  for (std::int32_t type : kCaseTypes) {
    MoeCase moe = integer_moe(type, 10, 1, 7, 24, 16, ids);
    std::fill_n(moe.weight.begin(), 24 * 16, std::nan(""));
    const Values want = expected_forward(moe);
    for (std::int32_t id_type : {GGM_INDEX_INT32, GGM_INDEX_INT64}) {
      moe.id_type = id_type;
      const Values y = moe_forward(handle, moe);
      require_same(y, want, "y", 16);
      for (std::int64_t t = 0; t < 10; ++t)
        for (std::int64_t c = 0; c < 16; ++c) REQUIRE(std::isnan(y[static_cast<std::size_t>(t * 16 + c)]) == (t % 7 == 0));
      require_same_gradients(moe_backward(handle, moe), expected_backward(moe), moe);
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-076 int32 and int64 ids give the same bits", ids_of_both_widths)

// <dy[t], x[t] W^T> as an exact integer.
double inner_product(const MoeCase& moe, std::int64_t t, std::int64_t expert) {
  double sum = 0;
  for (std::int64_t n = 0; n < moe.out; ++n)
    for (std::int64_t k = 0; k < moe.in; ++k)
      sum += moe.dy[static_cast<std::size_t>(t * moe.out + n)] * moe.x[static_cast<std::size_t>(t * moe.in + k)] *
             moe.weight[static_cast<std::size_t>((expert * moe.out + n) * moe.in + k)];
  return sum;
}

void gradient_of_a_single_slot(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    MoeCase moe = integer_moe(type, 20, 1, 4, 16, 16, [](auto t, auto) { return (3 * t) % 4; });
    moe.y_type = moe.product_type = F32;  // so that the difference of two y is exact in every type
    int non_zero = 0;
    for (double w : {0.25, 1.0, 1.25}) {
      moe.w.assign(20, w);
      const Values dw = moe_backward(handle, moe).d_routing_weights;
      for (std::int64_t t = 0; t < 20; ++t) {
        const double want = inner_product(moe, t, moe.ids[static_cast<std::size_t>(t)]);
        REQUIRE(dw[static_cast<std::size_t>(t)] == want);
        non_zero += want != 0;
      }
      if (w != 0.25) continue;
      // The library does not renormalise a single weight: y is a quarter, and y(w+1) - y(w) against dy gives dw.
      const Values y = moe_forward(handle, moe);
      require_same(y, expected_forward(moe), "y", 16);
      moe.w.assign(20, w + 1);
      const Values more = moe_forward(handle, moe);
      for (std::int64_t t = 0; t < 20; ++t) {
        double difference = 0;
        for (std::int64_t n = 0; n < 16; ++n) {
          const std::size_t i = static_cast<std::size_t>(t * 16 + n);
          difference += (more[i] - y[i]) * moe.dy[i];
        }
        REQUIRE(difference == dw[static_cast<std::size_t>(t)]);
      }
    }
    REQUIRE(non_zero > 40);
  }
}
GGM_CASE_HOST_AND_GPU("BR-077 the routing gradient of a single slot is the inner product", gradient_of_a_single_slot)

void dropped_slots_and_zero_weights(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase moe = integer_moe(type, 12, 3, 4, 24, 16,
                                [](auto t, auto j) { return (t + j) % 3 == 0 ? std::int64_t{-1} : (t + 2 * j) % 4; });
      moe.combine = combine;
      for (std::size_t a = 0; a < 36; ++a) moe.w[a] = moe.ids[a] == -1 ? 5 : a % 4 == 1 ? 0 : 0.5;
      const MoeGradients gradients = moe_backward(handle, moe);
      require_same(moe_forward(handle, moe), expected_forward(moe), "y", 16);
      require_same_gradients(gradients, expected_backward(moe), moe);
      int true_derivatives = 0;
      for (std::size_t a = 0; a < 36; ++a) {
        const double want = moe.ids[a] == -1 ? 0 : inner_product(moe, static_cast<std::int64_t>(a) / 3, moe.ids[a]);
        REQUIRE(gradients.d_routing_weights[a] == want);
        true_derivatives += moe.w[a] == 0 && want != 0;
      }
      REQUIRE(true_derivatives > 0);
      // The slots of weight zero add nothing: the same call with id -1 there gives the same y, dx and d_weight.
      for (std::size_t a = 0; a < 36; ++a)
        if (moe.w[a] == 0) moe.ids[a] = -1;
      const MoeGradients dropped = moe_backward(handle, moe);
      require_same_numbers(dropped.dx, gradients.dx, "dx", 24);
      require_same_numbers(dropped.d_weight, gradients.d_weight, "d_weight", 24);
    }
}
GGM_CASE_HOST_AND_GPU("BR-079 dropped slots have no routing gradient but zero weights do", dropped_slots_and_zero_weights)

// w of any size or sign: the routing gradient does not depend on it.
void extreme_weights(const Handle& handle) {
  const double weights[] = {0, -1, -std::ldexp(1, -20), std::ldexp(1, -60), 1e-30, 1e30};
  for (std::int32_t type : {F32, BF16})
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase moe = integer_moe(type, 24, 1, 6, 16, 8, [](auto t, auto) { return t % 6; });  // expert e: tokens of weight e
      moe.combine = combine;
      for (std::size_t t = 0; t < 24; ++t) moe.w[t] = weights[t % 6];
      const MoeGradients gradients = moe_backward(handle, moe);
      for (std::int64_t t = 0; t < 24; ++t)
        REQUIRE(gradients.d_routing_weights[static_cast<std::size_t>(t)] == inner_product(moe, t, t % 6));
      require_same_numbers(moe_forward(handle, moe), expected_forward(moe), "y", 8);
      const MoeGradients want = expected_backward(moe);
      require_same_numbers(gradients.dx, want.dx, "dx", 16);
      // Sums of w * dy * x are exact where w is a power of two (experts 0 to 3); the last two experts have inexact terms.
      const std::int64_t exact = 4 * 16 * 8;
      require_same_numbers(Values(gradients.d_weight.begin(), gradients.d_weight.begin() + exact),
                           Values(want.d_weight.begin(), want.d_weight.begin() + exact), "d_weight", 16);
      const Values zero(16 * 8, 0);
      require_same_numbers(Values(gradients.d_weight.begin(), gradients.d_weight.begin() + 16 * 8), zero, "d_weight of w = 0",
                           16);
      for (double v : gradients.d_weight) REQUIRE(std::isfinite(v));
    }
}
GGM_CASE_HOST_AND_GPU("BR-080 routing gradients do not depend on the weight", extreme_weights)

}  // namespace
}  // namespace ggm_test::cases
