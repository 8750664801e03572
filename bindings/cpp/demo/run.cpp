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

// The layer's operations: each is one problem that the library has accepted.
struct Operations {
  ggm::moe_forward_operation forward, forward_ordered, forward_two_step, forward_alone;
  ggm::moe_backward_operation backward, backward_ordered;
};

ggm_moe_problem_t problem_of(const Layer& layer) {
  ggm_moe_problem_t problem = ggm::moe_problem({layer.tokens, layer.top_k, layer.experts}, layer.hidden, layer.out_features,
                                               layer.type, GGM_ORDER_NK, GGM_TYPE_FLOAT32);
  problem.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
  return problem;
}

Operations make_operations(const ggm::handle& handle, const Layer& layer, std::int64_t alone_tokens) {
  const ggm_moe_problem_t problem = problem_of(layer);
  ggm_moe_problem_t ordered = problem, two_step = problem, alone = problem;
  ordered.combine = GGM_COMBINE_ORDERED;
  two_step.combine = GGM_COMBINE_TWO_STEP;
  alone.tokens = alone_tokens;
  return {handle.moe_forward(problem), handle.moe_forward(ordered),  handle.moe_forward(two_step),
          handle.moe_forward(alone),   handle.moe_backward(problem), handle.moe_backward(ordered)};
}

struct Workspace {
  void* data;
  std::size_t bytes;
};

void run_forward(const Operations& operations, const Placed& placed, Workspace workspace, Memory& memory, Layer& layer,
                 RunResult& result) {
  Step step("forward");
  const auto fetch = [&] {
    memory.fetch(layer.y.data(), placed.forward.y, layer.y.bytes());
    return copy_of(layer.y.data(), layer.y.bytes());
  };
  const auto y_after = [&](const ggm::moe_forward_operation& operation) {
    memory.poison(placed.forward.y, layer.y.bytes());
    operation(placed.forward, workspace.data, workspace.bytes);
    memory.synchronize();
    return fetch();
  };
  const Bytes first = y_after(operations.forward);
  result.combine_same_bits = first == y_after(operations.forward_ordered) && first == y_after(operations.forward_two_step);
  const Bytes alone = y_after(operations.forward_alone);
  const std::size_t token_bytes = layer.y.bytes() / static_cast<std::size_t>(layer.tokens);
  const std::size_t alone_bytes = token_bytes * static_cast<std::size_t>(result.alone_tokens);
  result.alone_same_bits = std::memcmp(alone.data(), first.data(), alone_bytes) == 0;

  memory.poison(placed.forward.y, layer.y.bytes());
  result.forward_seconds = fastest(memory, [&] { operations.forward(placed.forward, workspace.data, workspace.bytes); });
  result.repeat_same_bits = first == fetch();
}

void run_backward(const Operations& operations, const Placed& placed, Workspace workspace, Memory& memory, Layer& layer,
                  RunResult& result) {
  Step step("backward");
  const auto poison = [&] {
    memory.poison(placed.backward.dx, layer.dx.bytes());
    memory.poison(placed.backward.d_weight, layer.d_weight.bytes());
    memory.poison(placed.backward.d_routing_weights, bytes_of(layer.d_routing_weights));
  };
  // The weight gradient is as large as the weights: it is fetched once, at the end, and its bits are not compared.
  const auto fetch_small = [&] {
    memory.fetch(layer.dx.data(), placed.backward.dx, layer.dx.bytes());
    memory.fetch(layer.d_routing_weights.data(), placed.backward.d_routing_weights, bytes_of(layer.d_routing_weights));
    Bytes bytes = copy_of(layer.dx.data(), layer.dx.bytes());
    const Bytes dw = copy_of(layer.d_routing_weights.data(), bytes_of(layer.d_routing_weights));
    bytes.insert(bytes.end(), dw.begin(), dw.end());
    return bytes;
  };
  const auto call = [&] { operations.backward(placed.backward, workspace.data, workspace.bytes); };
  poison();
  call();
  memory.synchronize();
  const Bytes first = fetch_small();
  poison();
  result.backward_seconds = fastest(memory, call);
  result.repeat_same_bits = result.repeat_same_bits && first == fetch_small();
  memory.fetch(layer.d_weight.data(), placed.backward.d_weight, layer.d_weight.bytes());
}

}  // namespace

RunResult run_layer(const ggm::handle& handle, Memory& memory, Layer& layer) {
  RunResult result;
  result.alone_tokens = std::min<std::int64_t>(7, layer.tokens);
  const Operations operations = make_operations(handle, layer, result.alone_tokens);
  result.forward_workspace = operations.forward.workspace_bytes();
  result.backward_workspace = operations.backward.workspace_bytes();
  result.ordered_forward_workspace = operations.forward_ordered.workspace_bytes();
  result.ordered_backward_workspace = operations.backward_ordered.workspace_bytes();

  // One piece of scratch serves all of them, one after another.
  Workspace workspace{nullptr,
                      ggm::shared_workspace_bytes(operations.forward, operations.forward_ordered, operations.forward_two_step,
                                                  operations.forward_alone, operations.backward)};
  workspace.data = memory.scratch(workspace.bytes);
  std::vector<std::uint32_t> faults(GGM_FAULT_WORDS, 0);
  const Placed placed = place(memory, layer, faults);
  run_forward(operations, placed, workspace, memory, layer, result);
  run_backward(operations, placed, workspace, memory, layer, result);
  memory.fetch(faults.data(), placed.forward.faults, bytes_of(faults));
  for (std::uint32_t word : faults) result.faults += word;
  return result;
}

}  // namespace demo
