// Missing, foreign and repeated expert ids: BR-022, 024, 025, 026, 027, 028.
#include <cmath>

#include "cases/gemm_case.h"
#include "cases/moe_case.h"
#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

void slots_of_other_ranks(const Handle& handle) {
  const Ids ids = {-1, -1, 0, -1, -1, 2, 1, 2, 2, -1, 0, 1};
  for (std::int32_t type : kCaseTypes)
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase moe =
          integer_moe(type, 6, 2, 3, 24, 24, [&](auto t, auto j) { return ids[static_cast<std::size_t>(2 * t + j)]; });
      moe.combine = combine;
      require_forward(handle, moe);
      const MoeGradients gradients = moe_backward(handle, moe);
      require_same_gradients(gradients, expected_backward(moe), moe);
      for (std::size_t a = 0; a < ids.size(); ++a)
        if (ids[a] == -1) REQUIRE(gradients.d_routing_weights[a] == 0);
    }
}
GGM_CASE_HOST_AND_GPU("BR-022 id -1 reaches no expert and adds nothing", slots_of_other_ranks)

void last_expert_unused(const Handle& handle) {
  const auto ids = [](auto t, auto j) { return (t + j) % 3 == 0 ? std::int64_t{-1} : (t + j) % 5; };
  const RouteInput in = route_input(100, 4, 6, ids);
  std::int64_t valid = 0;
  for (std::int64_t id : in.ids) valid += id != -1;
  const Routing routing = require_route(handle, in);  // each valid slot once, -1 slots at row -1, rest of the rows -1
  REQUIRE(count_of(routing, 5) == 0);
  REQUIRE(routing.rows() == valid);
  for (std::int32_t type : kCaseTypes) {
    const MoeCase moe = integer_moe(type, 100, 4, 6, 24, 16, ids);
    const MoeGradients gradients = moe_backward(handle, moe);
    require_same_gradients(gradients, expected_backward(moe), moe);
    for (std::int64_t i = 5 * 24 * 16; i < 6 * 24 * 16; ++i) REQUIRE(gradients.d_weight[static_cast<std::size_t>(i)] == 0);
  }
}
GGM_CASE_HOST_AND_GPU("BR-024 slots without an expert are counted for none", last_expert_unused)

void tokens_without_experts(const Handle& handle) {
  const auto ids = [](auto t, auto j) { return t % 4 == 1 ? std::int64_t{-1} : (t + j) % 4; };
  for (std::int32_t type : kCaseTypes)
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      MoeCase moe = integer_moe(type, 40, 3, 4, 32, 24, ids);
      moe.combine = combine;
      const Values y = moe_forward(handle, moe);
      require_same(y, expected_forward(moe), "y", moe.out);
      for (std::int64_t c = 0; c < moe.out; ++c) {
        const double value = y[static_cast<std::size_t>(5 * moe.out + c)];  // token 5: +0.0 in every bit
        REQUIRE((value == 0 && !std::signbit(value)));
      }
      require_backward(handle, moe);

      moe.flags = GGM_FLAG_ADD_TO_Y;  // then such a token keeps its old value
      for (std::int64_t i = 0; i < moe.tokens * moe.out; ++i) moe.y_old.push_back(P2(i, 9));
      const Values sum = moe_forward(handle, moe);
      require_same(sum, expected_forward(moe), "y added to", moe.out);
      for (std::int64_t c = 0; c < moe.out; ++c)
        REQUIRE(sum[static_cast<std::size_t>(5 * moe.out + c)] == moe.y_old[static_cast<std::size_t>(5 * moe.out + c)]);
    }
}
GGM_CASE_HOST_AND_GPU("BR-025 a token without experts gets a zero row or keeps its old one", tokens_without_experts)

