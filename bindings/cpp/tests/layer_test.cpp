// ggm.hpp: what each builder sets, how errors arrive, who owns the handle. Runs on the host backend.
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ggm/ggm.hpp"
#include "support/test.h"

namespace {

template <typename Struct>
bool same_bytes(const Struct& a, const Struct& b) {
  return std::memcmp(&a, &b, sizeof(Struct)) == 0;
}

}  // namespace

TEST_CASE("C++ layer: init gives what the INIT macros give", "[host]") {
  const ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  CHECK(same_bytes(ggm::init<ggm_create_params_t>(), params));
  const ggm_moe_problem_t moe = GGM_MOE_PROBLEM_INIT;
  CHECK(same_bytes(ggm::init<ggm_moe_problem_t>(), moe));
  const ggm_grouped_gemm_problem_t gemm = GGM_GROUPED_GEMM_PROBLEM_INIT;
  CHECK(same_bytes(ggm::init<ggm_grouped_gemm_problem_t>(), gemm));
  const ggm_moe_backward_tensors_t tensors = GGM_MOE_BACKWARD_TENSORS_INIT;
  CHECK(same_bytes(ggm::init<ggm_moe_backward_tensors_t>(), tensors));
}

TEST_CASE("C++ layer: builders set the fields that have no default and no others", "[host]") {
  ggm_moe_problem_t moe = GGM_MOE_PROBLEM_INIT;
  moe.tokens = 10;
  moe.top_k = 2;
  moe.experts = 4;
  moe.in_features = 8;
  moe.out_features = 16;
  moe.x_type = moe.weight_type = GGM_TYPE_BFLOAT16;
  moe.weight_order = GGM_ORDER_KN;
  moe.routing_weight_type = GGM_TYPE_FLOAT32;
  moe.id_type = GGM_INDEX_INT64;
  CHECK(
      same_bytes(ggm::moe_problem({10, 2, 4}, 8, 16, GGM_TYPE_BFLOAT16, GGM_ORDER_KN, GGM_TYPE_FLOAT32, GGM_INDEX_INT64), moe));

  ggm_route_problem_t route = GGM_ROUTE_PROBLEM_INIT;
  route.tokens = 10;
  route.top_k = 2;
  route.experts = 4;
  route.id_type = GGM_INDEX_INT32;
  CHECK(same_bytes(ggm::route_problem({10, 2, 4}), route));

  ggm_permute_problem_t permute = GGM_PERMUTE_PROBLEM_INIT;
  permute.tokens = 10;
  permute.top_k = 2;
  permute.experts = 4;
  permute.features = 7;
  permute.token_type = GGM_TYPE_FLOAT16;
  permute.routing_weight_type = GGM_TYPE_FLOAT32;
  CHECK(same_bytes(ggm::permute_problem({10, 2, 4}, 7, GGM_TYPE_FLOAT16, GGM_TYPE_FLOAT32), permute));

  ggm_grouped_gemm_problem_t gemm = GGM_GROUPED_GEMM_PROBLEM_INIT;
  gemm.groups = 3;
  gemm.m = 5;
  gemm.n = 6;
  gemm.k = 7;
  gemm.a_type = gemm.b_type = GGM_TYPE_FLOAT32;
  gemm.b_order = GGM_ORDER_NK;
  gemm.group_form = GGM_GROUPS_OFFSETS;
  CHECK(same_bytes(ggm::contiguous_problem({3, 5, 6, 7}, GGM_TYPE_FLOAT32, GGM_ORDER_NK, GGM_GROUPS_OFFSETS), gemm));
  gemm.group_form = GGM_GROUPS_SIZES;
  gemm.layout = GGM_LAYOUT_MASKED;
  CHECK(same_bytes(ggm::masked_problem({3, 5, 6, 7}, GGM_TYPE_FLOAT32, GGM_ORDER_NK), gemm));
  gemm.layout = GGM_LAYOUT_VARIABLE_K;
  gemm.b_order = 0;
  CHECK(same_bytes(ggm::variable_k_problem({3, 5, 6, 7}, GGM_TYPE_FLOAT32), gemm));

  ggm_grouped_gemm_array_problem_t array = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  array.groups = 3;
  array.max_m = 5;
  array.max_n = 6;
  array.max_k = 7;
  array.a_type = array.b_type = GGM_TYPE_FLOAT32;
  array.a_order = GGM_ORDER_KM;
  array.b_order = GGM_ORDER_NK;
  CHECK(same_bytes(ggm::array_problem({3, 5, 6, 7}, GGM_TYPE_FLOAT32, GGM_ORDER_KM, GGM_ORDER_NK), array));
}

