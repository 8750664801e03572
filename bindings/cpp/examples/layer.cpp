// One Mixture-of-Experts product through ggm.hpp, forward and backward, on the host backend; every number is checked against
// plain loops. To read first: the problem, the two operations, one workspace for both.
//
// Exit: 0 passed, 1 wrong results, 2 could not run.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "ggm/ggm.hpp"

namespace {

constexpr std::int64_t kTokens = 7, kTopK = 2, kExperts = 4, kIn = 20, kOut = 12;

// Scratch for the library: aligned as it asks, freed with this object.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t kAlignment = GGM_WORKSPACE_ALIGNMENT;
    if (bytes == 0) return;
    memory_.reset(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_;
};

struct Layer {
  std::vector<std::int32_t> ids = std::vector<std::int32_t>(kTokens * kTopK);
  std::vector<float> routing_weights = std::vector<float>(kTokens * kTopK);
  std::vector<float> x = std::vector<float>(kTokens * kIn), weight = std::vector<float>(kExperts * kOut * kIn);
  std::vector<float> dy = std::vector<float>(kTokens * kOut);
};

struct Results {
  std::vector<float> y = std::vector<float>(kTokens * kOut), dx = std::vector<float>(kTokens * kIn);
  std::vector<float> d_weight = std::vector<float>(kExperts * kOut * kIn);
  std::vector<float> d_routing_weights = std::vector<float>(kTokens * kTopK);
};

// Small integers, and routing weights in quarters: every sum below is exact, so results must be equal, not only close.
Layer make_layer() {
  Layer layer;
  std::uint32_t state = 1;
  const auto small = [&state](std::uint32_t count) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % count;
  };
  const auto fill = [&](std::span<float> values) {
    for (float& v : values) v = static_cast<float>(small(7)) - 3.0f;
  };
  fill(layer.x);
  fill(layer.weight);
  fill(layer.dy);
  for (std::int32_t& id : layer.ids) id = static_cast<std::int32_t>(small(kExperts + 1)) - 1;  // -1: no expert in this slot
  for (float& w : layer.routing_weights) w = 0.25f * static_cast<float>(1 + small(4));
  return layer;
}

Results by_library(const ggm::handle& handle, const Layer& layer) {
  ggm_moe_problem_t problem =
      ggm::moe_problem({kTokens, kTopK, kExperts}, kIn, kOut, GGM_TYPE_FLOAT32, GGM_ORDER_NK, GGM_TYPE_FLOAT32);
  problem.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  const auto forward = handle.moe_forward(problem);  // throws ggm::error if the problem is wrong
  const auto backward = handle.moe_backward(problem);
  // The calls follow each other, so they share the larger of the two.
  const Workspace workspace(ggm::shared_workspace_bytes(forward, backward));

  Results results;
  auto tensors = ggm::init<ggm_moe_forward_tensors_t>();
  tensors.ids = layer.ids.data();
  tensors.routing_weights = layer.routing_weights.data();
  tensors.x = layer.x.data();
  tensors.weight = layer.weight.data();
  tensors.y = results.y.data();
  forward(tensors, workspace.data(), workspace.bytes());

  auto gradients = ggm::init<ggm_moe_backward_tensors_t>();
  gradients.ids = layer.ids.data();
  gradients.routing_weights = layer.routing_weights.data();
  gradients.x = layer.x.data();
  gradients.weight = layer.weight.data();
  gradients.dy = layer.dy.data();
  gradients.dx = results.dx.data();
  gradients.d_weight = results.d_weight.data();
  gradients.d_routing_weights = results.d_routing_weights.data();
  backward(gradients, workspace.data(), workspace.bytes());
  return results;
}

Results by_loops(const Layer& layer) {
  Results r;
  for (std::int64_t a = 0; a < kTokens * kTopK; ++a) {
    const std::int64_t t = a / kTopK, e = layer.ids[a];
    if (e < 0) continue;
    const float w = layer.routing_weights[a];
    for (std::int64_t n = 0; n < kOut; ++n) {
      float product = 0;
      for (std::int64_t k = 0; k < kIn; ++k) {
        const std::int64_t at = (e * kOut + n) * kIn + k;
        product += layer.x[t * kIn + k] * layer.weight[at];
        r.dx[t * kIn + k] += w * layer.dy[t * kOut + n] * layer.weight[at];
        r.d_weight[at] += w * layer.dy[t * kOut + n] * layer.x[t * kIn + k];
      }
      r.y[t * kOut + n] += w * product;
      r.d_routing_weights[a] += layer.dy[t * kOut + n] * product;
    }
  }
  return r;
}

bool equal(const char* name, std::span<const float> got, std::span<const float> expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != expected[i]) {
      std::printf("%s[%zu] is %g, expected %g\n", name, i, got[i], expected[i]);
      return false;
    }
  }
  std::printf("%-18s %4zu values, all as expected\n", name, got.size());
  return true;
}

// What an error looks like: the argument, its value and the limit.
bool shows_errors(const ggm::handle& handle) {
  try {
    handle.moe_forward(ggm::moe_problem({kTokens, kTopK, kExperts}, -1, kOut, GGM_TYPE_FLOAT32, GGM_ORDER_NK));
  } catch (const ggm::error& e) {
    std::printf("refused: %s\n", e.what());
    return e.status() == GGM_STATUS_INVALID_VALUE;
  }
  std::puts("-1 features were not refused");
  return false;
}

}  // namespace

int main() {
  try {
    const ggm::handle handle = ggm::handle::on(GGM_BACKEND_HOST);
    const Layer layer = make_layer();
    const Results got = by_library(handle, layer), expected = by_loops(layer);
    bool right = equal("y", got.y, expected.y);
    right = equal("dx", got.dx, expected.dx) && right;
    right = equal("d_weight", got.d_weight, expected.d_weight) && right;
    right = equal("d_routing_weights", got.d_routing_weights, expected.d_routing_weights) && right;
    right = shows_errors(handle) && right;
    std::puts(right ? "All numbers are right." : "FAILED: see above.");
    return right ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ggm_example_layer: %s\n", e.what());
    return 2;
  }
}
