// The host backend end to end: bits do not depend on the number of threads, the limit of a call, the instruction set or other
// callers of the same handle.
#include <cstring>
#include <thread>
#include <vector>

#include "base/convert.h"
#include "host_families.h"
#include "support/inputs.h"
#include "support/test.h"

namespace {

constexpr int kTokens = 150, kTopK = 3, kExperts = 5, kIn = 200, kOut = 330;

struct AlignedBytes {
  explicit AlignedBytes(std::size_t bytes) : memory(bytes + 256) {}
  void* get() { return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256); }
  std::vector<char> memory;
};

std::vector<std::uint16_t> brain_matrix(std::uint32_t stream, int rows, int columns) {
  std::vector<std::uint16_t> values;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      values.push_back(ggm::float_to_bfloat16(static_cast<float>(ggm_test::uniform(stream, r, c))));
  return values;
}

// One layer on random bfloat16 data; skewed routing with some slots dropped.
struct Layer {
  ggm_moe_problem_t problem = GGM_MOE_PROBLEM_INIT;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::uint16_t> x = brain_matrix(1, kTokens, kIn), w = brain_matrix(2, kExperts*kOut, kIn),
                             dy = brain_matrix(3, kTokens, kOut);

  explicit Layer(std::int32_t combine) {
    for (int a = 0; a < kTokens * kTopK; ++a) {
      const auto h = ggm_test::mix(static_cast<std::uint32_t>(a), 5, 6) % 9;
      ids.push_back(h >= kExperts ? (h == 8 ? -1 : 1) : static_cast<std::int32_t>(h));
      weights.push_back(static_cast<float>(ggm_test::uniform(7, a, 0)));
    }
    problem.tokens = kTokens;
    problem.top_k = kTopK;
    problem.experts = kExperts;
    problem.in_features = kIn;
    problem.out_features = kOut;
    problem.id_type = GGM_INDEX_INT32;
    problem.routing_weight_type = GGM_TYPE_FLOAT32;
    problem.x_type = problem.weight_type = GGM_TYPE_BFLOAT16;
    problem.bias_type = 0;
    problem.d_bias_type = GGM_TYPE_FLOAT32;
    problem.weight_order = GGM_ORDER_NK;
    problem.combine = combine;
    problem.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;
  }

  // All outputs of forward and backward, one after the other. Status checks are the caller's: threads use this too.
  std::vector<char> run(ggm_handle_t handle, std::int32_t sm_limit, ggm_status_t* status) const {
    ggm_moe_problem_t p = problem;
    p.sm_limit = sm_limit;
    std::vector<std::uint16_t> y(kTokens * kOut), dx(kTokens * kIn), dw(kExperts * kOut * kIn);
    std::vector<float> d_bias(kExperts * kOut), d_weights(kTokens * kTopK);
    std::size_t forward_bytes = 0, backward_bytes = 0;
    *status = ggm_moe_forward_workspace_size(handle, &p, &forward_bytes);
    if (*status == 0) *status = ggm_moe_backward_workspace_size(handle, &p, &backward_bytes);
    AlignedBytes workspace(forward_bytes > backward_bytes ? forward_bytes : backward_bytes);
    ggm_moe_forward_tensors_t f = GGM_MOE_FORWARD_TENSORS_INIT;
    f.ids = ids.data();
    f.routing_weights = weights.data();
    f.x = x.data();
    f.weight = w.data();
    f.y = y.data();
    if (*status == 0) *status = ggm_moe_forward(handle, &p, &f, workspace.get(), forward_bytes, nullptr);
    ggm_moe_backward_tensors_t b = GGM_MOE_BACKWARD_TENSORS_INIT;
    b.ids = ids.data();
    b.routing_weights = weights.data();
    b.x = x.data();
    b.weight = w.data();
    b.dy = dy.data();
    b.dx = dx.data();
    b.d_weight = dw.data();
    b.d_bias = d_bias.data();
    b.d_routing_weights = d_weights.data();
    if (*status == 0) *status = ggm_moe_backward(handle, &p, &b, workspace.get(), backward_bytes, nullptr);
    std::vector<char> all;
    const auto append = [&all](const auto& part) {
      const std::size_t begin = all.size(), bytes = part.size() * sizeof(part[0]);
      all.resize(begin + bytes);
      std::memcpy(all.data() + begin, part.data(), bytes);
    };
    append(y), append(dx), append(dw), append(d_bias), append(d_weights);
    return all;
  }
};

struct Handle {
  Handle(std::int32_t family, std::int32_t threads) {
    ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
    params.backend = GGM_BACKEND_HOST;
    params.kernel_family = family;
    params.host_threads = threads;
    GGM_REQUIRE_OK(ggm_create(&params, &handle));
  }
  ~Handle() { ggm_destroy(handle); }
  ggm_handle_t handle = nullptr;
};

std::vector<char> run_once(std::int32_t family, std::int32_t threads, std::int32_t combine, std::int32_t sm_limit) {
  Handle h(family, threads);
  ggm_status_t status;
  std::vector<char> result = Layer(combine).run(h.handle, sm_limit, &status);
  GGM_REQUIRE_OK(status);
  return result;
}

}  // namespace

TEST_CASE("host backend: families, threads, limits and both combines give the same bits on random data", "[host]") {
  const std::vector<char> expected = run_once(GGM_KERNELS_HOST_PLAIN, 1, GGM_COMBINE_TWO_STEP, 0);
  for (const ggm::host::Family* family : ggm_test::usable_families())
    for (std::int32_t threads : {1, 2, 5})
      for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
        for (std::int32_t limit : {0, 2}) {
          INFO(family->name << " threads " << threads << " combine " << combine << " sm_limit " << limit);
          REQUIRE(run_once(family->id, threads, combine, limit) == expected);
        }
}

TEST_CASE("host backend: 8 threads on one handle, each with its own outputs, give the bits of one", "[host]") {
  const Layer layer(GGM_COMBINE_ORDERED);
  const std::vector<char> expected = run_once(GGM_KERNELS_AUTO, 1, GGM_COMBINE_ORDERED, 0);
  Handle h(GGM_KERNELS_AUTO, 3);
  std::vector<int> wrong(8, 0);
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 3; ++round) {
        ggm_status_t status;
        const std::vector<char> got = layer.run(h.handle, 0, &status);
        wrong[static_cast<std::size_t>(c)] += status != GGM_STATUS_SUCCESS || got != expected;
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == std::vector<int>(8, 0));
}