TEST_CASE("C++ layer: an error carries the status and the library's text", "[host]") {
  const ggm::handle handle = ggm::handle::on(GGM_BACKEND_HOST);
  const ggm_route_problem_t problem = ggm::route_problem({-5, 2, 4});
  try {
    handle.route(problem);
    FAIL("tokens = -5 was accepted");
  } catch (const ggm::error& e) {
    CHECK(e.status() == GGM_STATUS_INVALID_VALUE);
    CHECK(std::string(e.text()) == ggm_last_error());
    CHECK(std::string(e.text()).find("tokens") != std::string::npos);
    CHECK(std::string(e.what()) == "GGM_STATUS_INVALID_VALUE: " + std::string(e.text()));
  }
  CHECK_THROWS_AS(ggm::handle::on(77), ggm::error);
  CHECK_NOTHROW(ggm::throw_if_failed(GGM_STATUS_SUCCESS));
}

TEST_CASE("C++ layer: a handle moves, is adopted and released, and is never freed twice", "[host]") {
  STATIC_REQUIRE(!std::is_copy_constructible<ggm::handle>::value);
  STATIC_REQUIRE(std::is_nothrow_move_constructible<ggm::handle>::value);
  ggm::handle first = ggm::handle::on(GGM_BACKEND_HOST);
  const ggm_handle_t raw = first.get();
  ggm::handle second = std::move(first);
  CHECK(first.get() == nullptr);
  CHECK(!first);
  CHECK(second.get() == raw);
  second = ggm::handle::on(GGM_BACKEND_HOST);
  ggm::handle third = ggm::handle::adopt(second.release());
  CHECK(!second);
  CHECK(third.info().backend == GGM_BACKEND_HOST);
  CHECK_THROWS_AS(second.info(), ggm::error);
}

TEST_CASE("C++ layer: route, forward and backward give closed forms through one workspace", "[host]") {
  const ggm::handle handle = ggm::handle::on(GGM_BACKEND_HOST);
  // Two tokens, two experts, one slot: expert e multiplies by e + 1, token 0 goes to expert 1, token 1 to expert 0.
  ggm_moe_problem_t problem = ggm::moe_problem({2, 1, 2}, 2, 2, GGM_TYPE_FLOAT32, GGM_ORDER_NK, GGM_TYPE_FLOAT32);
  problem.gradients = GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS;
  const auto route = handle.route(ggm::route_problem({2, 1, 2}));
  const auto forward = handle.moe_forward(problem);
  const auto backward = handle.moe_backward(problem);
  const std::size_t bytes = ggm::shared_workspace_bytes(route, forward, backward);
  CHECK(bytes >= route.workspace_bytes());
  CHECK(bytes >= forward.workspace_bytes());
  CHECK(bytes >= backward.workspace_bytes());
  std::vector<unsigned char> memory(bytes + GGM_WORKSPACE_ALIGNMENT);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  void* workspace = memory.data() + (GGM_WORKSPACE_ALIGNMENT - address % GGM_WORKSPACE_ALIGNMENT) % GGM_WORKSPACE_ALIGNMENT;

  const std::vector<std::int32_t> ids{1, 0};
  const std::vector<float> weights{0.5f, 2.0f}, x{3, 4, 5, 6}, w{1, 0, 0, 1, 2, 0, 0, 2}, dy{1, 2, 3, 4};
  std::vector<float> y(4, -1.0f), dx(4, -1.0f), dw(2, -1.0f);

  std::vector<std::int32_t> offsets(3, -7), row_assignment(2, -7), assignment_row(2, -7);
  auto routing = ggm::init<ggm_route_tensors_t>();
  routing.ids = ids.data();
  routing.group_offsets = offsets.data();
  routing.row_assignment = row_assignment.data();
  routing.assignment_row = assignment_row.data();
  route(routing, workspace, bytes);
  CHECK(offsets == std::vector<std::int32_t>{0, 1, 2});
  CHECK(row_assignment == std::vector<std::int32_t>{1, 0});
  CHECK(assignment_row == std::vector<std::int32_t>{1, 0});

  auto tensors = ggm::init<ggm_moe_forward_tensors_t>();
  tensors.ids = ids.data();
  tensors.routing_weights = weights.data();
  tensors.x = x.data();
  tensors.weight = w.data();
  tensors.y = y.data();
  forward(tensors, workspace, bytes);
  CHECK(y == std::vector<float>{3, 4, 10, 12});

  auto gradients = ggm::init<ggm_moe_backward_tensors_t>();
  gradients.ids = ids.data();
  gradients.routing_weights = weights.data();
  gradients.x = x.data();
  gradients.weight = w.data();
  gradients.dy = dy.data();
  gradients.dx = dx.data();
  gradients.d_routing_weights = dw.data();
  CHECK(backward.call(gradients, workspace, bytes) == GGM_STATUS_SUCCESS);
  CHECK(dx == std::vector<float>{1, 2, 6, 8});
  CHECK(dw == std::vector<float>{2 * (1 * 3 + 2 * 4), 3 * 5 + 4 * 6});

  // A missing pointer: an exception from operator(), a status from call.
  tensors.x = nullptr;
  CHECK_THROWS_AS(forward(tensors, workspace, bytes), ggm::error);
  CHECK(forward.call(tensors, workspace, bytes) != GGM_STATUS_SUCCESS);
}
