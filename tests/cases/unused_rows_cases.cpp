// Rows and slices that belong to no group, and NaN that must stay where it is: BR-001, 003, 004, 006.
#include <cmath>

#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

const double kNan = std::nan("");

void set_rows(Values& matrix, std::int64_t columns, std::int64_t from, std::int64_t to, double value) {
  for (std::int64_t i = from * columns; i < to * columns; ++i) matrix[static_cast<std::size_t>(i)] = value;
}

// Sizes {5,0,3,8} in a buffer of 24 rows whose last 8 rows are NaN.
void rows_behind_the_last_group(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    GemmCase gemm = contiguous(type, {5, 0, 3, 8}, 24, 64, 64);
    set_rows(gemm.a, gemm.k, 16, 24, kNan);
    require_gemm(handle, gemm);  // all unused rows +0.0
    gemm.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
    require_gemm(handle, gemm);  // all unused rows still poison

    GemmCase gradient = variable_k(type, {5, 0, 3, 8}, 24, 64, 64);
    set_rows(gradient.a, gradient.m, 16, 24, kNan);
    set_rows(gradient.b, gradient.n, 16, 24, kNan);
    const Values d = grouped_gemm(handle, gradient);
    for (double value : d) REQUIRE(std::isfinite(value));
    require_same(d, expected_gemm(gradient), "d", gradient.n);
  }
}
GGM_CASE_HOST_AND_GPU("BR-001 rows behind the last group follow one rule", rows_behind_the_last_group)

MoeCase nan_case(std::int32_t type) {
  return integer_moe(type, 33, 2, 4, 64, 64, [](auto t, auto j) { return (7 * t + j) % 4; });
}

void nan_in_a_token(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase moe = nan_case(type);
      moe.combine = combine;
      set_rows(moe.x, moe.in, 7, 8, 0);
      Values expected = moe_forward(handle, moe);
      set_rows(expected, moe.out, 7, 8, kNan);
      set_rows(moe.x, moe.in, 7, 8, kNan);
      require_same(moe_forward(handle, moe), expected, "y with a NaN token", moe.out);
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-003 a NaN token spoils its own row of y alone", nan_in_a_token)

void nan_in_dy(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    MoeCase moe = nan_case(type);
    set_rows(moe.dy, moe.out, 7, 8, 0);
    MoeGradients expected = moe_backward(handle, moe);
    set_rows(expected.dx, moe.in, 7, 8, kNan);
    set_rows(expected.d_routing_weights, moe.top_k, 7, 8, kNan);
    // Each column of dy[7] is NaN, so every element of the two experts of token 7 is.
    for (std::int64_t j = 0; j < 2; ++j) set_rows(expected.d_weight, moe.in * moe.out, (49 + j) % 4, (49 + j) % 4 + 1, kNan);
    set_rows(moe.dy, moe.out, 7, 8, kNan);
    require_same_gradients(moe_backward(handle, moe), expected, moe);
  }
}
GGM_CASE_HOST_AND_GPU("BR-003 a NaN row of dy reaches only what its token owns", nan_in_dy)

// ggm.h: w = 0 is a real factor and 0 * NaN is NaN; id -1 is the way to drop a slot.
void weight_zero_on_a_nan_row(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    MoeCase moe = nan_case(type);
    set_rows(moe.x, moe.in, 7, 9, kNan);
    for (std::int64_t j = 0; j < 2; ++j) {
      moe.w[static_cast<std::size_t>(7 * 2 + j)] = 0;
      moe.ids[static_cast<std::size_t>(8 * 2 + j)] = -1;
    }
    const Values y = moe_forward(handle, moe);
    for (std::int64_t c = 0; c < moe.out; ++c) {
      REQUIRE(std::isnan(y[static_cast<std::size_t>(7 * moe.out + c)]));
      REQUIRE(y[static_cast<std::size_t>(8 * moe.out + c)] == 0);
      REQUIRE_FALSE(std::signbit(y[static_cast<std::size_t>(8 * moe.out + c)]));
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-003 weight zero keeps a NaN and id -1 drops it", weight_zero_on_a_nan_row)

void empty_groups_of_a_gradient(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    // The second order puts the two busiest groups right before empty ones, so that leftovers would be large.
    for (const Ids& sizes : {Ids{162, 0, 2577, 446, 0, 83}, Ids{162, 2577, 0, 446, 0, 83}})
      require_gemm(handle, variable_k(type, sizes, sum_of(sizes), 256, 192));
    for (const Ids& offsets : {Ids{0, 8, 16, 16, 32}, Ids{0, 16, 16, 24, 32}}) {
      GemmCase gemm = variable_k(type, {}, 32, 16, 16);
      gemm.groups = 4;
      gemm.group_form = GGM_GROUPS_OFFSETS;
      gemm.offsets = offsets;
      require_gemm(handle, gemm);
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-004 the gradient of an empty group is zero", empty_groups_of_a_gradient)

void gradient_after_a_busy_call(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    MoeCase busy = integer_moe(type, 512, 2, 256, 32, 48, [](auto t, auto j) { return (t + 128 * j) % 256; });
    busy.gradients = GGM_GRADIENT_WEIGHT;
    MoeCase moe = integer_moe(type, 64, 2, 256, 32, 48, [](auto t, auto j) { return (37 * t + j) % 256; });
    moe.gradients = GGM_GRADIENT_WEIGHT;
    moe.d_weight_old = moe_backward(handle, busy).d_weight;  // what the buffer holds before the small call
    require_same_gradients(moe_backward(handle, moe), expected_backward(moe), moe);
  }
}
GGM_CASE_HOST_AND_GPU("BR-006 slices of unused experts are cleared after a busy call", gradient_after_a_busy_call)

}  // namespace
}  // namespace ggm_test::cases
