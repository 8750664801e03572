// Many rows, columns, groups and experts: BR-015, 017, 019, 021, 057.
#include <algorithm>

#include "cases/gemm_case.h"
#include "cases/moe_case.h"
#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

// T * top_k around 65,536: a row count in a grid's y or z dimension ends there.
void many_rows(const Handle& handle) {
  for (std::int64_t tokens : {8191, 8192, 8193}) {
    const auto ids = [](auto t, auto j) { return (t + j) % 8; };
    require_route(handle, route_input(tokens, 8, 8, ids));
    require_forward(handle, integer_moe(tokens % 2 ? BF16 : F32, tokens, 8, 8, 16, 16, ids));
  }
}
GGM_CASE_HOST_AND_GPU("BR-015 more rows than a grid dimension holds", many_rows)

// One row; 65,536 tiles of 128 columns and one more are among the large cases.
void many_columns(const Handle& handle) { require_gemm(handle, contiguous(BF16, {1}, 1, 65536 + 1, 16)); }
GGM_CASE_HOST_AND_GPU("BR-015 more columns than a grid dimension holds", many_columns)

void many_groups(const Handle& handle) {
  Ids sizes;
  for (std::int64_t e = 0; e < 70000; ++e) sizes.push_back(e % 3 == 1 ? 0 : 1);
  require_gemm(handle, masked(F32, sizes, 1, 4, 8));
  require_gemm(handle, masked(BF16, Ids(70000, 1), 1, 4, 8));
}
GGM_CASE_HOST_AND_GPU("BR-015 more groups than a grid dimension holds", many_groups)

void many_experts(const Handle& handle) {
  for (std::int64_t experts : {512, 255, 256, 257}) {
    const auto ids = [experts](auto t, auto j) { return (97 * t + 49 * j) % experts; };
    const Routing routing = require_route(handle, route_input(1024, 10, experts, ids));
    for (std::int64_t e = 0; e < experts; ++e) REQUIRE(count_of(routing, e) > 0);
    require_forward(handle, tag_moe(F32, 1024, 10, experts, 32, ids));
  }
}
GGM_CASE_HOST_AND_GPU("BR-017 experts beyond 256 get their tokens", many_experts)

// Slots beyond what one warp sorts, up to one for every expert; experts beyond one digit of the sort.
void many_slots(const Handle& handle) {
  struct Size {
    std::int64_t tokens, top_k, experts;
  };
  for (const Size& size : {Size{2, 4096, 4096}, Size{40, 33, 64}, Size{64, 8, 4096}, Size{300, 2, 65536}}) {
    const auto ids = [&size](auto t, auto j) { return (97 * t + 61 * j) % size.experts; };
    require_route(handle, route_input(size.tokens, size.top_k, size.experts, ids));
    MoeCase moe = integer_moe(F32, size.tokens, size.top_k, size.experts, 8, 8, ids);
    for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      moe.combine = combine;
      require_forward(handle, moe);
      require_backward(handle, moe);
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-017 every expert in every slot and experts up to the limit", many_slots)

void odd_expert_counts(const Handle& handle) {
  for (std::int64_t experts : {1, 2, 3, 5, 6, 7, 12, 24, 31, 33, 60, 63, 65, 72, 96, 127, 129, 160, 192, 288, 384}) {
    const std::int64_t top_k = std::min<std::int64_t>(3, experts);
    const auto ids = [experts](auto t, auto j) { return (17 * t + j) % experts; };
    const Routing routing = require_route(handle, route_input(257, top_k, experts, ids));
    REQUIRE(count_of(routing, 0) > 0);
    REQUIRE(count_of(routing, experts - 1) > 0);
    require_forward(handle, tag_moe(F32, 257, top_k, experts, 16, ids));
  }
}
GGM_CASE_HOST_AND_GPU("BR-019 expert counts that are no power of two", odd_expert_counts)

void full_counters(const Handle& handle) {
  for (std::int64_t experts : {64, 160, 256, 384})
    for (std::int64_t slots : {65534, 65536, 65538, 131072}) {
      const std::int64_t tokens = slots / 2;
      const Routing one = require_route(handle, route_input(tokens, 2, experts, [=](auto, auto) { return experts - 1; }));
      REQUIRE(count_of(one, experts - 1) == slots);
      require_route(handle, route_input(tokens, 2, experts, [=](auto t, auto j) { return (2 * t + j) % experts; }));
    }
}
GGM_CASE_HOST_AND_GPU("BR-021 one expert with more slots than 16 bits count", full_counters)

// Every slot to one expert, duplicates inside a token included, then spread.
void many_slots_for_one_expert(const Handle& handle) {
  for (std::int64_t tokens : {21, 22, 23, 64, 256})
    for (bool spread : {false, true}) {
      const auto ids = [spread](auto t, auto j) { return spread ? (t + j) % 4 : std::int64_t{2}; };
      require_route(handle, route_input(tokens, 6, 4, ids));
      const MoeCase moe = integer_moe(F32, tokens, 6, 4, 40, 24, ids);
      require_forward(handle, moe);
      require_backward(handle, moe);
    }
}
GGM_CASE_HOST_AND_GPU("BR-057 slot lists hold all tokens times slots", many_slots_for_one_expert)

}  // namespace
}  // namespace ggm_test::cases