void row_labels(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (std::int32_t index : {GGM_INDEX_INT32, GGM_INDEX_INT64}) {
      GemmCase gemm = contiguous(type, {128, 128, 128, 128}, 512, 40, 64);
      gemm.sizes.clear();
      gemm.group_form = GGM_GROUPS_ROW_GROUP;
      gemm.index_type = index;
      for (std::int64_t r = 0; r < 512; ++r) {
        const bool none = (r >= 100 && r < 128) || (r >= 200 && r < 256) || r >= 384;
        gemm.row_group.push_back(none ? -1 : r / 128);
      }
      require_gemm(handle, gemm);
      gemm.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
      require_gemm(handle, gemm);

      GemmCase starts = contiguous(type, {100, 72, 128, 0}, 512, 40, 64);  // the same rows by first rows and sizes
      starts.group_form = GGM_GROUPS_STARTS_SIZES;
      starts.index_type = index;
      starts.offsets = {0, 128, 256, 384};
      require_gemm(handle, starts);
    }
}
GGM_CASE_HOST_AND_GPU("BR-026 rows labelled -1 are skipped", row_labels)

// Four calls with two local experts each add up to the call with all eight.
void experts_split_over_ranks(const Handle& handle) {
  MoeCase whole = integer_moe(F32, 50, 3, 8, 32, 32, [](auto t, auto j) { return (5 * t + 3 * j) % 8; });
  const Values y = moe_forward(handle, whole);
  const MoeGradients all = moe_backward(handle, whole);
  require_same(y, expected_forward(whole), "y", 32);
  require_same_gradients(all, expected_backward(whole), whole);
  Values y_sum(y.size(), 0), dx_sum(all.dx.size(), 0), d_weight;
  std::vector<int> hits(all.d_routing_weights.size(), 0);
  for (std::int64_t first = 0; first < 8; first += 2) {
    MoeCase part = whole;
    part.experts = 2;
    part.experts_total = 8;
    part.first_expert = first;
    part.weight.assign(whole.weight.begin() + first * 1024, whole.weight.begin() + (first + 2) * 1024);
    const Values y_part = moe_forward(handle, part);
    const MoeGradients gradients = moe_backward(handle, part);
    for (std::size_t i = 0; i < y.size(); ++i) y_sum[i] += y_part[i];
    for (std::size_t i = 0; i < all.dx.size(); ++i) dx_sum[i] += gradients.dx[i];
    d_weight.insert(d_weight.end(), gradients.d_weight.begin(), gradients.d_weight.end());
    for (std::size_t a = 0; a < hits.size(); ++a) {
      const bool local = whole.ids[a] >= first && whole.ids[a] < first + 2;
      hits[a] += gradients.d_routing_weights[a] != 0;
      REQUIRE(gradients.d_routing_weights[a] == (local ? all.d_routing_weights[a] : 0.0));
    }
  }
  require_same_numbers(y_sum, y, "sum of the four y", 32);
  require_same_numbers(dx_sum, all.dx, "sum of the four dx", 32);
  require_same(d_weight, all.d_weight, "d_weight slice for slice", 32);
  for (std::size_t a = 0; a < hits.size(); ++a) REQUIRE(hits[a] == (all.d_routing_weights[a] != 0 ? 1 : 0));
}
GGM_CASE_HOST_AND_GPU("BR-027 experts split over four ranks add up to the whole", experts_split_over_ranks)

// Each expert twice in a token, w = 2^-j, weights and tokens in {-1, 0, 1}. The full size runs among the large cases.
void an_expert_twice(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    const auto ids = [](auto t, auto j) { return (3 * t + j / 2) % 144; };
    MoeCase moe = integer_moe(type, 9, 6, 144, 64, 40, ids);
    for (Values* values : {&moe.x, &moe.weight, &moe.dy})
      for (double& v : *values) v = (v > 0) - (v < 0);
    for (std::int64_t a = 0; a < 54; ++a) moe.w[static_cast<std::size_t>(a)] = std::ldexp(1.0, -static_cast<int>(a % 6));
    REQUIRE(require_route(handle, route_input(9, 6, 144, ids)).rows() == 54);
    require_forward(handle, moe);
    const MoeGradients gradients = moe_backward(handle, moe);
    require_same_gradients(gradients, expected_backward(moe), moe);
    for (std::size_t a = 0; a < 54; a += 2) REQUIRE(gradients.d_routing_weights[a] == gradients.d_routing_weights[a + 1]);
  }
}
GGM_CASE_HOST_AND_GPU("BR-028 the same expert twice in a token counts twice", an_expert_twice)

}  // namespace
}  // namespace ggm_test::cases
