#include "run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "progress.h"

namespace demo {
namespace {

// A layer whose arrays lie where the library works.
struct Placed {
  ggm_moe_forward_tensors_t forward = ggm::init<ggm_moe_forward_tensors_t>();
  ggm_moe_backward_tensors_t backward = ggm::init<ggm_moe_backward_tensors_t>();
};

template <typename T>
std::size_t bytes_of(const std::vector<T>& v) {
  return v.size() * sizeof(T);
}

Placed place(Memory& memory, Layer& layer, std::vector<std::uint32_t>& faults) {
  Placed p;
  p.forward.ids = memory.input(layer.ids.data(), bytes_of(layer.ids));
  p.forward.routing_weights = memory.input(layer.routing_weights.data(), bytes_of(layer.routing_weights));
  p.forward.x = memory.input(layer.x.data(), layer.x.bytes());
  p.forward.weight = memory.input(layer.weight.data(), layer.weight.bytes());
  p.forward.y = memory.output(layer.y.data(), layer.y.bytes());
  // Zeros copied in: the library only adds to fault words. On the host they stay where they are.
  p.forward.faults = static_cast<std::uint32_t*>(const_cast<void*>(memory.input(faults.data(), bytes_of(faults))));
  p.backward.ids = p.forward.ids;
  p.backward.routing_weights = p.forward.routing_weights;
  p.backward.x = p.forward.x;
  p.backward.weight = p.forward.weight;
  p.backward.dy = memory.input(layer.dy.data(), layer.dy.bytes());
  p.backward.dx = memory.output(layer.dx.data(), layer.dx.bytes());
  p.backward.d_weight = memory.output(layer.d_weight.data(), layer.d_weight.bytes());
  p.backward.d_routing_weights =
      static_cast<float*>(memory.output(layer.d_routing_weights.data(), bytes_of(layer.d_routing_weights)));
  p.backward.faults = p.forward.faults;
  return p;
}

// Calls `body` until half a second has gone or ten calls are made, and returns the fastest one's seconds.
template <typename Body>
double fastest(Memory& memory, const Body& body) {
  using clock = std::chrono::steady_clock;
  double best = 0, total = 0;
  for (int i = 0; i < 10 && total < 0.5; ++i) {
    memory.synchronize();
    const auto start = clock::now();
    body();
    memory.synchronize();
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    best = i == 0 ? seconds : std::min(best, seconds);
    total += seconds;
  }
  return best;
}

using Bytes = std::vector<unsigned char>;
Bytes copy_of(const void* data, std::size_t bytes) {
  const auto* first = static_cast<const unsigned char*>(data);
  return Bytes(first, first + bytes);
}

}  // namespace

RunResult run_layer(const ggm::handle& handle, Memory& memory, Layer& layer) {
  ggm_moe_problem_t problem = ggm::moe_problem({layer.tokens, layer.top_k, layer.experts}, layer.hidden, layer.out_features,
                                               layer.type, GGM_ORDER_NK, GGM_TYPE_FLOAT32);
  problem.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  const auto forward = handle.moe_forward(problem);
  const auto backward = handle.moe_backward(problem);
  problem.combine = GGM_COMBINE_ORDERED;
  const auto forward_ordered = handle.moe_forward(problem);
  const auto backward_ordered = handle.moe_backward(problem);
  problem.combine = GGM_COMBINE_TWO_STEP;
  const auto forward_two_step = handle.moe_forward(problem);
  problem.combine = GGM_COMBINE_AUTO;
  problem.tokens = std::min<std::int64_t>(7, layer.tokens);
  const auto forward_alone = handle.moe_forward(problem);

  RunResult result;
  result.forward_workspace = forward.workspace_bytes();
  result.backward_workspace = backward.workspace_bytes();
  result.ordered_forward_workspace = forward_ordered.workspace_bytes();
  result.ordered_backward_workspace = backward_ordered.workspace_bytes();
  result.alone_tokens = problem.tokens;

  const std::size_t workspace_bytes =
      ggm::shared_workspace_bytes(forward, backward, forward_ordered, forward_two_step, forward_alone);
  void* workspace = memory.scratch(workspace_bytes);
  std::vector<std::uint32_t> faults(GGM_FAULT_WORDS, 0);
  const Placed placed = place(memory, layer, faults);

  const auto fetch_y = [&] { memory.fetch(layer.y.data(), placed.forward.y, layer.y.bytes()); };
  const auto y_after = [&](const auto& operation) {
    memory.poison(placed.forward.y, layer.y.bytes());
    operation(placed.forward, workspace, workspace_bytes);
    memory.synchronize();
    fetch_y();
    return copy_of(layer.y.data(), layer.y.bytes());
  };
  {
    Step step("forward");
    const Bytes first = y_after(forward);
    result.forward_seconds = fastest(memory, [&] { forward(placed.forward, workspace, workspace_bytes); });
    fetch_y();
    result.repeat_same_bits = first == copy_of(layer.y.data(), layer.y.bytes());
    result.combine_same_bits = first == y_after(forward_ordered) && first == y_after(forward_two_step);
    const Bytes alone = y_after(forward_alone);
    const std::size_t alone_bytes =
        layer.y.bytes() / static_cast<std::size_t>(layer.tokens) * static_cast<std::size_t>(result.alone_tokens);
    result.alone_same_bits = std::memcmp(alone.data(), first.data(), alone_bytes) == 0;
    y_after(forward);
  }
  {
    Step step("backward");
    const auto poison = [&] {
      memory.poison(placed.backward.dx, layer.dx.bytes());
      memory.poison(placed.backward.d_weight, layer.d_weight.bytes());
      memory.poison(placed.backward.d_routing_weights, bytes_of(layer.d_routing_weights));
    };
    const auto fetch_small = [&] {
      memory.fetch(layer.dx.data(), placed.backward.dx, layer.dx.bytes());
      memory.fetch(layer.d_routing_weights.data(), placed.backward.d_routing_weights, bytes_of(layer.d_routing_weights));
    };
    poison();
    backward(placed.backward, workspace, workspace_bytes);
    memory.synchronize();
    fetch_small();
    const Bytes dx = copy_of(layer.dx.data(), layer.dx.bytes());
    const Bytes dw = copy_of(layer.d_routing_weights.data(), bytes_of(layer.d_routing_weights));
    poison();
    result.backward_seconds = fastest(memory, [&] { backward(placed.backward, workspace, workspace_bytes); });
    fetch_small();
    memory.fetch(layer.d_weight.data(), placed.backward.d_weight, layer.d_weight.bytes());
    result.repeat_same_bits = result.repeat_same_bits && dx == copy_of(layer.dx.data(), layer.dx.bytes()) &&
                              dw == copy_of(layer.d_routing_weights.data(), bytes_of(layer.d_routing_weights));
  }
  memory.fetch(faults.data(), placed.forward.faults, bytes_of(faults));
  for (std::uint32_t word : faults) result.faults += word;
  return result;
}

}  // namespace demo
